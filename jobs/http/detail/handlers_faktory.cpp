// Workers of Faktory's protocol: listing them, and changing their states.
#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"

namespace sluice::jobs::http {
namespace {

constexpr std::uint64_t workers_max = 1000;  // per page
constexpr std::uint64_t workers_otherwise = 100;

// Returns null if the request was refused: the server has no Faktory port, or the token does not
// cover all queues.
const faktory_port* port_of(const call& c) {
  if (!sees_every_queue(c, "workers")) return nullptr;
  const auto& port = c.server.options.faktory;
  if (port) return &*port;
  c.reply.refuse({error_code::not_found,
                  "this server does not accept Faktory workers; start it with --faktory :7419"});
  return nullptr;
}

void set_state(call& c, worker_state state) {
  if (!has_no_query(c)) return;
  const faktory_port* const port = port_of(c);
  if (port == nullptr) return;
  if (auto worker = port->set_state(c.name, state)) {
    return answer_with(c.reply, result<faktory_worker>(*std::move(worker)));
  }
  c.reply.refuse(
      {error_code::not_found, "there is no worker '" + c.name.substr(0, 256) +
                                  "': it never connected, or its last connection is closed"});
}

}  // namespace

void list_faktory_workers(call& c) {
  static constexpr std::array<std::string_view, 2> names = {"after", "limit"};
  const auto values = read_query(c.head.query(), names);
  if (!values) return c.reply.refuse(values.error());
  const auto limit = number_or("limit", (*values)[1], workers_otherwise, 1, workers_max);
  if (!limit) return c.reply.refuse(limit.error());
  const faktory_port* const port = port_of(c);
  if (port == nullptr) return;
  answer_with(c.reply, result<faktory_worker_page>(port->list((*values)[0].value_or(""), *limit)));
}

void quiet_faktory_worker(call& c) {
  set_state(c, worker_state::quiet);
}

void terminate_faktory_worker(call& c) {
  set_state(c, worker_state::terminate);
}

}  // namespace sluice::jobs::http
