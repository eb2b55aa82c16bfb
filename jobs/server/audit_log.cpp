#include "jobs/server/audit_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "sluice/sync/mutex.hpp"

namespace sluice::jobs {
namespace {

struct closer {
  void operator()(std::FILE* f) const noexcept { std::fclose(f); }
};
using file_ptr = std::unique_ptr<std::FILE, closer>;

}  // namespace

class audit_log::impl {
 public:
  impl(std::string file, log_options form) : file_(std::move(file)), form_(form) {
    form_.level = log_level::info;
  }

  void_result open() {
    file_ptr opened;
    if (!file_.empty()) {
      const int number = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
      if (number >= 0) opened.reset(::fdopen(number, "a"));
      if (opened == nullptr) {
        const int why = errno;
        if (number >= 0) ::close(number);
        return error{error_code::io_error,
                     "cannot write audit lines to " + file_ + ": " + std::strerror(why)};
      }
    }
    const std::lock_guard hold(guard_);
    lines_.reset();
    stream_ = std::move(opened);
    lines_.emplace(form_, stream_.get());
    return done{};
  }

  void write(const audit_line& line) {
    const std::lock_guard hold(guard_);
    lines_->info(
        "audit",
        {{"who", line.who}, {"from", line.from}, {"act", line.act}, {"outcome", line.outcome}});
  }

 private:
  const std::string file_;
  log_options form_;
  mutex guard_;
  file_ptr stream_;  // protected by guard_, like lines_
  std::optional<event_log> lines_;
};

result<std::unique_ptr<audit_log>> audit_log::open(std::string file, log_options form) {
  auto p = std::make_unique<impl>(std::move(file), form);
  if (auto opened = p->open(); !opened) return opened.error();
  return std::unique_ptr<audit_log>(new audit_log(std::move(p)));
}

audit_log::audit_log(std::unique_ptr<impl> p) : impl_(std::move(p)) {}
audit_log::~audit_log() = default;

void audit_log::write(const audit_line& line) {
  impl_->write(line);
}

void_result audit_log::reopen() {
  return impl_->open();
}

}  // namespace sluice::jobs
