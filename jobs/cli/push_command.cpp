#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "jobs/cli/bulk_limits.hpp"
#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/job_args.hpp"
#include "jobs/cli/line_reader.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/model/time.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs::cli {
namespace {

exit_code push_one(client& server, const push_arguments& what, const console& to) {
  auto args = read_args(what.args, what.as_bytes, to);
  if (!args) return to.complain(args.error());
  job_spec spec = what.spec;
  spec.args = std::move(*args);
  if (what.delay) spec.run_at = real_time().after(*what.delay);
  if (const auto is_json = check_metadata(spec.metadata); !is_json) {
    return to.complain(is_json.error());
  }
  if (const auto is_valid = validate(spec); !is_valid) return to.complain(is_valid.error());
  const auto pushed = server.push(std::move(spec), push_limits(what.wait));
  if (!pushed) return to.complain(pushed.error());
  if (what.to.json) {
    to.line(json::to_json(*pushed));
  } else if (what.quiet) {
    if (pushed->id != 0) to.line(std::to_string(pushed->id));
  } else if (pushed->what == push_receipt::fate::duplicate) {
    to.line("job " + std::to_string(pushed->id) + " has the unique key already: nothing pushed");
  } else if (pushed->what == push_receipt::fate::dropped) {
    to.line("dropped: the queue is full");
  } else if (pushed->what == push_receipt::fate::skipped) {
    to.line("skipped: what it was to wait for can no longer come true");
  } else {
    to.line("job " + std::to_string(pushed->id) + " pushed");
  }
  return exit_code::ok;
}

// Pushes the lines of a file, as many at a time as are there, and keeps count.
class line_pusher {
 public:
  line_pusher(client& server, const push_arguments& what, const console& to)
      : server_(server), what_(what), to_(to) {}

  exit_code push_all(int from) {
    line_reader lines(from, line_bytes_max);
    for (;;) {
      auto line = lines.next();
      ++number_;
      if (!line) {
        complain(number_, line.error());
        break;
      }
      if (!*line) break;
      if (!take(**line)) break;
      const bool is_full = batch_.size() >= batch_jobs_max || batch_bytes_ >= batch_bytes_max;
      if ((is_full || lines.would_wait()) && !flush()) break;
    }
    if (!gave_up_) flush();
    report();
    return code_;
  }

 private:
  // False: there is no use in going on.
  bool take(const std::string& line) {
    if (line.find_first_not_of(" \t") == std::string::npos) return true;
    auto spec =
        json::read<job_spec>(line, {.now = real_time().after(milliseconds(0)), .line = number_});
    if (!spec) {
      refuse(number_, spec.error());
      if (what_.mode == bulk::each) return true;
      gave_up_ = true;  // the others of its batch must not be pushed without it
      return false;
    }
    batch_.push_back(std::move(*spec));
    numbers_.push_back(number_);
    batch_bytes_ += line.size();
    return true;
  }

  bool flush() {
    if (batch_.empty()) return true;
    const auto results =
        server_.push_many(std::exchange(batch_, {}), what_.mode, push_limits(what_.wait));
    const auto numbers = std::exchange(numbers_, {});
    batch_bytes_ = 0;
    for (std::size_t i = 0; i < results.size(); ++i) count(results[i], numbers[i]);
    show_progress();
    return !gave_up_;
  }

  void count(const result<push_receipt>& one, std::size_t line) {
    if (what_.to.json) {
      std::string item;
      json::write_item(item, one);
      to_.line(item);
    }
    if (!one) return refuse(line, one.error());
    switch (one->what) {
      case push_receipt::fate::accepted:
        ++pushed_;
        if (what_.quiet && !what_.to.json) to_.line(std::to_string(one->id));
        break;
      case push_receipt::fate::duplicate:
        ++duplicates_;
        break;
      case push_receipt::fate::dropped:
        ++dropped_;
        break;
      case push_receipt::fate::skipped:
        ++skipped_;
        break;
    }
  }

  void refuse(std::size_t line, const error& why) {
    ++refused_;
    complain(line, why);
    // What the server cannot do for one it cannot do for the next.
    if (why.code == error_code::unavailable || why.code == error_code::shutting_down ||
        why.code == error_code::disk_full || why.code == error_code::timed_out ||
        what_.mode == bulk::all_or_nothing) {
      gave_up_ = true;
    }
  }

  void complain(std::size_t line, const error& why) {
    if (code_ == exit_code::ok) code_ = exit_code_for(why.code);
    constexpr std::uint64_t complaints_max = 20;
    if (++complaints_ > complaints_max) return;
    to_.progress("");
    to_.complain(code_, "line " + std::to_string(line) + ": " + why.message);
    if (complaints_ == complaints_max) to_.note("(further complaints are only counted)");
  }

  void show_progress() const {
    to_.progress(counted(pushed_, "job", "jobs") + " pushed, " + about_rate());
  }

  std::string about_rate() const {
    const std::chrono::duration<double> took = seam::now() - began_;
    return grouped(static_cast<std::uint64_t>(static_cast<double>(pushed_) /
                                              std::max(took.count(), 1e-3))) +
           "/s";
  }

  void report() const {
    to_.progress("");
    std::string text = counted(pushed_, "job", "jobs") + " pushed";
    if (duplicates_ > 0) text += ", " + counted(duplicates_, "duplicate", "duplicates");
    if (dropped_ > 0) text += ", " + grouped(dropped_) + " dropped";
    if (skipped_ > 0) text += ", " + grouped(skipped_) + " skipped";
    if (refused_ > 0) text += ", " + grouped(refused_) + " refused";
    if (gave_up_) text += "; gave up at line " + std::to_string(number_);
    if (what_.to.json || what_.quiet) {
      if (refused_ > 0) to_.note(text);
    } else {
      to_.line(text);
    }
  }

  client& server_;
  const push_arguments& what_;
  const console& to_;
  const time_point began_ = seam::now();
  std::vector<job_spec> batch_;
  std::vector<std::size_t> numbers_;  // of the lines that batch_ is from
  std::size_t batch_bytes_ = 0;
  std::size_t number_ = 0;
  std::uint64_t pushed_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t complaints_ = 0;
  bool gave_up_ = false;
  exit_code code_ = exit_code::ok;
};

exit_code push_lines(client& server, const push_arguments& what, const console& to) {
  if (what.ndjson == "-") return line_pusher(server, what, to).push_all(::fileno(to.in()));
  const int file = ::open(what.ndjson.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return to.complain(errno == ENOENT ? exit_code::not_found : exit_code::failed,
                       "cannot open " + what.ndjson + ": " + std::strerror(errno));
  }
  const exit_code code = line_pusher(server, what, to).push_all(file);
  ::close(file);
  return code;
}

}  // namespace

int run(const push_arguments& what, const console& to) {
  return with_client(what.to, to, [&](client& server) {
    return what.ndjson.empty() ? push_one(server, what, to) : push_lines(server, what, to);
  });
}

}  // namespace sluice::jobs::cli
