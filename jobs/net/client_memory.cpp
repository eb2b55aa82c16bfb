#include "jobs/net/client_memory.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "sluice/base/check.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs::net {
namespace {

// Input and output may each be this much more than was charged: connection_bytes covers both.
constexpr std::uint64_t block_bytes = 2 << 10;
static_assert(2 * block_bytes == client_memory::connection_bytes);

}  // namespace

// ---- account

void client_memory::account::open(bool has_tls, std::function<void(notice)> notify) {
  const std::lock_guard lock(all_.guard_);
  check(!is_open_, "sluice::jobs::net::client_memory", "an account to be opened once");
  is_open_ = true;
  fixed_ = connection_bytes + (has_tls ? tls_session_bytes : 0);
  notify_ = std::move(notify);
  index_ = all_.accounts_.size();
  all_.accounts_.push_back(this);
  all_.update(*this);
}

void client_memory::account::close() {
  const std::lock_guard lock(all_.guard_);
  if (!std::exchange(is_open_, false)) return;
  if (linked()) unlink();
  end_reservation();
  all_.accounts_[index_] = all_.accounts_.back();
  all_.accounts_[index_]->index_ = index_;
  all_.accounts_.pop_back();
  all_.expected_.store(all_.expected_.load(relaxed) - std::exchange(expected_, 0), relaxed);
  all_.update(*this);
}

void client_memory::account::report(const usage& now) {
  const std::uint64_t input = now.input / block_bytes;
  const std::uint64_t output = now.output / block_bytes;
  if (input == input_blocks_ && output == output_blocks_ && now.expected == expected_) return;
  input_blocks_ = input;
  output_blocks_ = output;
  const std::lock_guard lock(all_.guard_);
  if (!is_open_) return;
  usage_.input = input * block_bytes;
  usage_.output = output * block_bytes;
  const std::uint64_t expected = all_.expected_.load(relaxed) - expected_ + now.expected;
  all_.expected_.store(expected, relaxed);
  expected_ = now.expected;
  all_.update(*this);
}

void client_memory::account::moved(std::size_t bytes) noexcept {
  moved_.store(moved_.load(relaxed) + bytes, relaxed);  // one thread writes
}

bool client_memory::account::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(all_.guard_);
  check(is_open_ && wanted_ == 0 && bytes > 0, "sluice::jobs::net::client_memory",
        "one reservation at a time, of an open account");
  if (linked()) unlink();
  wanted_ = bytes;
  all_.reservers_.push_back(*this);
  // The return value reports the grant, so it needs no notice.
  auto notify = std::exchange(notify_, [](notice) {});
  all_.serve();
  notify_ = std::move(notify);
  return reserved_ > 0;
}

void client_memory::account::cancel_reservation() {
  const std::lock_guard lock(all_.guard_);
  if (wanted_ == 0) return;
  if (reserved_ == 0) unlink();
  end_reservation();
  all_.update(*this);
}

void client_memory::account::end_reservation() {
  if (reserved_ > 0) --all_.reservations_;
  all_.reserved_bytes_ -= reserved_;
  wanted_ = reserved_ = 0;
  has_reservation_.store(false, relaxed);
}

void client_memory::account::wait(intrusive_list<account>& line) {
  const std::lock_guard lock(all_.guard_);
  if (!is_open_ || linked()) return;
  // A reservation holder may continue while the budget is exceeded, the others may not.
  has_reservation() ? line.push_front(*this) : line.push_back(*this);
  all_.serve();  // memory may have been freed before the lock was taken
}

void client_memory::account::pass_on() {
  const std::lock_guard lock(all_.guard_);
  all_.serve();
}

std::uint64_t client_memory::account::charge() const noexcept {
  return is_open_ ? fixed_ + std::max(reserved_, usage_.input) + usage_.output : 0;
}

std::uint64_t client_memory::account::used() const noexcept {
  return fixed_ + usage_.input + usage_.output;
}

// ---- client_memory

bool client_memory::is_wanted() const {
  const std::lock_guard lock(guard_);
  return !reservers_.empty() || !readers_.empty();
}

void client_memory::enforce(time_point now) {
  if (!is_exceeded()) return;
  const std::lock_guard lock(guard_);
  enforce_locked(now);
}

bool client_memory::fits(const account& a) const noexcept {
  if (reservations_ == 0) return !is_exceeded();
  if (reserved_bytes_ + a.wanted_ > bytes_max_ / 2) return false;
  return bytes() + a.wanted_ - std::min(a.wanted_, a.usage_.input) <= bytes_max_;
}

void client_memory::update(account& a) {
  const bool was_over = is_exceeded();
  const std::uint64_t before = std::exchange(a.charged_, a.charge());
  bytes_.store(bytes() - before + a.charged_, relaxed);
  if (is_exceeded()) {
    if (a.charged_ > before) enforce_locked(seam::now());
  } else if (was_over) {
    enforced_at_ = time_point::min();
  }
  serve();
}

// Notifies one reader and one requester only: each calls pass_on, which avoids a thundering herd
// that finds the memory taken by the first.
void client_memory::serve() {
  while (!reservers_.empty() && fits(reservers_.front())) {
    account& next = reservers_.pop_front();
    next.reserved_ = next.wanted_;
    next.has_reservation_.store(true, relaxed);
    ++reservations_;
    reserved_bytes_ += next.reserved_;
    const std::uint64_t before = std::exchange(next.charged_, next.charge());
    bytes_.store(bytes() - before + next.charged_, relaxed);
    next.notify_(account::notice::proceed);
  }
  if (!readers_.empty() && !is_exceeded()) readers_.pop_front().notify_(account::notice::proceed);
  if (!requesters_.empty() && requesters_.front().may_request()) {
    requesters_.pop_front().notify_(account::notice::proceed);
  }
}

// Ignores unused reservations: they are used soon, or lost. A client that reads slowly on purpose
// is never idle, and connections without buffers do not cause the excess. So the order of closing
// is: idle with buffers, busy with buffers, busy with a reservation, without buffers.
void client_memory::enforce_locked(time_point now) {
  if (!is_exceeded()) return;
  const bool is_first = enforced_at_ == time_point::min();
  if (!is_first && now < enforced_at_ + enforce_every) return;
  enforced_at_ = now;
  struct candidate {
    account* party;
    int rank;  // smaller is closed first
  };
  std::uint64_t used = 0;
  std::vector<candidate> all;
  for (account* const a : accounts_) {
    const std::uint64_t moved = a->moved_.load(relaxed);
    const bool is_idle = moved - std::exchange(a->moved_before_, moved) < busy_bytes;
    if (a->is_closing_) continue;
    used += a->used();
    all.push_back({a, !a->holds_buffers() ? 3 : is_idle ? 0 : a->reserved_ == 0 ? 1 : 2});
  }
  if (is_first) return;  // the traffic of each is known at the next call
  std::ranges::sort(all, [](const candidate& a, const candidate& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.party->used() > b.party->used();
  });
  for (const auto& [a, rank] : all) {
    if (used <= bytes_max_) return;
    used -= a->used();
    a->is_closing_ = true;
    closed_.store(closed_.load(relaxed) + 1, relaxed);
    a->notify_(account::notice::close);
  }
}

}  // namespace sluice::jobs::net
