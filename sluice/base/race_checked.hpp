#pragma once

// Plain data whose data races the simulator detects. Several threads share it and synchronize by
// other means: a lock, a flag with release and acquire, a queue.
//
// Use it for lock-protected data in code that sluice::sim explores. Prefer guarded<T>, which makes
// an unguarded access impossible to write, and atomic<T> for data that is accessed without a lock.
//
// Guarantees: it synchronizes nothing: two accesses at the same time, one of them a write, are a
// data race as with any plain variable. In a simulated build (sluice/sim) such a race ends the
// exploration with a report, and every access is a scheduling point.
// Cost: none outside of a simulated build.
//
//     race_checked<int> balance{0};                 // guarded by m
//     { std::lock_guard hold(m); balance.write(balance.read() + 10); }

#include <source_location>
#include <utility>

namespace sluice {

namespace seam {

// Report a read or write of plain data to the simulator, for a type with several plain members,
// such as the links of a list. Not scheduling points.
#if defined(SLUICE_SIM)
void reads_plain(const void* at,
                 std::source_location where = std::source_location::current()) noexcept;
void writes_plain(const void* at,
                  std::source_location where = std::source_location::current()) noexcept;
void begins_plain(const void* at) noexcept;  // a new object: forgets accesses to an earlier one
void may_switch(const void* at, std::source_location where) noexcept;  // a scheduling point
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
class race_checked {
  using where_from = std::source_location;

 public:
  race_checked() : race_checked(T{}) {}
  explicit race_checked(T value) : value_(std::move(value)) { seam::begins_plain(&value_); }
  race_checked(const race_checked&) = delete;
  race_checked& operator=(const race_checked&) = delete;

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
  // Returns the value for a change in place; counts as a write.
  T& change(where_from where = where_from::current()) noexcept {
    seam::may_switch(&value_, where);
    seam::writes_plain(&value_, where);
    return value_;
  }

 private:
  T value_;
};

}  // namespace sluice
