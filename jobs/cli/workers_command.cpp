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

exit_code list(client& server, const workers_arguments& what, const console& to) {
  const auto page = server.faktory_workers(what.after, what.limit);
  if (!page) return to.complain(page.error());
  if (what.to.json) {
    to.line(json::to_json(*page));
    return exit_code::ok;
  }
  if (page->workers.empty()) {
    to.note("no workers of Faktory's protocol are connected");
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
  to.print(t.text(to.style()));
  if (page->cursor) to.note("there are more: --after " + shortened(*page->cursor, wid_columns));
  return exit_code::ok;
}

exit_code tell(client& server, const workers_arguments& what, worker_state state,
               const console& to) {
  const auto told = server.tell_faktory_worker(what.wid, state);
  if (!told) return to.complain(told.error());
  if (what.to.json) {
    to.line(json::to_json(*told));
    return exit_code::ok;
  }
  to.line(what.wid + " is to " +
          (told->state == worker_state::terminate ? "finish what it has, and end"
                                                  : "take no more jobs") +
          "; it has " + counted(told->running, "job", "jobs"));
  return exit_code::ok;
}

}  // namespace

int run(const workers_arguments& what, const console& to) {
  using action = workers_arguments::action;
  return with_client(what.to, to, [&](client& server) {
    switch (what.what) {
      case action::list:
        break;
      case action::quiet:
        return tell(server, what, worker_state::quiet, to);
      case action::terminate:
        return tell(server, what, worker_state::terminate, to);
    }
    return list(server, what, to);
  });
}

}  // namespace sluice::jobs::cli
