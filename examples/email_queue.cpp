// A service that sends welcome mails, as a bounded queue and worker threads. The same service as an
// actor is email_actor.cpp: both run the same scenario, with the same result.
//
// A thread blocks wherever a mail waits: for the server, or for its next attempt. The workers'
// shared data has a lock.
#include <thread>
#include <utility>
#include <vector>

#include "examples/email/story.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/queue/bounded_queue.hpp"
#include "sluice/sync/guarded.hpp"

namespace {

using email::mail;
using email::tally;
using sluice::status;

class email_service {
 public:
  explicit email_service(email::mail_server& server) : server_(server) {
    for (int i = 0; i < email::lines; ++i) {
      workers_.emplace_back([this] {
        while (auto m = line_.pop()) deliver(*m);
      });
    }
  }

  status welcome(mail m) { return line_.push(std::move(m)); }
  status try_welcome(mail m) { return line_.try_push(std::move(m)); }

  tally finish() {
    line_.close();     // the workers send the queued mails, and end
    workers_.clear();  // joins them
    return done_.with([](const tally& t) { return t; });
  }

 private:
  void deliver(const mail& m) {
    bool is_sent = true;
    try {
      sluice::retry(email::patience(), [&] { server_.send(m); });
    } catch (const sluice::retry_error&) {
      is_sent = false;
    }
    done_.with([&](tally& t) { ++(is_sent ? t.sent : t.given_up); });
  }

  email::mail_server& server_;
  sluice::bounded_queue<mail> line_{email::places};
  sluice::guarded<tally> done_;
  std::vector<std::jthread> workers_;
};

}  // namespace

int main() {
  email::mail_server server;
  email_service service(server);
  return email::print(email::tell(server, service));
}
