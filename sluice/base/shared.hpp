#pragma once

// Plain data that several threads use and something else guards: a lock, a flag with release and
// acquire, a queue that hands it over. Marking it as `shared` costs nothing, and lets sluice::sim
// find the schedule in which nothing guarded it.
//
// Use it for what a lock protects in code that is to be explored. Prefer guarded<T>, which makes an
// unguarded access impossible to write, and atomic<T> for what is accessed without a lock.
//
// Guarantees: none of its own: two accesses at the same time, one of them a write, are a data race
// as with any plain variable. In a simulated build (sluice/sim) such a race ends the exploration
// with a report, and every access is a point at which another thread may run.
// Cost: none outside of a simulated build.
//
//     shared<int> balance{0};                 // guarded by m
//     { std::lock_guard hold(m); balance.write(balance.read() + 10); }

#include <source_location>
#include <utility>

namespace sluice {

namespace seam {

// For a type that keeps several plain things, such as the links of a list: says that the object at
// this address is read or written now. No other thread runs in between.
#if defined(SLUICE_SIM)
void reads_plain(const void* at,
                 std::source_location where = std::source_location::current()) noexcept;
void writes_plain(const void* at,
                  std::source_location where = std::source_location::current()) noexcept;
void begins_plain(const void* at) noexcept;  // a new object: what was at its address is forgotten
void may_switch(const void* at, std::source_location where) noexcept;  // another thread may run
#else
inline void reads_plain(const void*) noexcept {}
inline void writes_plain(const void*) noexcept {}
inline void reads_plain(const void*, const std::source_location&) noexcept {}
inline void writes_plain(const void*, const std::source_location&) noexcept {}
inline void begins_plain(const void*) noexcept {}
inline void may_switch(const void*, const std::source_location&) noexcept {}
#endif

}  // namespace seam

template <class T>
class shared {
  using where_from = std::source_location;

 public:
  shared() : shared(T{}) {}
  explicit shared(T value) : value_(std::move(value)) { seam::begins_plain(&value_); }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;

  const T& read(where_from where = where_from::current()) const noexcept {
    seam::may_switch(&value_, where);
    seam::reads_plain(&value_, where);
    return value_;
  }
  void write(T value, where_from where = where_from::current()) {
    seam::may_switch(&value_, where);
    seam::writes_plain(&value_, where);
    value_ = std::move(value);
  }
  // For a change in place; counts as a write.
  T& change(where_from where = where_from::current()) noexcept {
    seam::may_switch(&value_, where);
    seam::writes_plain(&value_, where);
    return value_;
  }

 private:
  T value_;
};

}  // namespace sluice
