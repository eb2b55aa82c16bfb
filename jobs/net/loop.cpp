#include "jobs/net/loop.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/this_thread.hpp"

namespace sluice::jobs::net {
namespace {

// A turn ends also where there is always more to run.
constexpr int handlers_a_turn = 64;

}  // namespace

loop::loop(std::string thread_name)
    : thread_name_(std::move(thread_name)),
      context_(std::make_shared<boost::asio::io_context>(1)),
      keep_(context_->get_executor()),
      timer_(*context_) {}

loop::~loop() {
  check(!thread_.joinable() || ended_.is_set(), "sluice::jobs::net::loop",
        "to be stopped before its end");
  if (thread_.joinable()) thread_.join();
}

void loop::start() {
  thread_ = seam::thread([this] { run(); });
}

void loop::run() noexcept {
  seam::name_thread(thread_name_);
  while (context_->run_one() != 0) {
    bool idles = false;
    for (;;) {
      if (idles) seam::yield();  // those that are waited for may want this very core
      const int ran = run_ready();
      const turn then = end_turn();
      if (!then.again && !then.ran) break;
      idles = ran == 0 && !then.ran;
    }
  }
  ended_.set();
}

thread_local const loop* loop::ends_turn_ = nullptr;

// What it posts runs right after it: nobody is woken for that, and no socket is looked at first.
loop::turn loop::end_turn() {
  if (!turn_end_) return {};
  ends_turn_ = this;
  const bool again = turn_end_(run_posted_);
  ends_turn_ = nullptr;
  return {again, drain_inbox()};
}

int loop::run_ready() {
  int ran = 0;
  while (ran < handlers_a_turn && context_->poll_one() != 0) ++ran;
  return ran;
}

void loop::post(work& item) noexcept {
  const auto context = ends_turn_ == this ? nullptr : context_;
  bool first = false;
  {
    const std::lock_guard hold(inbox_guard_);
    first = inbox_.empty();
    inbox_.push_back(item);
  }
  // Whoever finds it empty wakes the loop, for all that come until it looks.
  if (first && context) boost::asio::post(*context, [this] { (void)drain_inbox(); });
}

void loop::run_soon(std::function<void()> f) {
  boost::asio::post(*context_, [this, f = std::move(f)] {
    f();
    run_touched();
  });
}

bool loop::drain_inbox() {
  intrusive_list<work> batch;
  {
    const std::lock_guard hold(inbox_guard_);
    while (!inbox_.empty()) {
      work& item = inbox_.front();
      item.unlink();
      batch.push_back(item);
    }
  }
  if (batch.empty()) return false;
  while (!batch.empty()) {
    work& item = batch.front();
    item.unlink();
    item.run();
  }
  run_touched();
  return true;
}

void loop::add(std::shared_ptr<peer> p) {
  peer* const key = p.get();
  peers_.emplace(key, std::move(p));
}

void loop::touch(peer& c) {
  if (c.mark_touched()) touched_.push_back(c.shared_from_this());
}

void loop::pump_touched() {
  if (std::exchange(pumping_, true)) return;
  // What one does may touch another.
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const std::shared_ptr<peer> c = std::move(touched_[i]);
    c->pump();
  }
  touched_.clear();
  pumping_ = false;
}

void loop::watch(time_point when) {
  if (when >= timer_at_) return;
  timer_at_ = when;
  timer_.expires_at(when);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) on_timer();
  });
}

// Few deadlines ever come: a connection only notes when its own is, and all are looked at when the
// earliest may have come. That is one timer for thousands of connections, set once in a while.
void loop::on_timer() {
  timer_at_ = time_point::max();
  const time_point now = seam::now();
  time_point next = time_point::max();
  std::vector<std::shared_ptr<peer>> late;
  for (const auto& [key, c] : peers_) {
    if (c->deadline() <= now) {
      late.push_back(c);
    } else {
      next = std::min(next, c->deadline());
    }
  }
  for (const auto& c : late) c->on_deadline();
  pump_touched();
  if (next != time_point::max()) watch(next);
  end_if_over();
}

void loop::begin_stop() {
  run_soon([this] {
    stopping_ = true;
    std::vector<std::shared_ptr<peer>> all;
    for (const auto& [key, c] : peers_) all.push_back(c);
    for (const auto& c : all) c->finish_up();
  });
}

void loop::cut() {
  run_soon([this] {
    std::vector<std::shared_ptr<peer>> all;
    for (const auto& [key, c] : peers_) all.push_back(c);
    for (const auto& c : all) c->close();
  });
}

void loop::end_if_over() {
  if (!stopping_ || over_ || !peers_.empty() || calls_ > 0) return;
  over_ = true;
  timer_.cancel();
  keep_.reset();
}

}  // namespace sluice::jobs::net
