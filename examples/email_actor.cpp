// A service that sends welcome mails, as an actor. The same service as a queue with worker threads
// is email_queue.cpp: both run the same scenario, with the same result.
//
// A mail that waits holds no thread: its handler is a coroutine, and a reentrant wait admits the
// next mail while this one is in transit. The tally is the actor's own and needs no lock.
#include <functional>
#include <utility>

#include "examples/email/story.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/reentrant.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/sync/semaphore.hpp"

namespace {

using email::mail;
using email::tally;
using sluice::status;
using sluice::task;

struct finish {
  using reply = tally;
};

class email_actor : public sluice::actor<email_actor, mail, finish> {
 public:
  explicit email_actor(email::mail_server& server) : server_(server) {}

  task<> on(mail m) {
    // While no line is free, this keeps the next mail in the mailbox, which fills up.
    const status got_line = co_await free_lines_.async_acquire();
    if (!got_line) co_return;  // asked to stop
    co_await reentrant(deliver(std::move(m)));
  }

  // Handled after all mails accepted before it. If all lines are free, no mail is in transit.
  task<tally> on(finish) {
    const status all_free = co_await free_lines_.async_acquire(email::lines);
    if (all_free) close_self();
    co_return done_;
  }

 private:
  // Releases its line itself: the handler resumes only when no other handler has the exclusive
  // turn, and that handler may be waiting for this line.
  task<> deliver(mail m) {
    bool is_sent = true;
    try {
      auto sending = sluice::async_retry(email::patience(), [&] { return server_.async_send(m); });
      co_await std::move(sending);
    } catch (const sluice::retry_error&) {
      is_sent = false;
    }
    ++(is_sent ? done_.sent : done_.given_up);
    free_lines_.release();
  }

  email::mail_server& server_;
  sluice::semaphore free_lines_{email::lines};
  tally done_;
};

// Called by the scenario.
class email_service {
 public:
  explicit email_service(email::mail_server& server)
      : actor_(system_.spawn_with<email_actor>(
            // The mail that waits for a line has left the mailbox, and counts as one of the places.
            {.name = "email", .mailbox = {.capacity = email::places - 1}}, std::ref(server))) {}

  status welcome(mail m) { return actor_.send(std::move(m)); }
  status try_welcome(mail m) { return actor_.try_send(std::move(m)); }

  tally finish() {
    const tally done = actor_.ask(::finish{}).get();
    (void)actor_.ended().get();
    return done;
  }

 private:
  sluice::work_stealing_pool pool_{{.threads = 2}};
  sluice::actor_system system_{pool_};
  const sluice::ref<email_actor> actor_;
};

}  // namespace

int main() {
  email::mail_server server;
  email_service service(server);
  return email::print(email::tell(server, service));
}
