#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/bulk_limits.hpp"
#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/line_reader.hpp"
#include "jobs/cli/progress_bar.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/server/signal_watch.hpp"

namespace sluice::jobs::cli {
namespace {

using on_refused = import_arguments::on_refused;

// Returns whether the next line would fail, too.
bool is_hopeless(error_code code) {
  return code == error_code::unavailable || code == error_code::shutting_down ||
         code == error_code::disk_full || code == error_code::timed_out ||
         code == error_code::stopped || code == error_code::io_error;
}

struct line {
  std::uint64_t number = 0;
  std::string text;
};

class importer {
 public:
  importer(client& server, const import_arguments& args, const console& io, signal_watch* signals)
      : server_(server), args_(args), io_(io), signals_(signals) {}

  exit_code run(int from, std::uint64_t bytes_total) {
    if (const auto opened = open_report(); !opened) return io_.complain(opened.error());
    progress_bar bar(
        io_, {.doing = "importing", .unit = "B", .total = bytes_total, .quiet = args_.quiet});
    bar_ = &bar;
    line_reader lines(from, line_bytes_max);
    while (!stopped_at_) {
      auto text = lines.next();
      if (!text) {
        complain({number_ + 1, {}}, text.error());
        stopped_at_ = number_ + 1;
        break;
      }
      if (!*text) break;
      ++number_;
      bytes_ += (*text)->size() + 1;
      if (number_ >= args_.from_line) take(std::move(**text));
      const bool is_full = batch_.size() >= batch_jobs_max || batch_bytes_ >= batch_bytes_max;
      if (!stopped_at_ && (is_full || lines.would_wait())) flush();
    }
    // The lines before an invalid line.
    if (!batch_.empty() && (!stopped_at_ || lines_.back().number < *stopped_at_)) flush();
    bar.finish();
    return report();
  }

 private:
  void_result open_report() {
    if (args_.report.empty()) return done{};
    report_.reset(std::fopen(args_.report.c_str(), "we"));
    if (report_ != nullptr) return done{};
    return error{errno == ENOENT ? error_code::not_found : error_code::io_error,
                 "cannot write " + args_.report + ": " + std::strerror(errno)};
  }

  void take(std::string text) {
    if (text.find_first_not_of(" \t") == std::string::npos) return;
    auto spec =
        json::read<job_spec>(text, {.now = real_time().after(milliseconds(0)), .line = number_});
    if (spec && !args_.queue.empty()) spec->queue = args_.queue;
    if (spec) {
      if (const auto valid = validate(*spec); !valid) spec = valid.error();
    }
    if (!spec) {
      if (args_.refused == on_refused::stop && !batch_.empty()) flush();
      if (!stopped_at_) refuse({number_, std::move(text)}, spec.error());
      return;
    }
    batch_bytes_ += text.size();
    batch_.push_back(std::move(*spec));
    lines_.push_back({number_, std::move(text)});
  }

  void flush() {
    if (batch_.empty()) return;
    const auto specs = std::exchange(batch_, {});
    const auto lines = std::exchange(lines_, {});
    batch_bytes_ = 0;
    if (args_.refused == on_refused::go_on) {
      push_each(specs, lines);
    } else {
      push_up_to_a_refusal(specs, lines);
    }
    bar_->note(counted(pushed_, "job", "jobs"));
    bar_->at(bytes_);
    if (signals_ == nullptr || stopped_at_) return;
    const auto woken = signals_->wait(deadline::after(milliseconds(0)));
    if (woken.cause != signal_watch::woken::by::signal) return;
    stopped_at_ = lines.back().number + 1;
    code_ = exit_code::failed;
  }

  void push_each(const std::vector<job_spec>& specs, const std::vector<line>& lines) {
    const auto results = server_.push_many(specs, bulk::each, push_limits(args_.wait));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i]) {
        count(*results[i]);
      } else if (!stopped_at_) {
        refuse(lines[i], results[i].error());
      }
    }
  }

  // Pushes all at once. If that fails, pushes one by one, so that the first refused line is the
  // first line that was not pushed.
  void push_up_to_a_refusal(const std::vector<job_spec>& specs, const std::vector<line>& lines) {
    const auto results = server_.push_many(specs, bulk::all_or_nothing, push_limits(args_.wait));
    if (!results.empty() && results.front()) {
      for (const auto& one : results) {
        if (one) count(*one);
      }
      return;
    }
    const error& why = results.front().error();
    if (is_hopeless(why.code)) return refuse(lines.front(), why);
    for (std::size_t i = 0; i < specs.size() && !stopped_at_; ++i) {
      const auto one = server_.push(specs[i], push_limits(args_.wait));
      if (one) {
        count(*one);
      } else {
        refuse(lines[i], one.error());
      }
    }
  }

  void count(const push_receipt& one) {
    switch (one.outcome) {
      case push_receipt::fate::accepted:
        ++pushed_;
        break;
      case push_receipt::fate::duplicate:
        ++duplicates_;
        break;
      case push_receipt::fate::dropped:
      case push_receipt::fate::skipped:
        ++dropped_;
        break;
    }
  }

  void refuse(const line& refused, const error& why) {
    if (args_.refused == on_refused::stop || is_hopeless(why.code)) {
      stopped_at_ = refused.number;
      unknown_ = why.code == error_code::unavailable || why.code == error_code::timed_out;
    } else {
      ++refused_;
    }
    complain(refused, why);
    if (report_ != nullptr) write_report(refused, why);
  }

  void write_report(const line& refused, const error& why) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("line").value(refused.number).key("error").begin_object();
    out.key("code").value(to_string(why.code)).key("message").value(why.message).end_object();
    out.key("text").value(refused.text).end_object();
    text += '\n';
    if (std::fwrite(text.data(), 1, text.size(), report_.get()) != text.size()) report_lost_ = true;
  }

  void complain(const line& failed, const error& why) {
    if (code_ == exit_code::ok) code_ = exit_code_for(why.code);
    constexpr std::uint64_t complaints_max = 20;
    if (++complaints_ > complaints_max) return;
    bar_->clear();
    io_.complain(code_, "line " + std::to_string(failed.number) + ": " + why.message);
    if (complaints_ == complaints_max) io_.note("(further errors are counted, not printed)");
  }

  exit_code report() {
    if (report_ != nullptr && (std::fflush(report_.get()) != 0 || report_lost_)) {
      code_ = io_.complain(exit_code::failed,
                           "cannot write " + args_.report + ": " + std::strerror(errno));
    }
    if (args_.server.json) {
      std::string text;
      json::json_writer out(text);
      out.begin_object().key("pushed").value(pushed_).key("duplicates").value(duplicates_);
      out.key("dropped").value(dropped_).key("refused").value(refused_);
      out.key("lines").value(number_);
      if (stopped_at_) out.key("stopped_at_line").value(*stopped_at_);
      out.end_object();
      io_.line(text);
    } else {
      std::string text = counted(pushed_, "job", "jobs") + " pushed";
      if (duplicates_ > 0) text += ", " + counted(duplicates_, "duplicate", "duplicates");
      if (dropped_ > 0) text += ", " + grouped(dropped_) + " dropped";
      if (refused_ > 0) text += ", " + grouped(refused_) + " refused";
      io_.line(text);
    }
    if (stopped_at_) {
      io_.note("stopped at line " + std::to_string(*stopped_at_) + ": continue with --from-line " +
               std::to_string(*stopped_at_) +
               (unknown_ ? "; up to a thousand jobs from there may already be pushed" : ""));
    }
    return code_;
  }

  struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  client& server_;
  const import_arguments& args_;
  const console& io_;
  signal_watch* const signals_;
  progress_bar* bar_ = nullptr;
  std::unique_ptr<std::FILE, closer> report_;
  std::vector<job_spec> batch_;
  std::vector<line> lines_;  // the source lines of batch_
  std::size_t batch_bytes_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t complaints_ = 0;
  std::optional<std::uint64_t> stopped_at_;  // the first line that was not pushed
  bool unknown_ = false;                     // whether later lines were pushed is unknown
  bool report_lost_ = false;
  exit_code code_ = exit_code::ok;
};

std::uint64_t size_of(int file) {
  struct stat info {};
  const bool is_file = ::fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  return is_file ? static_cast<std::uint64_t>(info.st_size) : 0;
}

}  // namespace

int run(const import_arguments& args, const console& io) {
  const bool is_input = args.file == "-";
  const int file = is_input ? ::fileno(io.in()) : ::open(args.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return static_cast<int>(io.complain(errno == ENOENT ? exit_code::not_found : exit_code::failed,
                                        "cannot open " + args.file + ": " + std::strerror(errno)));
  }
  // Created before the client's thread. Only for files: a blocked read is ended by the signal
  // itself.
  std::optional<signal_watch> signals;
  const std::uint64_t bytes = size_of(file);
  if (bytes > 0) signals.emplace(std::initializer_list<int>{SIGINT, SIGTERM});
  const int code = with_client(args.server, io, [&](client& server) {
    return importer(server, args, io, signals ? &*signals : nullptr).run(file, bytes);
  });
  if (!is_input) ::close(file);
  return code;
}

}  // namespace sluice::jobs::cli
