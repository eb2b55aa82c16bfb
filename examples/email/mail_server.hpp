#pragma once

// A stand-in for a mail server: slow, rejects some mails at first and a few for ever, and hangs on
// request. Its treatment of a mail depends on the mail alone, so that every run ends the same way.

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "sluice/future/task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/sync/event.hpp"
#include "sluice/sync/guarded.hpp"

namespace email {

struct mail {
  int user = 0;
  std::string text;
};

struct mail_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Counts of the server.
struct books {
  std::map<int, int> attempts;  // for each user
  std::map<int, int> received;
  int at_once = 0;
  int at_once_most = 0;
};

class mail_server {
 public:
  // Both throw mail_error if the mail was not accepted.
  void send(const mail& m) {
    up_.wait();
    const arrived here(*this);
    std::this_thread::sleep_for(takes);
    take(m);
  }
  sluice::task<> async_send(const mail& m) {
    const sluice::status is_up = co_await up_.async_wait();
    if (!is_up) throw mail_error("asked to stop");
    const arrived here(*this);
    const sluice::status slept = co_await sluice::sleep_for(takes);
    if (!slept) throw mail_error("asked to stop");
    take(m);
  }

  void hang() { up_.reset(); }
  void go_on() { up_.set(); }

  // How often the server rejects a mail to this user before it accepts one.
  static int refusals(int user) {
    if (user % 50 == 49) return 1'000;
    if (user % 25 == 7) return 2;
    return user % 10 == 3 ? 1 : 0;
  }

  books look() const {
    return books_.with([](const books& b) { return b; });
  }

 private:
  static constexpr std::chrono::microseconds takes{500};

  class arrived {
   public:
    explicit arrived(mail_server& at) : at_(at) {
      at_.books_.with([](books& b) { b.at_once_most = std::max(b.at_once_most, ++b.at_once); });
    }
    arrived(const arrived&) = delete;
    arrived& operator=(const arrived&) = delete;
    ~arrived() {
      at_.books_.with([](books& b) { --b.at_once; });
    }

   private:
    mail_server& at_;
  };

  void take(const mail& m) {
    const bool is_taken = books_.with([&](books& b) {
      if (++b.attempts[m.user] <= refusals(m.user)) return false;
      ++b.received[m.user];
      return true;
    });
    if (!is_taken) throw mail_error("421 try again later");
  }

  sluice::event up_;
  sluice::guarded<books> books_;
};

}  // namespace email
