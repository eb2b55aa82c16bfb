#pragma once

// The scenario for both forms of the email service: users sign up, the mail server hangs, the queue
// is full, the server recovers, the service ends.

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "examples/email/mail_server.hpp"
#include "sluice/base/outcome.hpp"
#include "sluice/flow/retry.hpp"

namespace email {

constexpr int lines = 4;    // mails in transit to the server at a time
constexpr int places = 16;  // mails that wait for a line
constexpr int users = 400;
constexpr int too_many = 10;  // sign-ups while all lines and places are taken

inline sluice::retry_policy patience() {
  using namespace std::chrono_literals;
  return {.attempts_max = 3, .first_delay = 1ms};
}

// Counts of the service itself, at its end.
struct tally {
  int sent = 0;
  int given_up = 0;
};

struct summary {
  int accepted = 0;
  int refused = 0;  // with "busy", at once
  int closed = 0;   // arrived after the end
  tally done{};
  int attempts = 0;
  int received = 0;  // by the server
  int twice = 0;
  bool kept_to_its_lines = false;

  friend bool operator==(const summary& a, const summary& b) {
    return a.accepted == b.accepted && a.refused == b.refused && a.closed == b.closed &&
           a.done.sent == b.done.sent && a.done.given_up == b.done.given_up &&
           a.attempts == b.attempts && a.received == b.received && a.twice == b.twice &&
           a.kept_to_its_lines == b.kept_to_its_lines;
  }
};

// Service has welcome(mail), which waits for capacity; try_welcome(mail), which does not; and
// finish(), which sends all accepted mails and accepts no others. A handler of sign-up requests
// would call these.
template <class Service>
summary tell(mail_server& server, Service& service) {
  const auto mail_of = [](int user) { return mail{user, "welcome, user " + std::to_string(user)}; };
  summary s;
  int user = 0;
  server.hang();  // no mail leaves: the lines and then the places fill up
  for (; user < lines + places; ++user) s.accepted += service.welcome(mail_of(user)) ? 1 : 0;
  for (int i = 0; i < too_many; ++i) {
    s.refused += service.try_welcome(mail_of(user + i)) == sluice::status::full ? 1 : 0;  // a 503
  }
  server.go_on();
  // They retry, and many more sign up, faster than mails leave: a sign-up waits for capacity.
  for (; user < users; ++user) s.accepted += service.welcome(mail_of(user)) ? 1 : 0;
  s.done = service.finish();
  s.closed = service.try_welcome(mail_of(user)) == sluice::status::closed ? 1 : 0;

  const books seen = server.look();
  for (const auto& [who, count] : seen.attempts) s.attempts += count;
  for (const auto& [who, count] : seen.received) {
    ++s.received;
    s.twice += count > 1 ? 1 : 0;
  }
  s.kept_to_its_lines = seen.at_once_most <= lines;
  return s;
}

// Computed from the mails that the server rejects.
inline summary expected() {
  summary s{.accepted = users, .refused = too_many, .closed = 1, .kept_to_its_lines = true};
  for (int user = 0; user < users; ++user) {
    const int attempts_max = static_cast<int>(patience().attempts_max);
    const bool is_sent = mail_server::refusals(user) < attempts_max;
    s.done.sent += is_sent ? 1 : 0;
    s.done.given_up += is_sent ? 0 : 1;
    s.attempts += is_sent ? mail_server::refusals(user) + 1 : attempts_max;
  }
  s.received = s.done.sent;
  return s;
}

// Exit code 0 if the counts are as expected.
inline int print(const summary& s) {
  std::printf("sign-ups   %4d accepted, %d refused while it was full, %d after the end\n",
              s.accepted, s.refused, s.closed);
  std::printf("mails      %4d sent, %d given up, in %d attempts\n", s.done.sent, s.done.given_up,
              s.attempts);
  std::printf("the server %4d received, %d of them twice; at most %d at a time: %s\n", s.received,
              s.twice, lines, s.kept_to_its_lines ? "yes" : "no");
  const bool is_right = s == expected();
  if (!is_right) std::puts("the result differs from the expected one");
  return is_right ? 0 : 1;
}

}  // namespace email
