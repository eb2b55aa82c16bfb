// The examples in the headers of executor/, future/ and flow/. Compiled, never run.
// clang-format off: they stand here as they do there.
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "sluice/channel/channel.hpp"
#include "sluice/executor/executor.hpp"
#include "sluice/executor/fork.hpp"
#include "sluice/executor/inline_executor.hpp"
#include "sluice/executor/manual_executor.hpp"
#include "sluice/executor/parallel.hpp"
#include "sluice/executor/router.hpp"
#include "sluice/executor/strand.hpp"
#include "sluice/executor/submission.hpp"
#include "sluice/executor/thread_pool.hpp"
#include "sluice/executor/work_stealing_pool.hpp"
#include "sluice/flow/batcher.hpp"
#include "sluice/flow/bulkhead.hpp"
#include "sluice/flow/circuit_breaker.hpp"
#include "sluice/flow/fan_in.hpp"
#include "sluice/flow/fan_out.hpp"
#include "sluice/flow/keyed_rate_limiter.hpp"
#include "sluice/flow/pipeline.hpp"
#include "sluice/flow/rate_limiter.hpp"
#include "sluice/flow/refused_error.hpp"
#include "sluice/flow/retry.hpp"
#include "sluice/flow/retry_budget.hpp"
#include "sluice/future/async.hpp"
#include "sluice/future/from_callback.hpp"
#include "sluice/future/future.hpp"
#include "sluice/future/future_error.hpp"
#include "sluice/future/promise.hpp"
#include "sluice/future/scope.hpp"
#include "sluice/future/settled.hpp"
#include "sluice/future/shared_future.hpp"
#include "sluice/future/spawn.hpp"
#include "sluice/future/start_on.hpp"
#include "sluice/future/sync_wait.hpp"
#include "sluice/future/task.hpp"
#include "sluice/future/task_combinators.hpp"
#include "sluice/future/this_task.hpp"
#include "sluice/future/timers.hpp"
#include "sluice/future/when_all.hpp"
#include "sluice/future/when_any.hpp"

namespace header_examples::future_and_flow {

using namespace sluice;
using namespace std::chrono_literals;

template <class... Args>
int use(const Args&...) {
  return 0;
}
template <class... Args>
int log(const Args&...) {
  return 0;
}
template <class... Args>
int show(const Args&...) {
  return 0;
}
template <class... Args>
void sort(Args&...) {}
struct response {};
template <class... Args>
response reply(const Args&...) {
  return {};
}

struct answer {};
struct request {};
struct row {};
struct page {
  int words = 0;
};
struct user {};
struct orders {};
struct client {
  template <class Done>
  void async_call(request, Done) {}
};
struct config {
  std::size_t size() const;
};
struct socket {};
using image = page;

void index(const request& r);
void render(int row);
void shrink(image& i);
void thumbnail();
void password_mail();
void index_all();
void refresh();
void report();
int closed();

// ---- executor

void handle(request r, executor& background) {
  if (auto s = background.try_submit([r] { index(r); }); !s) reply(503, to_string(s));
}

long fib(int n) {
  if (n < 2) return n;
  auto left = fork([n] { return fib(n - 1); });   // on the pool whose worker this is
  const long right = fib(n - 2);
  return left.join() + right;
}
void forks() {
  work_stealing_pool pool;
  const long result = fork(pool, [] { return fib(30); }).join();
}

void here_and_later() {
  inline_executor here;
  auto answer = async(here, [] { return 42; });

  manual_executor later;
  auto f = async(later, [] { return 42; });
  later.run_all();
}

void side_by_side(work_stealing_pool& pool, int rows, std::vector<image>& images,
                  std::vector<double>& values, std::vector<int>& left, std::vector<int>& right) {
  parallel_for(pool, 0, rows, [&](int row) { render(row); });
  parallel_for(pool, images, [](image& i) { shrink(i); }, {.grain = 1});
  const double sum = parallel_reduce(pool, values, 0.0, [](double v) { return v * v; },
                                     std::plus<>());
  parallel_invoke(pool, [&] { sort(left); }, [&] { sort(right); });
}

struct order {
  std::uint64_t account;
};
void book(order& o);
void routed(executor& pool, order o) {
  router<order> desk({.rule = routing::by_key, .key = [](auto& o) { return o.account; }});
  auto ann = desk.join(pool, [](order& o) { book(o); });
  auto bob = desk.join(pool, [](order& o) { book(o); });
  (void)desk.push(std::move(o));               // orders of one account are booked in order
  bob.leave();                                 // ann gets his items
}

int deposit(executor& pool, int& balance) {
  strand account(pool);
  if (!account.submit([&] { balance += 10; })) return closed();  // balance needs no lock
  return balance;
}

void submissions(thread_pool& pool) {
  if (!pool.submit([] { thumbnail(); })) return;  // closed
  const status s = pool.submit({9, [] { password_mail(); }});
}

void thumbs(std::vector<image>& album) {
  thread_pool pool({.core = 4, .capacity = 1000, .name = "thumbs"});
  for (auto& image : album) {
    if (!pool.submit([&image] { shrink(image); })) break;  // the pool is closed
  }
  pool.drain();
}

void pieces(int rows) {
  work_stealing_pool pool({.threads = 8});
  if (!pool.submit([] { index_all(); })) return;  // it was closed
  parallel_for(pool, 0, rows, [&](int row) { render(row); });
}

// ---- future

long sum(const std::vector<row>& rows, const std::stop_token& stop);
int urgent();
void starts(executor& pool, std::vector<row> rows) {
  auto total = async(pool, [rows](std::stop_token stop) { return sum(rows, stop); });
  auto first = async({pool, 9}, urgent);      // with a priority: see start_on.hpp
}

namespace with_callbacks {
using reply = answer;
future<reply> ask(client& c, request r) {
  return from_callback<reply>([&](auto done) { c.async_call(r, done); });
}
}  // namespace with_callbacks

struct io_error : std::exception {};
page fetch(const std::string& url);
int count_words(const page& p);
void chains(executor& pool, executor& ui, const std::string& url) {
  auto shown = async(pool, [url] { return fetch(url); })
      .then([](page p) { return count_words(p); })
      .recover([](const io_error&) { return 0; })
      .with_timeout(2s)
      .via(ui).then([](int n) { show(n); });
}

void errors(future<int> f) {
  try { use(f.get()); }
  catch (const future_error& e) { if (e.why() == future_error::cancelled) return; throw; }
}

void promised() {
  promise<int> p;
  future<int> f = p.get_future();
  std::jthread worker([p = std::move(p)]() mutable { p.set_value(42); });
  use(f.get());
}

task<> talk(socket s);
task<> serve(channel<socket>& incoming, executor& pool) {
  co_await with_scope(pool, [&](scope& s) -> task<> {
    while (auto c = co_await incoming.async_receive()) s.start(talk(std::move(*c)));
  });                                            // every talk has ended here
}

// The forms that the comment of scope_options names.
void options_of_a_scope(executor& pool, const std::stop_token& stop) {
  scope eight(pool, scope_options(8));
  scope stopped(pool, scope_options(8, stop));
  scope named(pool, scope_options(8, stop, "uploads"));
  eight.join();
  stopped.join();
  named.join();
}

void settled_ones(future<int> f, settled<int> s) {
  auto n = std::move(f).handle([](settled<int> s) { return s ? s.value() : 0; });
  if (auto* late = s.error_as<future_error>()) log(late->what());
}

future<config> load_config();
void shared_ones() {
  shared_future<config> ready(load_config());
  auto size = ready.then([](const config& c) { return c.size(); });
  use(ready.get());
}

namespace as_tasks {

task<int> length(channel<std::string>& in) {
  auto line = co_await in.async_receive();
  co_return line ? int(line->size()) : -1;
}
task<> twice(channel<std::string>& in) {
  std::printf("%d %d\n", co_await length(in), co_await length(in));
}

task<> urgent();
task<page> render(request r);
task<int> send_password_mail_later();
int send_password_mail();
task<> tidy_up(scope& s);

void spawned(executor& pool, channel<std::string>& lines) {
  future<int> n = spawn(pool, length(lines));
  if (!n.get(1s)) n.cancel();
  auto mail = spawn({pool, 9}, urgent());     // with a priority: see start_on.hpp
}

task<> with_priorities(executor& pool, request request) {
  auto mail = async({pool, 9}, send_password_mail);
  auto page = spawn({pool, 9}, render(request));
  co_await with_scope({pool, -1}, tidy_up);
}

void waits(channel<std::string>& lines) {
  int n = sync_wait(length(lines));
  outcome<int> soon = sync_wait(length(lines), deadline::after(1s));
}

task<user> load_user(int id);
task<std::vector<page>> load_mails(int id);
std::vector<task<page>> ask_all(const std::vector<std::string>& mirrors);
task<page> ask(const std::string& server);
task<> combined(int id, std::vector<std::string> mirrors, std::string server) {
  auto [user, mails] = co_await when_all(load_user(id), load_mails(id));
  auto first = co_await when_any_success(ask_all(mirrors));        // {index, value}
  auto soon = co_await within(ask(server), deadline::after(1s));
}

task<> about_this_one(executor& disk_threads) {
  const std::stop_token stop = co_await this_task::stop_token();   // for long computations
  executor* const here = co_await this_task::executor();
  co_await this_task::yield();          // other work of this executor runs first
  co_await resume_on(disk_threads);     // the rest of this task runs there
}

task<> later(executor& pool) {
  const status slept = co_await sleep_for(100ms);      // named, for g++ 12: see task.hpp
  if (!slept) co_return;                               // asked to stop
  auto refreshed = after(1s).via(pool).then([] { refresh(); });
  auto ticking = every(10s, pool, [] { report(); });
  ticking.cancel();
}

}  // namespace as_tasks

namespace as_futures {

future<user> load_user(int id);
future<orders> load_orders(int id);
future<page> fetch(const std::string& mirror);
template <class... Args>
void print(const Args&...) {}
void all_of(int id, std::vector<future<page>> pages) {
  auto shown = when_all(load_user(id), load_orders(id))
                   .then([](std::tuple<user, orders> both) { show(both); });
  auto printed = when_all(std::move(pages)).then([](std::vector<page> all) { print(all); });
}
void any_of(std::vector<future<page>> replicas, std::string mirror1, std::string mirror2) {
  auto winner = when_any(std::move(replicas)).get();
  log(winner.index, winner.result.has_value());
  page p = when_any_success(fetch(mirror1), fetch(mirror2)).get().value;
}

}  // namespace as_futures

// ---- flow

struct database {
  void insert(const std::vector<row>& batch);
};
void batches(executor& pool, database& db, row r) {
  batcher<row> rows({.size = 500, .wait = 20ms}, pool, [&](std::vector<row> batch) {
    db.insert(batch);
  });
  (void)rows.push(std::move(r));
}

struct document_text {};
page render(const document_text& document);
void print(const document_text& document);
response printed(const document_text& document) {
  bulkhead printing({.active_max = 4, .waiting_max = 16});
  auto place = printing.enter(200ms);          // outcome<bulkhead::permit>
  if (!place) return reply(503, to_string(place.status()));
  print(document);                                     // leaves at the end of the scope

  auto page = printing.call([&] { return render(document); });   // full: throws refused_error
  return {};
}

struct mail_text {};
bool send(const mail_text& mail);
response mailed(const mail_text& mail, const std::string& url) {
  circuit_breaker mailer({.consecutive_failures = 5, .open_for = 2s});
  auto p = mailer.try_enter();
  if (!p) return reply(503, p.retry_after());
  send(mail) ? p.success() : p.failure();

  auto page = mailer.call([&] { return fetch(url); });   // refused: throws refused_error
  return {};
}

task<> into_one(channel<row>& north, channel<row>& south, channel<row>& all) {
  const std::vector both{&north, &south};  // g++ 12 takes no braces in a co_await
  co_await fan_in(both, &all);
}
task<> out_of_one(channel<row>& prices, channel<row>& screen, channel<row>& archive,
                  channel<row>& requests, channel<row>& left, channel<row>& right) {
  const std::vector both{&screen, &archive};  // g++ 12 takes no braces in a co_await
  co_await broadcast(&prices, both);
  sync_wait(distribute(requests.receiver(), std::vector{left.sender(), right.sender()}));
}

task<> limited(std::string client) {
  keyed_rate_limiter<std::string> per_client({.rate = {10, 1s}, .burst = 20,
                                              .keys_max = 100'000});
  if (!per_client.try_acquire(client)) reply(429);
  (void)co_await per_client.async_acquire(client);
}

struct file {};
struct picture {};
picture decode(file f);
picture resize(picture p);
void store(picture p);
void in_stages(executor& pool, std::vector<file>& files) {
  auto line = pipeline<file>::on(pool)
                  .stage("decode", decode, {.parallelism = 2})
                  .stage("resize", resize, {.parallelism = 4, .ordered = true})
                  .sink("store", store);
  for (auto& f : files) (void)line.push(std::move(f));  // waits while the line is full
  line.drain();
}

task<> rates() {
  rate_limiter calls({.rate = {100, 1s}, .burst = 20});
  calls.acquire();                                       // waits for one
  if (!calls.try_acquire(5)) reply(429, calls.time_until(5));
  if (auto s = calls.acquire(2, 50ms); !s) reply(503, to_string(s));
  (void)co_await calls.async_acquire();
}

void refusals() {
  try { refresh(); }
  catch (const refused_error& e) { reply(503, e.retry_after()); }
}

task<page> async_fetch(const std::string& url);
task<> again(std::string url, retry_policy policy) {
  auto page = retry({.attempts_max = 5, .first_delay = 50ms}, [&] { return fetch(url); });
  auto soon = co_await async_retry(policy, [&] { return async_fetch(url); },
                                   deadline::after(5s));
}
void budgets() {
  retry_budget shared({.ratio = 0.1});        // one retry for ten calls
}

}  // namespace header_examples::future_and_flow
