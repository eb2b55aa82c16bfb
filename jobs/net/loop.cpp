#include "jobs/net/loop.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/this_thread.hpp"

namespace sluice::jobs::net {
namespace {

// Ends a turn although more handlers are ready.
constexpr int handlers_a_turn = 64;

}  // namespace

loop::loop(std::string thread_name)
    : thread_name_(std::move(thread_name)),
      context_(std::make_shared<boost::asio::io_context>(1)),
      work_guard_(context_->get_executor()),
      timer_(*context_) {}

loop::~loop() {
  check(!thread_.joinable() || ended_.is_set(), "sluice::jobs::net::loop",
        "begin_stop and has_ended before destruction");
  if (thread_.joinable()) thread_.join();
}

void loop::start() {
  thread_ = seam::thread([this] { run(); });
}

void loop::run() noexcept {
  seam::name_thread(thread_name_);
  while (context_->run_one() != 0) {
    bool is_idle = false;
    for (;;) {
      if (is_idle) seam::yield();  // the threads that it waits for may need this core
      const int ran = run_ready();
      const turn t = end_turn();
      if (!t.again && !t.ran) break;
      is_idle = ran == 0 && !t.ran;
    }
  }
  ended_.set();
}

thread_local const loop* loop::ending_turn_ = nullptr;

// Work that turn_end_ posts runs right after it: no wake-up, and no poll of the sockets before it.
loop::turn loop::end_turn() {
  if (!turn_end_) return {};
  ending_turn_ = this;
  const bool again = turn_end_(run_posted_);
  ending_turn_ = nullptr;
  return {again, drain_inbox()};
}

int loop::run_ready() {
  int ran = 0;
  while (ran < handlers_a_turn && context_->poll_one() != 0) ++ran;
  return ran;
}

void loop::post(work& item) noexcept {
  const auto context = ending_turn_ == this ? nullptr : context_;
  bool first = false;
  {
    const std::lock_guard hold(inbox_guard_);
    first = inbox_.empty();
    inbox_.push_back(item);
  }
  // The poster that finds the inbox empty wakes the loop, for all posted until it is drained.
  if (first && context) boost::asio::post(*context, [this] { (void)drain_inbox(); });
}

void loop::run_soon(std::function<void()> f) {
  boost::asio::post(*context_, [this, f = std::move(f)] {
    f();
    run_touched();
  });
}

bool loop::drain_inbox() {
  intrusive_list<work> items;
  {
    const std::lock_guard hold(inbox_guard_);
    while (!inbox_.empty()) {
      work& item = inbox_.front();
      item.unlink();
      items.push_back(item);
    }
  }
  if (items.empty()) return false;
  while (!items.empty()) {
    work& item = items.front();
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
  // `pump` may touch further peers.
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const std::shared_ptr<peer> c = std::move(touched_[i]);
    c->pump();
  }
  touched_.clear();
  pumping_ = false;
}

void loop::watch(time_point deadline) {
  if (deadline >= timer_at_) return;
  timer_at_ = deadline;
  timer_.expires_at(deadline);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) on_timer();
  });
}

// Few deadlines ever expire: a connection only stores its own, and all are checked when the
// earliest may have passed. One timer, set rarely, serves thousands of connections.
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
  end_if_finished();
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

void loop::end_if_finished() {
  if (!stopping_ || has_finished_ || !peers_.empty() || calls_ > 0) return;
  has_finished_ = true;
  timer_.cancel();
  work_guard_.reset();
}

}  // namespace sluice::jobs::net
