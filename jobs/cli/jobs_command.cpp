#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr std::size_t args_columns = 48;

unix_time moment_of(const job& j) {
  if (has_ended(j.state)) return j.ended_at;
  if (j.state == job_state::scheduled || j.state == job_state::retrying) return j.due_at;
  return j.created_at;
}

void print_table(const std::vector<job>& jobs, const console& io) {
  constexpr auto right = table::align::right;
  table t({{"ID", right}, {"QUEUE"}, {"KIND"}, {"STATE"}, {"TRIES", right}, {"WHEN"}, {"ARGS"}});
  const unix_time now = real_time().now();
  for (const job& j : jobs) {
    const bool is_json = j.spec.args.type == content_type::json;
    // No colours in cells: escape sequences would count as width.
    t.add(
        {std::to_string(j.id), j.spec.queue, j.spec.kind, std::string(to_string(j.state)),
         std::to_string(j.attempts), ago(moment_of(j), now),
         is_json ? shortened(j.spec.args.data, args_columns) : byte_size(j.spec.args.data.size())});
  }
  io.print(t.text(io.style()));
}

// Prints one page as a table or as the API's page; with --all every job, as JSON lines or tables.
exit_code list(client& server, const jobs_arguments& args, const console& io) {
  list_request next = args.filter;
  if (args.all) next.limit = page_max;
  std::vector<job> found;
  for (;;) {
    auto page = server.list(next);
    if (!page) return io.complain(page.error());
    if (args.server.json && !args.all) {
      io.line(json::to_json(*page));
      return exit_code::ok;
    }
    for (job& j : page->jobs) {
      if (args.server.json) {
        io.line(json::to_json(j));
      } else {
        found.push_back(std::move(j));
      }
    }
    if (!page->cursor) break;
    next.after = *page->cursor;
    const bool is_full = !args.all && found.size() >= args.filter.limit;
    if (is_full) {
      print_table(found, io);
      io.note("there are more; use --after " + std::to_string(*page->cursor) + " or --all");
      return exit_code::ok;
    }
    if (!args.all) {
      next.limit = args.filter.limit - found.size();
    } else if (found.size() >= page_max) {  // bounds memory
      print_table(std::exchange(found, {}), io);
    }
  }
  if (args.server.json) return exit_code::ok;
  if (!found.empty()) {
    print_table(found, io);
  } else if (next.after == args.filter.after) {
    io.note("no such jobs");
  }
  return exit_code::ok;
}

// Tries every id; returns the exit code of the first failure.
template <class Act>
exit_code for_each_id(const jobs_arguments& args, Act act) {
  exit_code code = exit_code::ok;
  for (const job_id id : args.ids) {
    const exit_code one = act(id);
    if (code == exit_code::ok) code = one;
  }
  return code;
}

exit_code show(const result<job>& j, const jobs_arguments& args, const console& io) {
  if (!j) return io.complain(j.error());
  io.line(args.server.json ? json::to_json(*j)
                           : "job " + std::to_string(j->id) + " " + coloured(j->state, io.style()));
  return exit_code::ok;
}

exit_code remove(client& server, job_id id, const jobs_arguments& args, const console& io) {
  if (const auto removed = server.remove(id); !removed) return io.complain(removed.error());
  io.line(args.server.json ? "{\"id\":" + std::to_string(id) + ",\"deleted\":true}"
                           : "job " + std::to_string(id) + " deleted");
  return exit_code::ok;
}

}  // namespace

int run(const jobs_arguments& args, const console& io) {
  using action = jobs_arguments::action;
  return with_client(args.server, io, [&](client& server) {
    switch (args.operation) {
      case action::list:
        return list(server, args, io);
      case action::cancel:
        return for_each_id(args, [&](job_id id) { return show(server.cancel(id), args, io); });
      case action::retry:
        return for_each_id(args, [&](job_id id) { return show(server.retry(id), args, io); });
      case action::remove:
        break;
    }
    return for_each_id(args, [&](job_id id) { return remove(server, id, args, io); });
  });
}

}  // namespace sluice::jobs::cli
