#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/connection.hpp"
#include "jobs/cli/progress_bar.hpp"
#include "jobs/cli/words.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/model/own_queue.hpp"

namespace sluice::jobs::cli {
namespace {

// Target size of a page, independent of the size of its jobs.
constexpr std::size_t page_bytes_wanted = std::size_t{8} << 20;
constexpr std::size_t page_jobs_first = 32;
constexpr std::size_t page_jobs_max = 1000;

bool is_wanted(job_state state, const std::vector<job_state>& states) {
  if (states.empty()) return !has_ended(state);
  return std::ranges::find(states, state) != states.end();
}

// Standard output, or a file that gets its final name when it is complete.
class destination {
 public:
  static result<destination> open(const std::string& file) {
    if (file.empty()) return destination(stdout, {});
    std::FILE* out = std::fopen((file + ".partial").c_str(), "we");
    if (out != nullptr) return destination(out, file);
    return error{errno == ENOENT ? error_code::not_found : error_code::io_error,
                 "cannot write " + file + ".partial: " + std::strerror(errno)};
  }

  void_result write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), out_.get()) == text.size()) return done{};
    return failed();
  }
  void_result finish() {
    if (std::fflush(out_.get()) != 0) return failed();
    if (name_.empty()) return done{};
    if (::fsync(::fileno(out_.get())) != 0) return failed();
    if (std::fclose(out_.release()) != 0) return failed();
    if (std::rename((name_ + ".partial").c_str(), name_.c_str()) != 0) return failed();
    return done{};
  }

 private:
  struct closer {
    void operator()(std::FILE* file) const {
      if (file != stdout) std::fclose(file);
    }
  };

  destination(std::FILE* out, std::string name) : out_(out), name_(std::move(name)) {}
  error failed() const {
    return {errno == ENOSPC ? error_code::disk_full : error_code::io_error,
            "cannot write " + (name_.empty() ? "standard output" : name_ + ".partial") + ": " +
                std::strerror(errno)};
  }

  std::unique_ptr<std::FILE, closer> out_;
  std::string name_;
};

// Returns whether the job still waits for others: it must not run without them.
bool waits_for_others(const job& j) {
  return j.state == job_state::held && !j.spec.after.empty() && j.blockers > 0;
}

// Clears the fields that refer to ids of this server, which are invalid on another server. Returns
// whether any was set.
bool detach(job_spec& spec) {
  const bool was_tied = spec.batch != 0 || !spec.after.empty() || !spec.step.empty();
  spec.batch = 0;
  spec.after.clear();
  spec.step.clear();
  return was_tied;
}

class exporter {
 public:
  exporter(client& server, const export_arguments& args, const console& io)
      : server_(server), args_(args), io_(io) {}

  exit_code run() {
    auto out = destination::open(args_.file);
    if (!out) return io_.complain(out.error());
    const auto expected = expect();
    if (!expected) return io_.complain(expected.error());
    progress_bar bar(
        io_, {.doing = "exporting", .unit = "jobs", .total = *expected, .quiet = args_.quiet});
    list_request next{.queue = args_.queue, .kind = args_.kind, .limit = page_jobs_first};
    if (args_.states.size() == 1) next.state = args_.states.front();
    for (;;) {
      auto page = server_.list(next);
      if (!page) return give_up(bar, page.error());
      if (auto written = write(*page, *out); !written) return give_up(bar, written.error());
      bar.at(exported_);
      if (!page->cursor) break;
      next.after = *page->cursor;
      next.limit = next_limit(next.limit);
    }
    bar.finish();
    if (auto whole = out->finish(); !whole) return io_.complain(whole.error());
    report();
    return exit_code::ok;
  }

 private:
  // Estimates the number of jobs from the queues' counts, which change during the export.
  result<std::uint64_t> expect() {
    std::uint64_t jobs = 0;
    const auto queues = server_.queues();
    if (!queues) return queues.error();
    for (const queue_info& q : *queues) {
      if (args_.queue.empty() ? is_servers_own(q.name) : q.name != args_.queue) continue;
      for (int s = 0; s <= static_cast<int>(job_state::cancelled); ++s) {
        const auto state = static_cast<job_state>(s);
        if (is_wanted(state, args_.states)) jobs += q.counts.of(state);
      }
    }
    return args_.kind.empty() ? jobs : 0;  // there are no counts per kind
  }

  void_result write(job_page& page, destination& out) {
    std::string lines;
    for (job& j : page.jobs) {
      if (!is_wanted(j.state, args_.states)) continue;
      // No server accepts pushes to its own queues from outside.
      if (args_.queue.empty() && is_servers_own(j.spec.queue)) continue;
      if (waits_for_others(j) && !args_.detach) {
        ++left_out_;
        continue;
      }
      if (detach(j.spec)) ++detached_;
      json::write(lines, j.spec);
      lines += '\n';
      ++exported_;
    }
    page_bytes_ = lines.size();
    return out.write(lines);
  }

  std::size_t next_limit(std::size_t limit) const {
    if (page_bytes_ > page_bytes_wanted) return std::max<std::size_t>(1, limit / 4);
    if (page_bytes_ < page_bytes_wanted / 4) return std::min(page_jobs_max, limit * 2);
    return limit;
  }

  exit_code give_up(progress_bar& bar, const error& why) {
    bar.finish();
    io_.note(counted(exported_, "job", "jobs") + " written before the failure" +
             (args_.file.empty() ? "" : ", to " + args_.file + ".partial"));
    return io_.complain(why);
  }

  void report() const {
    if (args_.server.json) {
      std::string line;
      json::json_writer out(line);
      out.begin_object().key("exported").value(exported_);
      out.key("detached").value(detached_).key("left_out").value(left_out_).end_object();
      args_.file.empty() ? io_.note(line) : io_.line(line);
      return;
    }
    if (left_out_ > 0) {
      io_.note(counted(left_out_, "job waits for others and is", "jobs wait for others and are") +
               " omitted; --detach writes them without their conditions");
    }
    if (args_.quiet) return;
    io_.note(counted(exported_, "job", "jobs") + " exported" +
             (args_.file.empty() ? "" : " to " + args_.file));
    if (detached_ > 0) {
      io_.note(counted(detached_, "of these was", "of these were") +
               " part of a batch or waited for others; written without these fields");
    }
  }

  client& server_;
  const export_arguments& args_;
  const console& io_;
  std::uint64_t exported_ = 0;
  std::uint64_t detached_ = 0;
  std::uint64_t left_out_ = 0;
  std::size_t page_bytes_ = 0;
};

}  // namespace

int run(const export_arguments& args, const console& io) {
  return with_client(args.server, io,
                     [&](client& server) { return exporter(server, args, io).run(); });
}

}  // namespace sluice::jobs::cli
