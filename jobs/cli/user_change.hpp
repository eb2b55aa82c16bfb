#pragma once

// Drops root privileges in two steps. After `begin`, files are created as the other user, but
// privileged addresses can still be bound; after `finish`, the process is that user permanently.
//
// Call `begin` before starting threads and creating files. Between the steps, one thread at a time
// can be root for a moment; files of the other threads still belong to the user. A thread started
// in that moment is root until `finish`. Does nothing if the process already is that user or no
// user is given.
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
  // Fails with `not_found` (no such user), `forbidden` (requires root) or `io_error`.
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
  // Changes the owner of a file that was created as root.
  void_result give(const std::string& file) const;

  // Changes the user of all threads; cannot be undone.
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
