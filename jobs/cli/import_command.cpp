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

// What the server cannot do for one it cannot do for the next.
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
  importer(client& server, const import_arguments& what, const console& to, signal_watch* signals)
      : server_(server), what_(what), to_(to), signals_(signals) {}

  exit_code run(int from, std::uint64_t bytes_total) {
    if (const auto opened = open_report(); !opened) return to_.complain(opened.error());
    progress_bar bar(
        to_, {.doing = "importing", .unit = "B", .total = bytes_total, .quiet = what_.quiet});
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
      if (number_ >= what_.from_line) take(std::move(**text));
      const bool is_full = batch_.size() >= batch_jobs_max || batch_bytes_ >= batch_bytes_max;
      if (!stopped_at_ && (is_full || lines.would_wait())) flush();
    }
    // Those before a line that is no job.
    if (!batch_.empty() && (!stopped_at_ || lines_.back().number < *stopped_at_)) flush();
    bar.finish();
    return report();
  }

 private:
  void_result open_report() {
    if (what_.report.empty()) return done{};
    report_.reset(std::fopen(what_.report.c_str(), "we"));
    if (report_ != nullptr) return done{};
    return error{errno == ENOENT ? error_code::not_found : error_code::io_error,
                 "cannot write " + what_.report + ": " + std::strerror(errno)};
  }

  void take(std::string text) {
    if (text.find_first_not_of(" \t") == std::string::npos) return;
    auto spec =
        json::read<job_spec>(text, {.now = real_time().after(milliseconds(0)), .line = number_});
    if (spec && !what_.queue.empty()) spec->queue = what_.queue;
    if (spec) {
      if (const auto valid = validate(*spec); !valid) spec = valid.error();
    }
    if (!spec) {
      if (what_.refused == on_refused::stop && !batch_.empty()) flush();
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
    if (what_.refused == on_refused::go_on) {
      push_each(specs, lines);
    } else {
      push_up_to_a_refusal(specs, lines);
    }
    bar_->note(counted(pushed_, "job", "jobs"));
    bar_->at(bytes_);
    if (signals_ == nullptr || stopped_at_) return;
    const auto woken = signals_->wait(deadline::after(milliseconds(0)));
    if (woken.what != signal_watch::woken::by::signal) return;
    stopped_at_ = lines.back().number + 1;
    code_ = exit_code::failed;
  }

  void push_each(const std::vector<job_spec>& specs, const std::vector<line>& lines) {
    const auto results = server_.push_many(specs, bulk::each, push_limits(what_.wait));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i]) {
        count(*results[i]);
      } else if (!stopped_at_) {
        refuse(lines[i], results[i].error());
      }
    }
  }

  // All at once if that works. If not, one after the other, so that the first that is refused is
  // the first that was not pushed.
  void push_up_to_a_refusal(const std::vector<job_spec>& specs, const std::vector<line>& lines) {
    const auto results = server_.push_many(specs, bulk::all_or_nothing, push_limits(what_.wait));
    if (!results.empty() && results.front()) {
      for (const auto& one : results) {
        if (one) count(*one);
      }
      return;
    }
    const error& why = results.front().error();
    if (is_hopeless(why.code)) return refuse(lines.front(), why);
    for (std::size_t i = 0; i < specs.size() && !stopped_at_; ++i) {
      const auto one = server_.push(specs[i], push_limits(what_.wait));
      if (one) {
        count(*one);
      } else {
        refuse(lines[i], one.error());
      }
    }
  }

  void count(const push_receipt& one) {
    switch (one.what) {
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

  void refuse(const line& which, const error& why) {
    if (what_.refused == on_refused::stop || is_hopeless(why.code)) {
      stopped_at_ = which.number;
      unknown_ = why.code == error_code::unavailable || why.code == error_code::timed_out;
    } else {
      ++refused_;
    }
    complain(which, why);
    if (report_ != nullptr) write_report(which, why);
  }

  void write_report(const line& which, const error& why) {
    std::string text;
    json::json_writer out(text);
    out.begin_object().key("line").value(which.number).key("error").begin_object();
    out.key("code").value(to_string(why.code)).key("message").value(why.message).end_object();
    out.key("text").value(which.text).end_object();
    text += '\n';
    if (std::fwrite(text.data(), 1, text.size(), report_.get()) != text.size()) report_lost_ = true;
  }

  void complain(const line& which, const error& why) {
    if (code_ == exit_code::ok) code_ = exit_code_for(why.code);
    constexpr std::uint64_t complaints_max = 20;
    if (++complaints_ > complaints_max) return;
    bar_->clear();
    to_.complain(code_, "line " + std::to_string(which.number) + ": " + why.message);
    if (complaints_ == complaints_max) to_.note("(further complaints are only counted)");
  }

  exit_code report() {
    if (report_ != nullptr && (std::fflush(report_.get()) != 0 || report_lost_)) {
      code_ = to_.complain(exit_code::failed,
                           "cannot write " + what_.report + ": " + std::strerror(errno));
    }
    if (what_.to.json) {
      std::string text;
      json::json_writer out(text);
      out.begin_object().key("pushed").value(pushed_).key("duplicates").value(duplicates_);
      out.key("dropped").value(dropped_).key("refused").value(refused_);
      out.key("lines").value(number_);
      if (stopped_at_) out.key("stopped_at_line").value(*stopped_at_);
      out.end_object();
      to_.line(text);
    } else {
      std::string text = counted(pushed_, "job", "jobs") + " pushed";
      if (duplicates_ > 0) text += ", " + counted(duplicates_, "duplicate", "duplicates");
      if (dropped_ > 0) text += ", " + grouped(dropped_) + " dropped";
      if (refused_ > 0) text += ", " + grouped(refused_) + " refused";
      to_.line(text);
    }
    if (stopped_at_) {
      to_.note("stopped at line " + std::to_string(*stopped_at_) + ": go on with --from-line " +
               std::to_string(*stopped_at_) +
               (unknown_ ? "; up to a thousand jobs from there may have been pushed already" : ""));
    }
    return code_;
  }

  struct closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  client& server_;
  const import_arguments& what_;
  const console& to_;
  signal_watch* const signals_;
  progress_bar* bar_ = nullptr;
  std::unique_ptr<std::FILE, closer> report_;
  std::vector<job_spec> batch_;
  std::vector<line> lines_;  // that batch_ is from
  std::size_t batch_bytes_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t complaints_ = 0;
  std::optional<std::uint64_t> stopped_at_;  // the first line that was not pushed
  bool unknown_ = false;                     // whether from there on nothing was
  bool report_lost_ = false;
  exit_code code_ = exit_code::ok;
};

std::uint64_t size_of(int file) {
  struct stat about {};
  const bool is_file = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  return is_file ? static_cast<std::uint64_t>(about.st_size) : 0;
}

}  // namespace

int run(const import_arguments& what, const console& to) {
  const bool is_input = what.file == "-";
  const int file = is_input ? ::fileno(to.in()) : ::open(what.file.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return static_cast<int>(to.complain(errno == ENOENT ? exit_code::not_found : exit_code::failed,
                                        "cannot open " + what.file + ": " + std::strerror(errno)));
  }
  // Before the client starts its thread. Not where reading may wait: there a signal ends it.
  std::optional<signal_watch> signals;
  const std::uint64_t bytes = size_of(file);
  if (bytes > 0) signals.emplace(std::initializer_list<int>{SIGINT, SIGTERM});
  const int code = with_client(what.to, to, [&](client& server) {
    return importer(server, what, to, signals ? &*signals : nullptr).run(file, bytes);
  });
  if (!is_input) ::close(file);
  return code;
}

}  // namespace sluice::jobs::cli
