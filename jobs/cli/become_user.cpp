#include "jobs/cli/become_user.hpp"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::jobs::cli {

void_result become_user(const std::string& name) {
  const auto cannot = [&](error_code code, const std::string& why) {
    return error{code, "cannot become the user " + name + ": " + why};
  };
  errno = 0;
  const passwd* const user = ::getpwnam(name.c_str());
  if (user == nullptr) {
    return cannot(error_code::not_found, errno == 0 ? "there is none" : std::strerror(errno));
  }
  if (::geteuid() == user->pw_uid && ::getuid() == user->pw_uid) return done{};
  if (::geteuid() != 0) return cannot(error_code::forbidden, "only root can");
  // The groups first: after the user is changed they cannot be.
  if (::initgroups(user->pw_name, user->pw_gid) != 0 || ::setgid(user->pw_gid) != 0 ||
      ::setuid(user->pw_uid) != 0) {
    return cannot(error_code::io_error, std::strerror(errno));
  }
  return done{};
}

}  // namespace sluice::jobs::cli
