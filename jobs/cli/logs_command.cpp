#include <string>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr milliseconds between_looks{500};

std::string to_json(const log_line& l) {
  std::string text;
  json::json_writer out(text);
  out.begin_object().key("number").value(l.number).key("attempt").value(l.attempt);
  out.key("at").value(l.at).key("text").value(l.text).end_object();
  return text;
}

class log_printer {
 public:
  log_printer(client& server, const logs_arguments& what, const console& to)
      : server_(server), what_(what), to_(to), after_(what.after) {}

  exit_code print_rest() {
    for (;;) {
      const auto page = server_.logs(what_.id, after_, page_max);
      if (!page) return to_.complain(page.error());
      for (const log_line& l : page->lines) print(l);
      if (!page->cursor) break;
      after_ = *page->cursor;
    }
    // Whoever reads may have gone.
    return to_.flush() ? exit_code::ok : exit_code::failed;
  }

  bool has_printed() const noexcept { return attempt_ != 0 || after_ != what_.after; }

  // A job that ends has said all that it will say: what is left is read after its end was seen.
  exit_code follow() {
    for (;;) {
      const auto end = server_.wait(what_.id, deadline::after(between_looks));
      const bool has_ended = end.has_value();
      if (!has_ended && end.error().code != error_code::timed_out) return to_.complain(end.error());
      if (const exit_code code = print_rest(); code != exit_code::ok || has_ended) return code;
    }
  }

 private:
  void print(const log_line& l) {
    after_ = l.number;
    if (what_.to.json) return to_.line(to_json(l));
    const text_style& style = to_.style();
    if (l.attempt != attempt_) {
      attempt_ = l.attempt;
      to_.line(style.bold("attempt " + std::to_string(l.attempt)));
    }
    to_.line(style.faint(format_time(l.at)) + " " + l.text);
  }

  client& server_;
  const logs_arguments& what_;
  const console& to_;
  std::uint64_t after_;
  std::uint32_t attempt_ = 0;
};

}  // namespace

int run(const logs_arguments& what, const console& to) {
  return with_client(what.to, to, [&](client& server) {
    log_printer lines(server, what, to);
    if (what.follow) return lines.follow();
    const exit_code code = lines.print_rest();
    if (code != exit_code::ok || lines.has_printed()) return code;
    // Nothing was logged, or there is no such job.
    const auto it = server.get(what.id);
    return it ? exit_code::ok : to.complain(it.error());
  });
}

}  // namespace sluice::jobs::cli
