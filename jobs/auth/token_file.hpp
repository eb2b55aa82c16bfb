#pragma once

// The tokens of a server in a file of its data folder, which only its user may read.
//
// Guarantees: what is read was written whole; a write that fails, or a power cut in the middle of
// it, leaves the file as it was. Two programs that change it at once do so one after the other.
// A file that others can read is refused: its hashes are of no use to them, but whoever may write
// beside it could add a token.
// Errors name the file, what is wrong with it and what to do.
//
//     auto made = change_tokens(file, [&](token_set& all) { return all.create(what, now); });

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "jobs/auth/token_set.hpp"

namespace sluice::jobs {

std::string token_file_in(const std::string& data_folder);

// A file that is not there is a set without tokens. io_error: cannot be read; invalid: may be read
// by others; corrupt: what it says.
result<token_set> load_tokens(const std::string& file);
void_result save_tokens(const std::string& file, const token_set& tokens);

namespace detail {

// Held while a file of tokens is read, changed and written.
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

// Reads the file, lets `change` have the tokens, and writes them if it gives a value.
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
