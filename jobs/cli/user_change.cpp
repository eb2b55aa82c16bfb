#include "jobs/cli/user_change.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sluice/base/check.hpp"

namespace sluice::jobs::cli {
namespace {

// glibc's setresuid changes every thread; the system call changes only the calling thread.
void set_user_of_this_thread(uid_t effective) {
#ifdef SYS_setresuid32
  constexpr long call = SYS_setresuid32;
#else
  constexpr long call = SYS_setresuid;
#endif
  constexpr auto as_it_is = static_cast<uid_t>(-1);
  check(::syscall(call, as_it_is, effective, as_it_is) == 0, "sluice::jobs::cli::user_change",
        "to run as root or as a user that root has become");
}

// Checks that all threads have the user: glibc changes other threads by signals, and silently
// leaves a thread unchanged if the signal cannot be queued. Returns true if /proc does not list the
// threads.
bool is_every_thread(uid_t user) {
  std::error_code failed;
  for (std::filesystem::directory_iterator it("/proc/self/task", failed), end; !failed && it != end;
       it.increment(failed)) {
    std::ifstream status(it->path() / "status");  // empty for a thread that has just ended
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("Uid:")) continue;
      std::istringstream ids(line.substr(4));
      for (uid_t id = 0; ids >> id;) {
        if (id != user) return false;
      }
    }
  }
  return true;
}

}  // namespace

error user_change::cannot(error_code code, const std::string& why) const {
  return {code, "cannot switch to user " + name_ + ": " + why};
}

result<user_change> user_change::begin(const std::string& name) {
  if (name.empty()) return user_change();
  user_change change(name, 0, 0);
  errno = 0;
  const passwd* const user = ::getpwnam(name.c_str());
  if (user == nullptr) {
    return change.cannot(error_code::not_found, errno == 0 ? "no such user" : std::strerror(errno));
  }
  if (::geteuid() == user->pw_uid && ::getuid() == user->pw_uid) return user_change();
  if (::geteuid() != 0) return change.cannot(error_code::forbidden, "requires root");
  change.user_ = user->pw_uid;
  change.group_ = user->pw_gid;
  // The groups first: the user must not change them.
  if (::initgroups(user->pw_name, change.group_) != 0 ||
      ::setresgid(change.group_, change.group_, change.group_) != 0 ||
      ::setresuid(0, change.user_, 0) != 0) {
    return change.cannot(error_code::io_error, std::strerror(errno));
  }
  return change;
}

user_change::root_scope::root_scope(const user_change& of) : of_(of) {
  if (of_.is_needed_) set_user_of_this_thread(0);
}

user_change::root_scope::~root_scope() {
  if (of_.is_needed_) set_user_of_this_thread(of_.user_);
}

void_result user_change::give(const std::string& file) const {
  if (!is_needed_ || ::lchown(file.c_str(), user_, group_) == 0) return done{};
  return error{error_code::io_error,
               "cannot give " + file + " to the user " + name_ + ": " + std::strerror(errno)};
}

void_result user_change::finish() const {
  if (!is_needed_) return done{};
  if (::setresuid(user_, user_, user_) != 0) {
    return cannot(error_code::io_error, std::strerror(errno));
  }
  if (is_every_thread(user_)) return done{};
  return cannot(error_code::io_error, "a thread still has another user; start the program again");
}

}  // namespace sluice::jobs::cli
