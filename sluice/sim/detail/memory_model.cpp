#include "sluice/sim/detail/memory_model.hpp"

#include <algorithm>
#include <utility>

namespace sluice::sim::detail {
namespace {

constexpr std::size_t first_table = 1024;

bool acquires(std::memory_order order) noexcept {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool releases(std::memory_order order) noexcept {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

std::size_t spread(const void* at) noexcept {
  auto bits = reinterpret_cast<std::uintptr_t>(at) * 0x9e3779b97f4a7c15ULL;
  return static_cast<std::size_t>(bits >> 20);
}

}  // namespace

memory_model::memory_model() : table_(first_table), plain_table_(first_table) {}

void memory_model::begin_run() noexcept {
  // Clears the tables; addresses of an earlier run are not valid in this one.
  std::fill(table_.begin(), table_.end(), nullptr);
  std::fill(plain_table_.begin(), plain_table_.end(), nullptr);
  in_use_ = plain_in_use_ = pool_used_ = plain_pool_used_ = 0;
  count_ = 0;
  order_step_ = 0;
  fenced_ = {};
}

void memory_model::begin_thread(std::uint32_t thread, const knowledge* parent) noexcept {
  auto& self = threads_[thread];
  if (parent != nullptr) {
    self.now = *parent;
  } else {
    self.now = {};
  }
  self.has_released = self.has_offered = false;
  count_ = std::max(count_, thread + 1);
  tick(thread);
}

location& memory_model::slot(const void* at) {
  if (in_use_ * 2 >= table_.size()) grow();
  const auto mask = table_.size() - 1;
  for (auto i = spread(at) & mask;; i = (i + 1) & mask) {
    if (table_[i] == nullptr) {
      if (pool_used_ == pool_.size()) pool_.emplace_back();
      table_[i] = &pool_[pool_used_++];
      table_[i]->address = at;
      table_[i]->count = 0;
      ++in_use_;
      return *table_[i];
    }
    if (table_[i]->address == at) return *table_[i];
  }
}

void memory_model::grow() {
  std::vector<location*> larger(table_.size() * 2);
  const auto mask = larger.size() - 1;
  for (auto* entry : table_) {
    if (entry == nullptr) continue;
    auto i = spread(entry->address) & mask;
    while (larger[i] != nullptr) i = (i + 1) & mask;
    larger[i] = entry;
  }
  table_ = std::move(larger);
}

void memory_model::construct(std::uint32_t thread, const void* at, std::uint64_t value) {
  auto& place = slot(at);
  place.count = 1;
  place.stores[0].value = value;
  place.stores[0].thread = thread;
  place.stores[0].time = threads_[thread].now.before[thread];
  place.stores[0].order_step = 0;
  place.stores[0].hands_on = false;
  place.stores[0].first_read.fill(0);
}

location& memory_model::find(const void* at, std::uint64_t newest_value) {
  auto& place = slot(at);
  if (place.count == 0) {
    // Constructed before the run, or constant-initialized: known to all threads.
    place.count = 1;
    place.stores[0] = {};
    place.stores[0].value = newest_value;
  }
  return place;
}

bool memory_model::construction_may_be_unseen(std::uint32_t thread, location& at) noexcept {
  if (at.count > location::kept) return false;  // the first store was dropped
  const auto& first = at.stores[0];
  return first.time > threads_[thread].now.before[first.thread];
}

bool memory_model::knows(std::uint32_t thread, const store_record& store,
                         bool in_order) const noexcept {
  const auto& now = threads_[thread].now;
  if (store.time <= now.seen[store.thread]) return true;
  if (store.order_step != 0 && (in_order || store.order_step < now.fence_step)) return true;
  if (in_order && store.time <= fenced_[store.thread]) return true;
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (store.first_read[i] != 0 && store.first_read[i] <= now.seen[i]) return true;
  }
  return false;
}

std::uint32_t memory_model::choices(std::uint32_t thread, location& at,
                                    std::memory_order order) noexcept {
  const bool in_order = order == std::memory_order_seq_cst;
  std::uint32_t n = at.count - 1;
  while (n > at.oldest() && !knows(thread, at.nth(n), in_order)) --n;
  return at.count - n;
}

std::uint64_t memory_model::read(std::uint32_t thread, location& at, std::uint32_t age,
                                 std::memory_order order) noexcept {
  auto& self = threads_[thread];
  auto& store = at.nth(at.count - 1 - age);
  if (store.hands_on) {
    if (acquires(order)) {
      self.now.learn(store.given, count_);
    } else {
      if (!self.has_offered) self.offered = {};
      self.has_offered = true;
      self.offered.learn(store.given, count_);
    }
  }
  if (store.first_read[thread] == 0) store.first_read[thread] = self.now.before[thread];
  if (order == std::memory_order_seq_cst) ++order_step_;
  return store.value;
}

void memory_model::write(std::uint32_t thread, location& at, std::uint64_t value,
                         std::memory_order order, bool continues_release) noexcept {
  auto& self = threads_[thread];
  const bool had = continues_release && at.newest().hands_on;
  store_record* const before = &at.newest();
  ++at.count;
  auto& store = at.newest();
  store.value = value;
  store.thread = thread;
  store.time = self.now.before[thread];
  store.order_step = order == std::memory_order_seq_cst ? ++order_step_ : 0;
  store.first_read.fill(0);
  store.hands_on = had;
  if (had) store.given = before->given;
  const knowledge* own = nullptr;
  if (releases(order)) {
    own = &self.now;
  } else if (self.has_released) {
    own = &self.released;
  }
  if (own == nullptr) return;
  if (had) {
    store.given.learn(*own, count_);
  } else {
    store.given = *own;
  }
  store.hands_on = true;
}

void memory_model::fence(std::uint32_t thread, std::memory_order order) noexcept {
  auto& self = threads_[thread];
  if (acquires(order) && self.has_offered) self.now.learn(self.offered, count_);
  if (order == std::memory_order_seq_cst) {
    join(self.now.seen, fenced_, count_);
    fenced_ = self.now.seen;
    self.now.fence_step = ++order_step_;
  }
  if (releases(order)) {
    self.released = self.now;
    self.has_released = true;
  }
}

void memory_model::fence_all() noexcept {
  for (std::uint32_t i = 0; i < count_; ++i) join(fenced_, threads_[i].now.seen, count_);
  ++order_step_;
  for (std::uint32_t i = 0; i < count_; ++i) {
    join(threads_[i].now.seen, fenced_, count_);
    threads_[i].now.fence_step = order_step_;
  }
}

void memory_model::see_everything(std::uint32_t thread) noexcept {
  auto& self = threads_[thread].now;
  for (std::uint32_t i = 0; i < count_; ++i) {
    self.seen[i] = std::max(self.seen[i], threads_[i].now.before[i]);
  }
}

plain_location& memory_model::plain_slot(const void* at) {
  if (plain_in_use_ * 2 >= plain_table_.size()) {
    std::vector<plain_location*> larger(plain_table_.size() * 2);
    for (auto* entry : plain_table_) {
      if (entry == nullptr) continue;
      auto i = spread(entry->address) & (larger.size() - 1);
      while (larger[i] != nullptr) i = (i + 1) & (larger.size() - 1);
      larger[i] = entry;
    }
    plain_table_ = std::move(larger);
  }
  const auto mask = plain_table_.size() - 1;
  for (auto i = spread(at) & mask;; i = (i + 1) & mask) {
    if (plain_table_[i] == nullptr) {
      if (plain_pool_used_ == plain_pool_.size()) plain_pool_.emplace_back();
      plain_table_[i] = &plain_pool_[plain_pool_used_++];
      *plain_table_[i] = {};
      plain_table_[i]->address = at;
      ++plain_in_use_;
      return *plain_table_[i];
    }
    if (plain_table_[i]->address == at) return *plain_table_[i];
  }
}

race memory_model::read_plain(std::uint32_t thread, const void* at,
                              const std::source_location& where) {
  auto& place = plain_slot(at);
  if (!happened_before(thread, place.last_write)) {
    return {.found = true, .earlier_wrote = true, .earlier = place.last_write};
  }
  place.reads[thread] = {thread, threads_[thread].now.before[thread], where};
  return {};
}

race memory_model::write_plain(std::uint32_t thread, const void* at,
                               const std::source_location& where) {
  auto& place = plain_slot(at);
  if (!happened_before(thread, place.last_write)) {
    return {.found = true, .earlier_wrote = true, .earlier = place.last_write};
  }
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (!happened_before(thread, place.reads[i])) {
      return {.found = true, .earlier_wrote = false, .earlier = place.reads[i]};
    }
  }
  place.last_write = {thread, threads_[thread].now.before[thread], where};
  return {};
}

void memory_model::forget_plain(const void* at) noexcept {
  auto& place = plain_slot(at);
  place = {};
  place.address = at;
}

}  // namespace sluice::sim::detail
