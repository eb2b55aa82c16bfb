#include <string>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::cli {
namespace {

constexpr milliseconds poll_interval{500};

std::string to_json(const log_line& l) {
  std::string text;
  json::json_writer out(text);
  out.begin_object().key("number").value(l.number).key("attempt").value(l.attempt);
  out.key("at").value(l.at).key("text").value(l.text).end_object();
  return text;
}

class log_printer {
 public:
  log_printer(client& server, const logs_arguments& args, const console& io)
      : server_(server), args_(args), io_(io), after_(args.after) {}

  exit_code print_rest() {
    for (;;) {
      const auto page = server_.logs(args_.id, after_, page_max);
      if (!page) return io_.complain(page.error());
      for (const log_line& l : page->lines) print(l);
      if (!page->cursor) break;
      after_ = *page->cursor;
    }
    // A closed pipe is a failure.
    return io_.flush() ? exit_code::ok : exit_code::failed;
  }

  bool has_printed() const noexcept { return attempt_ != 0 || after_ != args_.after; }

  // The end of the job is detected before the last read: an ended job logs nothing more.
  exit_code follow() {
    for (;;) {
      const auto end = server_.wait(args_.id, deadline::after(poll_interval));
      const bool has_ended = end.has_value();
      if (!has_ended && end.error().code != error_code::timed_out) return io_.complain(end.error());
      if (const exit_code code = print_rest(); code != exit_code::ok || has_ended) return code;
    }
  }

 private:
  void print(const log_line& l) {
    after_ = l.number;
    if (args_.server.json) return io_.line(to_json(l));
    const text_style& style = io_.style();
    if (l.attempt != attempt_) {
      attempt_ = l.attempt;
      io_.line(style.bold("attempt " + std::to_string(l.attempt)));
    }
    io_.line(style.faint(format_time(l.at)) + " " + l.text);
  }

  client& server_;
  const logs_arguments& args_;
  const console& io_;
  std::uint64_t after_;
  std::uint32_t attempt_ = 0;
};

}  // namespace

int run(const logs_arguments& args, const console& io) {
  return with_client(args.server, io, [&](client& server) {
    log_printer lines(server, args, io);
    if (args.follow) return lines.follow();
    const exit_code code = lines.print_rest();
    if (code != exit_code::ok || lines.has_printed()) return code;
    // No lines: the job has none, or does not exist.
    const auto job = server.get(args.id);
    return job ? exit_code::ok : io.complain(job.error());
  });
}

}  // namespace sluice::jobs::cli
