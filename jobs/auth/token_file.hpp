#pragma once

// Stores a server's tokens in a file of its data folder that only the server's user may read.
//
// Guarantees: a write is atomic: if it fails or the power is cut, the file keeps its old content. A
// lock file serialises programs that change it. A file with permissions for other users is
// rejected:
// the hashes are useless to a reader, but a writer could add a token.
// Errors name the file, what is wrong with it and how to fix it.
//
//     auto made = change_tokens(file, [&](token_set& all) { return all.create(request, now); });

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "jobs/auth/token_set.hpp"

namespace sluice::jobs {

std::string token_file_in(const std::string& data_folder);

// Returns an empty set if the file does not exist. Fails with `io_error` if it cannot be read,
// `invalid` if other users have access, `corrupt` if its content is invalid.
result<token_set> load_tokens(const std::string& file);
void_result save_tokens(const std::string& file, const token_set& tokens);

namespace detail {

// Locks a token file while it is read, changed and written.
class token_file_lock {
 public:
  static result<token_file_lock> take(const std::string& file);
  token_file_lock(token_file_lock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  token_file_lock& operator=(token_file_lock&&) = delete;
  ~token_file_lock();

 private:
  explicit token_file_lock(int descriptor) noexcept : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace detail

// Reads the file under its lock, calls `change` with the tokens, and writes them if `change`
// succeeds.
template <std::invocable<token_set&> Change>
std::invoke_result_t<Change, token_set&> change_tokens(const std::string& file, Change change) {
  const auto lock = detail::token_file_lock::take(file);
  if (!lock) return lock.error();
  auto all = load_tokens(file);
  if (!all) return all.error();
  auto changed = change(*all);
  if (!changed) return changed;
  if (auto saved = save_tokens(file, *all); !saved) return saved.error();
  return changed;
}

}  // namespace sluice::jobs
