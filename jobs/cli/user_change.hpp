#pragma once

// Gives up being root in two steps: files are another user's from the first, addresses that only
// root may have can still be taken, and after that the process is that user for good.
//
// Begin before there are threads and before files are made. Between the steps one thread at a time
// can be root for a moment: the others make files meanwhile, and those stay the user's. Threads
// that are started in that moment are root until the last step. Nothing to do when the process is
// that user already, or none is named.
//
//     auto user = user_change::begin("nobody");
//     if (!user) return complain(user.error());
//     open_files();
//     {
//       const auto as_root = user->root_in_this_thread();
//       listen();
//     }
//     if (auto changed = user->finish(); !changed) return complain(changed.error());

#include <sys/types.h>

#include <string>
#include <utility>

#include "jobs/model/result.hpp"

namespace sluice::jobs::cli {

class user_change {
 public:
  // not_found: no such user; forbidden: only root can; io_error: what the system says.
  static result<user_change> begin(const std::string& name);

  class root_scope {
   public:
    explicit root_scope(const user_change& of);
    ~root_scope();
    root_scope(const root_scope&) = delete;
    root_scope& operator=(const root_scope&) = delete;

   private:
    const user_change& of_;
  };
  root_scope root_in_this_thread() const { return root_scope(*this); }
  // A file that was made as root becomes the user's.
  void_result give(const std::string& file) const;

  // In every thread, and nothing leads back.
  void_result finish() const;

 private:
  user_change() = default;
  user_change(std::string name, uid_t user, gid_t group)
      : name_(std::move(name)), user_(user), group_(group), is_needed_(true) {}
  error cannot(error_code code, const std::string& why) const;

  std::string name_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  bool is_needed_ = false;
};

}  // namespace sluice::jobs::cli
