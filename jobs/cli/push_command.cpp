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

exit_code push_one(client& server, const push_arguments& args, const console& io) {
  auto read = read_args(args.args, args.as_bytes, io);
  if (!read) return io.complain(read.error());
  job_spec spec = args.spec;
  spec.args = std::move(*read);
  if (args.delay) spec.run_at = real_time().after(*args.delay);
  if (const auto is_json = check_metadata(spec.metadata); !is_json) {
    return io.complain(is_json.error());
  }
  if (const auto is_valid = validate(spec); !is_valid) return io.complain(is_valid.error());
  const auto pushed = server.push(std::move(spec), push_limits(args.wait));
  if (!pushed) return io.complain(pushed.error());
  if (args.server.json) {
    io.line(json::to_json(*pushed));
  } else if (args.quiet) {
    if (pushed->id != 0) io.line(std::to_string(pushed->id));
  } else if (pushed->outcome == push_receipt::fate::duplicate) {
    io.line("job " + std::to_string(pushed->id) + " already has the unique key: nothing pushed");
  } else if (pushed->outcome == push_receipt::fate::dropped) {
    io.line("dropped: the queue is full");
  } else if (pushed->outcome == push_receipt::fate::skipped) {
    io.line("skipped: its conditions can no longer be met");
  } else {
    io.line("job " + std::to_string(pushed->id) + " pushed");
  }
  return exit_code::ok;
}

// Pushes the lines of a file in requests of the lines that are available, and counts the results.
class line_pusher {
 public:
  line_pusher(client& server, const push_arguments& args, const console& io)
      : server_(server), args_(args), io_(io) {}

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
  // Returns false to stop.
  bool take(const std::string& line) {
    if (line.find_first_not_of(" \t") == std::string::npos) return true;
    auto spec =
        json::read<job_spec>(line, {.now = real_time().after(milliseconds(0)), .line = number_});
    if (!spec) {
      refuse(number_, spec.error());
      if (args_.mode == bulk::each) return true;
      gave_up_ = true;  // the request must be pushed as a whole or not at all
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
        server_.push_many(std::exchange(batch_, {}), args_.mode, push_limits(args_.wait));
    const auto numbers = std::exchange(numbers_, {});
    batch_bytes_ = 0;
    for (std::size_t i = 0; i < results.size(); ++i) count(results[i], numbers[i]);
    show_progress();
    return !gave_up_;
  }

  void count(const result<push_receipt>& one, std::size_t line) {
    if (args_.server.json) {
      std::string item;
      json::write_item(item, one);
      io_.line(item);
    }
    if (!one) return refuse(line, one.error());
    switch (one->outcome) {
      case push_receipt::fate::accepted:
        ++pushed_;
        if (args_.quiet && !args_.server.json) io_.line(std::to_string(one->id));
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
    // The next line would fail, too.
    if (why.code == error_code::unavailable || why.code == error_code::shutting_down ||
        why.code == error_code::disk_full || why.code == error_code::timed_out ||
        args_.mode == bulk::all_or_nothing) {
      gave_up_ = true;
    }
  }

  void complain(std::size_t line, const error& why) {
    if (code_ == exit_code::ok) code_ = exit_code_for(why.code);
    constexpr std::uint64_t complaints_max = 20;
    if (++complaints_ > complaints_max) return;
    io_.progress("");
    io_.complain(code_, "line " + std::to_string(line) + ": " + why.message);
    if (complaints_ == complaints_max) io_.note("(further errors are counted, not printed)");
  }

  void show_progress() const {
    io_.progress(counted(pushed_, "job", "jobs") + " pushed, " + about_rate());
  }

  std::string about_rate() const {
    const std::chrono::duration<double> took = seam::now() - began_;
    return grouped(static_cast<std::uint64_t>(static_cast<double>(pushed_) /
                                              std::max(took.count(), 1e-3))) +
           "/s";
  }

  void report() const {
    io_.progress("");
    std::string text = counted(pushed_, "job", "jobs") + " pushed";
    if (duplicates_ > 0) text += ", " + counted(duplicates_, "duplicate", "duplicates");
    if (dropped_ > 0) text += ", " + grouped(dropped_) + " dropped";
    if (skipped_ > 0) text += ", " + grouped(skipped_) + " skipped";
    if (refused_ > 0) text += ", " + grouped(refused_) + " refused";
    if (gave_up_) text += "; stopped at line " + std::to_string(number_);
    if (args_.server.json || args_.quiet) {
      if (refused_ > 0) io_.note(text);
    } else {
      io_.line(text);
    }
  }

  client& server_;
  const push_arguments& args_;
  const console& io_;
  const time_point began_ = seam::now();
  std::vector<job_spec> batch_;
  std::vector<std::size_t> numbers_;  // line numbers of batch_
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

exit_code push_lines(client& server, const push_arguments& args, const console& io) {
  if (args.ndjson == "-") return line_pusher(server, args, io).push_all(::fileno(io.in()));
  const int file = ::open(args.ndjson.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return io.complain(errno == ENOENT ? exit_code::not_found : exit_code::failed,
                       "cannot open " + args.ndjson + ": " + std::strerror(errno));
  }
  const exit_code code = line_pusher(server, args, io).push_all(file);
  ::close(file);
  return code;
}

}  // namespace

int run(const push_arguments& args, const console& io) {
  return with_client(args.server, io, [&](client& server) {
    return args.ndjson.empty() ? push_one(server, args, io) : push_lines(server, args, io);
  });
}

}  // namespace sluice::jobs::cli
