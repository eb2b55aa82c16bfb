#pragma once

// An event loop of the HTTP server, with the state that its connections share.

#include <string>
#include <string_view>

#include "jobs/engine/engine.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/net/loop.hpp"

namespace sluice::jobs::http {

class loop final : public net::loop {
 public:
  loop(server_state& server, engine& jobs, traffic& counts, std::size_t number);

  server_state& server() noexcept { return server_; }
  engine& jobs() noexcept { return jobs_; }
  traffic& counts() noexcept { return counts_; }

  // Also subtracts the connection from the count of open connections.
  void remove(net::peer& c);

  std::string& scratch();
  std::string_view date();  // a header line

 private:
  server_state& server_;
  engine& jobs_;
  traffic& counts_;
  std::string scratch_;
  std::string date_;
  std::int64_t date_second_ = -1;
};

}  // namespace sluice::jobs::http
