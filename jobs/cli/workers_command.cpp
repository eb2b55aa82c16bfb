#include <string>
#include <vector>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::cli {
namespace {

std::string joined(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ",") + label;
  return text;
}

exit_code list(client& server, const workers_arguments& args, const console& io) {
  const auto page = server.faktory_workers(args.after, args.limit);
  if (!page) return io.complain(page.error());
  if (args.server.json) {
    io.line(json::to_json(*page));
    return exit_code::ok;
  }
  if (page->workers.empty()) {
    io.note("no workers are connected over Faktory's protocol");
    return exit_code::ok;
  }
  constexpr auto right = table::align::right;
  constexpr std::size_t wid_columns = 64, host_columns = 32, label_columns = 40;
  table t({{"WID"},
           {"HOST"},
           {"PID", right},
           {"STATE"},
           {"JOBS", right},
           {"MEMORY", right},
           {"LAST BEAT"},
           {"LABELS"}});
  const unix_time now = real_time().now();
  for (const faktory_worker& w : page->workers) {
    t.add({shortened(w.wid, wid_columns), shortened(w.hostname, host_columns),
           std::to_string(w.pid), std::string(to_string(w.state)), grouped(w.running),
           w.rss_kb == 0 ? "-" : byte_size(w.rss_kb * 1024), ago(w.last_beat, now),
           shortened(joined(w.labels), label_columns)});
  }
  io.print(t.text(io.style()));
  if (page->cursor) {
    io.note("there are more; use --after " + shortened(*page->cursor, wid_columns));
  }
  return exit_code::ok;
}

exit_code set_state(client& server, const workers_arguments& args, worker_state state,
                    const console& io) {
  const auto worker = server.set_faktory_worker_state(args.wid, state);
  if (!worker) return io.complain(worker.error());
  if (args.server.json) {
    io.line(json::to_json(*worker));
    return exit_code::ok;
  }
  io.line(args.wid +
          (worker->state == worker_state::terminate
               ? " will finish its current jobs and exit"
               : " will fetch no new jobs and finish its current ones") +
          "; it has " + counted(worker->running, "job", "jobs"));
  return exit_code::ok;
}

}  // namespace

int run(const workers_arguments& args, const console& io) {
  using action = workers_arguments::action;
  return with_client(args.server, io, [&](client& server) {
    switch (args.operation) {
      case action::list:
        break;
      case action::quiet:
        return set_state(server, args, worker_state::quiet, io);
      case action::terminate:
        return set_state(server, args, worker_state::terminate, io);
    }
    return list(server, args, io);
  });
}

}  // namespace sluice::jobs::cli
