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

// The library's own calls change every thread, the system's the one that calls.
void set_user_of_this_thread(uid_t effective) {
#ifdef SYS_setresuid32
  constexpr long call = SYS_setresuid32;
#else
  constexpr long call = SYS_setresuid;
#endif
  constexpr auto as_it_is = static_cast<uid_t>(-1);
  check(::syscall(call, as_it_is, effective, as_it_is) == 0, "sluice::jobs::cli::user_change",
        "to be root, or a user that root has become");
}

// The library changes the other threads by signals. One that could not be sent, because too many of
// others wait, leaves a thread as it was and is told to nobody. Where the system does not say who
// its threads are, there is nothing to look at.
bool is_every_thread(uid_t user) {
  std::error_code failed;
  for (std::filesystem::directory_iterator it("/proc/self/task", failed), end; !failed && it != end;
       it.increment(failed)) {
    std::ifstream status(it->path() / "status");  // of one that has just ended: empty
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
  return {code, "cannot become the user " + name_ + ": " + why};
}

result<user_change> user_change::begin(const std::string& name) {
  if (name.empty()) return user_change();
  user_change it(name, 0, 0);
  errno = 0;
  const passwd* const user = ::getpwnam(name.c_str());
  if (user == nullptr) {
    return it.cannot(error_code::not_found, errno == 0 ? "there is none" : std::strerror(errno));
  }
  if (::geteuid() == user->pw_uid && ::getuid() == user->pw_uid) return user_change();
  if (::geteuid() != 0) return it.cannot(error_code::forbidden, "only root can");
  it.user_ = user->pw_uid;
  it.group_ = user->pw_gid;
  // The groups first, and for good: after the user is changed they cannot be.
  if (::initgroups(user->pw_name, it.group_) != 0 ||
      ::setresgid(it.group_, it.group_, it.group_) != 0 || ::setresuid(0, it.user_, 0) != 0) {
    return it.cannot(error_code::io_error, std::strerror(errno));
  }
  return it;
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
  return cannot(error_code::io_error, "one of its threads is still another; start it again");
}

}  // namespace sluice::jobs::cli
