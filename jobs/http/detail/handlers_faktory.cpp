// Workers of Faktory's protocol: who they are, and telling them to end.
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {
namespace {

constexpr std::uint64_t workers_max = 1000;  // of one page
constexpr std::uint64_t workers_otherwise = 100;

// Null, and answered: nobody speaks Faktory's protocol here, or who asks may not know.
const faktory_port* port_of(const call& c) {
  if (!sees_every_queue(c, "workers")) return nullptr;
  const auto& port = c.server.options.faktory;
  if (port) return &*port;
  c.to.refuse({error_code::not_found,
               "this server does not speak Faktory's protocol, so it has none of its workers; "
               "start it with --faktory :7419"});
  return nullptr;
}

void tell(call& c, worker_state what) {
  if (!has_no_query(c)) return;
  const faktory_port* const port = port_of(c);
  if (port == nullptr) return;
  if (auto told = port->tell(c.name, what)) {
    return answer_with(c.to, result<faktory_worker>(*std::move(told)));
  }
  c.to.refuse({error_code::not_found, "there is no worker '" + c.name.substr(0, 256) +
                                          "': it never was, or its last connection has gone"});
}

}  // namespace

void list_faktory_workers(call& c) {
  static constexpr std::array<std::string_view, 2> names = {"after", "limit"};
  const auto values = read_query(c.head.query(), names);
  if (!values) return c.to.refuse(values.error());
  const auto limit = number_or("limit", (*values)[1], workers_otherwise, 1, workers_max);
  if (!limit) return c.to.refuse(limit.error());
  const faktory_port* const port = port_of(c);
  if (port == nullptr) return;
  answer_with(c.to, result<faktory_worker_page>(port->list((*values)[0].value_or(""), *limit)));
}

void quiet_faktory_worker(call& c) {
  tell(c, worker_state::quiet);
}

void terminate_faktory_worker(call& c) {
  tell(c, worker_state::terminate);
}

}  // namespace sluice::jobs::http
