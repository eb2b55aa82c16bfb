#pragma once

// Connects a command to its server and reports failures.

#include <utility>

#include "jobs/cli/arguments.hpp"
#include "jobs/cli/console.hpp"
#include "jobs/client/client.hpp"

namespace sluice::jobs::cli {

// The largest page that the server returns.
inline constexpr std::size_t page_max = 1000;

// Creates a client with the token of the file or the environment. Fails with `invalid` if a flag is
// invalid.
result<client> connect(const connection_arguments& server);

// Connects and calls `ask` with the client; `ask` returns the exit code.
template <class Ask>
int with_client(const connection_arguments& server, const console& io, Ask ask) {
  auto connected = connect(server);
  if (!connected) return static_cast<int>(io.complain(connected.error()));
  return static_cast<int>(ask(*connected));
}

}  // namespace sluice::jobs::cli
