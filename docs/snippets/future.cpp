// The snippets of docs/reference/future.md.
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/executor/manual_executor.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/from_callback.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"

using namespace std::chrono_literals;

namespace {

struct io_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string fetch(const std::string& url) {
  if (url.empty()) throw io_error("no url");
  return "page of " + url;
}

bool a_chain(sluice::executor& pool) {
  std::size_t shown = 0;
  auto f = sluice::async(pool, [] { return fetch("example.org"); })
               .then([](std::string page) { return page.size(); })
               .recover([](const io_error&) { return std::size_t{0}; })
               .then([&](std::size_t letters) { shown = letters; });
  f.get();
  return shown == 19;
}

bool a_promise() {
  sluice::promise<int> p;
  sluice::future<int> answer = p.get_future();
  std::jthread worker([p = std::move(p)]() mutable { p.set_value(42); });
  return answer.get() == 42;
}

bool an_inner_future(sluice::executor& pool) {
  auto size_of_two = sluice::async(pool, [] { return std::string("example.org"); })
                         .and_then([&](std::string url) {
                           return sluice::async(pool, [url] { return fetch(url); });
                         })
                         .combine(sluice::make_ready_future(std::string("!")),
                                  [](std::string page, std::string mark) { return page + mark; });
  return size_of_two.get() == "page of example.org!";
}

bool limited_waits(std::stop_token stop) {
  sluice::promise<int> p;
  auto f = p.get_future();
  bool all = true;
  all &= f.try_get().status() == sluice::status::empty;
  all &= f.get({1ms, stop}).status() == sluice::status::timed_out;
  all &= f.valid();  // a wait that ended early consumed nothing
  p.set_value(1);
  all &= *f.get({1s, stop}) == 1;
  return all;
}

bool all_and_any() {
  std::vector<sluice::future<int>> numbers;
  for (int i = 1; i <= 3; ++i) numbers.push_back(sluice::make_ready_future(i));
  const std::vector<int> all = sluice::when_all(std::move(numbers)).get();

  sluice::promise<int> slow;
  auto winner = sluice::when_any(slow.get_future(), sluice::make_ready_future(7)).get();
  const bool asked = slow.stop_token().stop_requested();  // the loser was asked to stop
  return all.size() == 3 && winner.index == 1 && winner.result.value() == 7 && asked;
}

// A typical callback API: error first, called later.
class legacy_client {
 public:
  void call(int question, std::function<void(std::error_code, int)> done) {
    done(question > 0 ? std::error_code() : std::make_error_code(std::errc::invalid_argument),
         question * 2);
  }
};

sluice::future<int> ask(legacy_client& client, int question) {
  return sluice::from_callback<int>([&](auto done) { client.call(question, done); });
}

bool a_callback() {
  legacy_client client;
  const auto refused = [](const std::system_error&) { return -1; };
  return ask(client, 21).get() == 42 && ask(client, 0).recover(refused).get() == -1;
}

bool a_timeout() {
  sluice::promise<int> never_set;
  auto f = never_set.get_future().with_timeout(1ms).recover([](const sluice::future_error& e) {
    return e.why() == sluice::future_error::timed_out ? 0 : -1;
  });
  return f.get() == 0 && never_set.stop_token().stop_requested();
}

bool shared() {
  sluice::shared_future<std::string> config(sluice::make_ready_future(std::string("v1")));
  auto length = config.then([](const std::string& text) { return text.size(); });
  return length.get() == 2 && config.get() == "v1";
}

}  // namespace

int main() {
  sluice::manual_executor pool;
  std::jthread worker([&] {
    while (pool.run_next()) {
    }
  });
  std::stop_source no_stop;
  const bool right = a_chain(pool) && a_promise() && an_inner_future(pool) &&
                     limited_waits(no_stop.get_token()) && all_and_any() && a_callback() &&
                     a_timeout() && shared();
  pool.close();
  if (!right) std::fputs("future: a snippet went wrong\n", stderr);
  return right ? 0 : 1;
}
