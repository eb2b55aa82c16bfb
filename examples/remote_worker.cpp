// A worker for a remote job server.
//
//     remote_worker http://127.0.0.1:7433     until Ctrl-C; running jobs are finished
//     remote_worker --demo                    with a server of its own and a few jobs, then ends
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "jobs/client/client.hpp"
#include "jobs/engine/engine.hpp"
#include "jobs/http/http_server.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "jobs/worker/worker.hpp"
#include "sluice/future/timers.hpp"

using namespace std::chrono_literals;
namespace jobs = sluice::jobs;

namespace {

struct mail {
  std::string recipient;
  std::vector<std::string> lines;

  static constexpr auto fields =
      std::tuple{jobs::field("to", &mail::recipient), jobs::field("lines", &mail::lines)};
};

// A function is called on a thread of the worker's pool. It returns the job's result.
std::size_t deliver(const mail& m, jobs::job_context& ctx) {
  std::size_t bytes = 0;
  for (const std::string& line : m.lines) {
    if (ctx.stop_requested()) throw std::runtime_error("stopped between two lines");
    bytes += line.size();
  }
  std::printf("job %llu: %zu bytes to %s\n", static_cast<unsigned long long>(ctx.id()), bytes,
              m.recipient.c_str());
  return bytes;
}

// A coroutine holds no thread while it waits; a stop ends its waits.
sluice::task<std::string> remind(const mail& m) {
  const sluice::status waited = co_await sluice::sleep_for(10ms);
  if (!waited) throw std::runtime_error("stopped while it waited");
  if (m.recipient.empty()) throw jobs::job_failed({.message = "no recipient", .for_good = true});
  co_return "reminded " + m.recipient;
}

void show(const jobs::worker_event& e) {
  if (e.kind == jobs::worker_event::event_kind::started) return;
  std::printf("%s%s %s\n", std::string(to_string(e.kind)).c_str(),
              e.job ? (" job " + std::to_string(e.job->id)).c_str() : "", e.message.c_str());
}

int work(const std::string& url, const sigset_t& signals) {
  auto server = jobs::client::open({.url = url});
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 2;
  }
  jobs::worker w(
      jobs::work_from(*server),
      {.queues = {"mail", "default"}, .concurrency = 16, .prefetch = 16, .on_event = show});
  w.handle("mail", deliver);
  w.handle("reminder", remind);
  w.start();

  int signal = 0;
  sigwait(&signals, &signal);  // Ctrl-C, or kill
  return w.stop(sluice::deadline::after(20s)) ? 0 : 1;
}

// The same, with a server in this program.
int demo() {
  auto engine = jobs::engine::open(jobs::make_memory_store()).value();
  jobs::http_server http({.port = 0});
  const auto port = http.start(*engine);
  if (!port) return 2;
  auto server = jobs::client::open({.url = "http://127.0.0.1:" + std::to_string(*port)}).value();

  jobs::worker w(jobs::work_from(server), {.queues = {"mail"}, .on_event = show});
  w.handle("mail", deliver);
  w.handle("reminder", remind);
  w.start();

  const mail letter{.recipient = "ada", .lines = {"Dear Ada,", "it works."}};
  const auto sent = server.push({.queue = "mail", .kind = "mail", .args = jobs::encode(letter)});
  const auto reminded =
      server.push({.queue = "mail", .kind = "reminder", .args = jobs::encode(letter)});
  const auto nobody =
      server.push({.queue = "mail", .kind = "reminder", .args = jobs::encode(mail{})});
  if (!sent || !reminded || !nobody) return 1;
  const auto until = sluice::deadline::after(30s);
  const auto first = server.wait(sent->id, until);
  const auto second = server.wait(reminded->id, until);
  const auto third = server.wait(nobody->id, until);
  const bool ok = first && second && third && first->result == jobs::payload{"18"} &&
                  second->result == jobs::payload{R"("reminded ada")"} &&
                  third->state == jobs::job_state::dead;
  std::printf("%s\n", ok ? "all three ended as they should" : "something went wrong");
  return w.stop(until) && ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--demo") return demo();
  sigset_t signals;  // before any thread starts, so that threads inherit the mask
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return work(argc > 1 ? argv[1] : "", signals);
}
