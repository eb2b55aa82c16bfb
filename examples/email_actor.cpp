// A service that sends welcome mails, as an actor. The same service as a queue with worker threads
// is email_queue.cpp: the same story happens to both, and both end the same way.
//
// No thread waits while a mail does: its handler is a coroutine, and lets the next mail in while
// this one is on its way. The tally is the actor's own and has no lock.
#include <functional>
#include <utility>

#include "examples/email/story.hpp"
#include "sluice/actor/actor_system.hpp"
#include "sluice/actor/letting_others_in.hpp"
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
    if (!got_line) co_return;  // told to stop
    co_await letting_others_in(deliver(std::move(m)));
  }

  // Comes after the mails that were accepted before it. All lines free: none is on its way.
  task<tally> on(finish) {
    const status all_free = co_await free_lines_.async_acquire(email::lines);
    if (all_free) close_self();
    co_return done_;
  }

 private:
  // Gives its line back itself: the handler goes on only when no other has the floor, and the one
  // that has it may be waiting for this line.
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

// What the story calls.
class email_service {
 public:
  explicit email_service(email::mail_server& server)
      : actor_(system_.spawn_with<email_actor>(
            // The mail that waits for a line has left the mailbox: that is one of the places.
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
