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

void print_table(const std::vector<job>& jobs, const console& to) {
  constexpr auto right = table::align::right;
  table t({{"ID", right}, {"QUEUE"}, {"KIND"}, {"STATE"}, {"TRIES", right}, {"WHEN"}, {"ARGS"}});
  const unix_time now = real_time().now();
  for (const job& j : jobs) {
    const bool is_json = j.spec.args.type == content_type::json;
    // No colours in cells: a column would count the escapes.
    t.add(
        {std::to_string(j.id), j.spec.queue, j.spec.kind, std::string(to_string(j.state)),
         std::to_string(j.attempts), ago(moment_of(j), now),
         is_json ? shortened(j.spec.args.data, args_columns) : byte_size(j.spec.args.data.size())});
  }
  to.print(t.text(to.style()));
}

// One page as a table or as the API's page; every job, one JSON object a line or table by table.
exit_code list(client& server, const jobs_arguments& what, const console& to) {
  list_request next = what.filter;
  if (what.all) next.limit = page_max;
  std::vector<job> found;
  for (;;) {
    auto page = server.list(next);
    if (!page) return to.complain(page.error());
    if (what.to.json && !what.all) {
      to.line(json::to_json(*page));
      return exit_code::ok;
    }
    for (job& j : page->jobs) {
      if (what.to.json) {
        to.line(json::to_json(j));
      } else {
        found.push_back(std::move(j));
      }
    }
    if (!page->cursor) break;
    next.after = *page->cursor;
    const bool is_full = !what.all && found.size() >= what.filter.limit;
    if (is_full) {
      print_table(found, to);
      to.note("there are more: --after " + std::to_string(*page->cursor) + ", or --all");
      return exit_code::ok;
    }
    if (!what.all) {
      next.limit = what.filter.limit - found.size();
    } else if (found.size() >= page_max) {  // what is shown is not kept
      print_table(std::exchange(found, {}), to);
    }
  }
  if (what.to.json) return exit_code::ok;
  if (!found.empty()) {
    print_table(found, to);
  } else if (next.after == what.filter.after) {
    to.note("no such jobs");
  }
  return exit_code::ok;
}

// Every one is tried; the exit code is that of the first which failed.
template <class Act>
exit_code for_each_id(const jobs_arguments& what, Act act) {
  exit_code code = exit_code::ok;
  for (const job_id id : what.ids) {
    const exit_code one = act(id);
    if (code == exit_code::ok) code = one;
  }
  return code;
}

exit_code show(const result<job>& j, const jobs_arguments& what, const console& to) {
  if (!j) return to.complain(j.error());
  to.line(what.to.json ? json::to_json(*j)
                       : "job " + std::to_string(j->id) + " " + coloured(j->state, to.style()));
  return exit_code::ok;
}

exit_code remove(client& server, job_id id, const jobs_arguments& what, const console& to) {
  if (const auto removed = server.remove(id); !removed) return to.complain(removed.error());
  to.line(what.to.json ? "{\"id\":" + std::to_string(id) + ",\"deleted\":true}"
                       : "job " + std::to_string(id) + " deleted");
  return exit_code::ok;
}

}  // namespace

int run(const jobs_arguments& what, const console& to) {
  using action = jobs_arguments::action;
  return with_client(what.to, to, [&](client& server) {
    switch (what.what) {
      case action::list:
        return list(server, what, to);
      case action::cancel:
        return for_each_id(what, [&](job_id id) { return show(server.cancel(id), what, to); });
      case action::retry:
        return for_each_id(what, [&](job_id id) { return show(server.retry(id), what, to); });
      case action::remove:
        break;
    }
    return for_each_id(what, [&](job_id id) { return remove(server, id, what, to); });
  });
}

}  // namespace sluice::jobs::cli
