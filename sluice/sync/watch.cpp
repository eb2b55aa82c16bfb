#include "sluice/sync/watch.hpp"

#include <array>
#include <utility>

#include "sluice/base/seam.hpp"
#include "sluice/base/thread_id.hpp"

namespace sluice::watch {

namespace detail {
constinit atomic<std::uint64_t> generation{0};
}

namespace {

constinit atomic<observer*> watching{nullptr};
constinit atomic<std::uint64_t> generations{1};

constinit thread_local party known_thread{};
constinit thread_local party acting{};

// What the calling thread has reported of its uses, so that most of them are not reported again.
struct note {
  const void* object = nullptr;
  std::uint64_t generation = 0;
};
constexpr std::size_t notes_max = 8;  // for each side
constinit thread_local std::array<std::array<note, notes_max>, 2> notes{};

// Where a note of this object is: queues lie on cache lines of their own.
std::size_t place_of(const void* object) noexcept {
  return (reinterpret_cast<std::uintptr_t>(object) >> 6) % notes_max;
}

// acquire: pairs with the exchange in observe; the watcher is seen whole.
observer* watcher() noexcept {
  return watching.load(acquire);
}

}  // namespace

party party::this_thread() noexcept {
  if (!known_thread) {
    known_thread = party(kind::thread,
                         (std::uint64_t{seam::kernel_thread_id()} << 24) | seam::thread_number());
  }
  return known_thread;
}

party party::current() noexcept {
  return acting ? acting : this_thread();
}

acting_as::acting_as(party who) noexcept : before_(std::exchange(acting, who)) {}
acting_as::~acting_as() {
  acting = before_;
}

observer* observe(observer* by) noexcept {
  auto* const before = watching.exchange(by, acq_rel);
  // relaxed: a thread that sees it late reports late, or reports to nobody.
  detail::generation.store(by == nullptr ? 0 : generations.fetch_add(1, relaxed), relaxed);
  return before;
}

void start_over() noexcept {
  if (!is_on()) return;
  detail::generation.store(generations.fetch_add(1, relaxed), relaxed);
}

namespace detail {

void took(const hold& h) noexcept {
  if (auto* const to = watcher()) to->took(h);
}

void gave(const void* object, party by, std::int64_t count) noexcept {
  if (auto* const to = watcher()) to->gave(object, by, count);
}

void used(const void* object, side which) noexcept {
  const auto now = generation.load(relaxed);
  // Of another party every use is reported: the notes are of the thread alone.
  if (!acting) {
    auto& mine = notes[which == side::takes ? 0 : 1][place_of(object)];
    if (mine.object == object && mine.generation == now) [[likely]]
      return;
    mine = {object, now};
  }
  if (auto* const to = watcher()) to->used(object, which, party::current());
}

void gone(const void* object) noexcept {
  if (auto* const to = watcher()) to->gone(object);
}

}  // namespace detail

void wait_record::report(const waiter& who, const wait_limits& limits, party by) noexcept {
  auto* const to = watcher();
  if (to == nullptr) return;
  who_ = &who;
  limits_ = &limits;
  by_ = by;
  told_ = to;
  to->waits(*this);
}

void wait_record::end() noexcept {
  if (told_ == nullptr) return;
  told_->waits_no_more(*this);
  told_ = nullptr;
}

}  // namespace sluice::watch
