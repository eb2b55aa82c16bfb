#pragma once

// How every command that asks a server does so, and says what went wrong.

#include <utility>

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/console.hpp"
#include "jobs/client/client.hpp"

namespace sluice::jobs::cli {

// The most that the server returns in one page.
inline constexpr std::size_t page_max = 1000;

// With the token of the file, or of the environment. invalid: what is wrong with a flag.
result<client> connect(const connection_arguments& to);

// Opens a client and gives it to `ask`, which returns the exit code.
template <class Ask>
int with_client(const connection_arguments& at, const console& to, Ask ask) {
  auto server = connect(at);
  if (!server) return static_cast<int>(to.complain(server.error()));
  return static_cast<int>(ask(*server));
}

}  // namespace sluice::jobs::cli
