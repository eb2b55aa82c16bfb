#pragma once

// Records sent and received items, and checks that every parcel arrived exactly once and that every
// reader received each sender's parcels in the order of sending.
//
// Use: a sender takes the next parcel of a route from its `sent` object and books it after a
// successful send; a receiver books every parcel in its own `arrivals`. Neither is thread-safe;
// `audit` reads them all after the parties have ended.

#include <cstddef>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::testing {

// Move-only, and empty once moved from: a test can check which party has it.
class parcel {
 public:
  parcel() = default;
  parcel(std::uint32_t sender, std::uint32_t route, std::uint64_t number)
      : sender_(sender), route_(route), number_(number), here_(true) {}
  parcel(parcel&& from) noexcept { *this = std::move(from); }
  parcel& operator=(parcel&& from) noexcept {
    sender_ = from.sender_;
    route_ = from.route_;
    number_ = from.number_;
    here_ = std::exchange(from.here_, false);
    return *this;
  }

  bool here() const noexcept { return here_; }
  std::uint32_t sender() const noexcept { return sender_; }
  std::uint32_t route() const noexcept { return route_; }
  std::uint64_t number() const noexcept { return number_; }

 private:
  std::uint32_t sender_ = 0;
  std::uint32_t route_ = 0;
  std::uint64_t number_ = 0;
  bool here_ = false;
};

class sent {
 public:
  sent(std::uint32_t sender, std::size_t routes) : sender_(sender), next_(routes, 0) {}

  parcel next(std::size_t route) const {
    return parcel(sender_, static_cast<std::uint32_t>(route), next_[route]);
  }
  void book(std::size_t route) { ++next_[route]; }
  std::uint32_t sender() const noexcept { return sender_; }
  const std::vector<std::uint64_t>& counts() const noexcept { return next_; }

 private:
  std::uint32_t sender_;
  std::vector<std::uint64_t> next_;  // by route: the number of sent parcels
};

class arrivals {
 public:
  void book(parcel&& p) { seen_.push_back(std::move(p)); }
  const std::vector<parcel>& seen() const noexcept { return seen_; }

 private:
  std::vector<parcel> seen_;
};

// Returns a readable list of errors; empty if there are no errors.
inline std::string audit(const std::vector<sent>& senders, const std::vector<arrivals>& readers) {
  std::ostringstream wrong;
  std::map<std::tuple<std::uint32_t, std::uint32_t>, std::vector<int>> times;
  for (const sent& s : senders) {
    for (std::uint32_t route = 0; route < s.counts().size(); ++route) {
      times[{s.sender(), route}].assign(s.counts()[route], 0);
    }
  }
  for (std::size_t r = 0; r < readers.size(); ++r) {
    std::map<std::tuple<std::uint32_t, std::uint32_t>, std::uint64_t> least;
    for (const parcel& p : readers[r].seen()) {
      const std::tuple key{p.sender(), p.route()};
      if (!p.here()) wrong << "reader " << r << " received a parcel that was moved away\n";
      auto& floor = least[key];
      if (p.number() < floor) {
        wrong << "reader " << r << " saw " << p.number() << " of sender " << p.sender() << " route "
              << p.route() << " after " << floor - 1 << "\n";
      }
      floor = p.number() + 1;
      auto& counted = times[key];
      if (p.number() >= counted.size()) {
        wrong << "reader " << r << " received " << p.number() << " of sender " << p.sender()
              << ", which was never sent\n";
      } else {
        ++counted[p.number()];
      }
    }
  }
  for (const auto& [key, counted] : times) {
    for (std::size_t n = 0; n < counted.size(); ++n) {
      if (counted[n] == 1) continue;
      wrong << "parcel " << n << " of sender " << std::get<0>(key) << " route " << std::get<1>(key)
            << " arrived " << counted[n] << " times\n";
    }
  }
  auto text = wrong.str();
  if (text.size() > 2000) text.resize(2000);
  return text;
}

inline std::size_t total(const std::vector<arrivals>& readers) {
  std::size_t count = 0;
  for (const auto& r : readers) count += r.seen().size();
  return count;
}

}  // namespace sluice::testing
