#include "sluice/sync/wait_source.hpp"

#include <cstddef>
#include <mutex>

#include "sluice/sync/mutex.hpp"

namespace sluice::watch {
namespace {

struct source_list {
  mutex guard;
  intrusive_list<wait_source> all;  // protected by guard
  std::uint64_t numbers = 0;        // protected by guard
};

constexpr unsigned party_bits = 44;
constexpr unsigned wait_bits = 48;

party of_source(std::uint64_t source, party p) noexcept {
  if (p.what() != party::kind::actor) return p;
  return party::actor(number_in_source(p) | (source << party_bits));
}

// Never freed: sources may be gone after everything else.
source_list& sources() {
  static auto* const list = new source_list;
  return *list;
}

}  // namespace

void add_source(wait_source& s) {
  auto& list = sources();
  const std::lock_guard hold(list.guard);
  s.number_ = list.numbers++;  // the first one's parties keep their numbers
  list.all.push_back(s);
}

void remove_source(wait_source& s) noexcept {
  const std::lock_guard hold(sources().guard);
  if (s.linked()) s.unlink();
}

std::vector<foreign_wait> foreign_waits() {
  std::vector<foreign_wait> found;
  auto& list = sources();
  const std::lock_guard hold(list.guard);
  list.all.for_each([&](const wait_source& each) {
    const auto before = static_cast<std::ptrdiff_t>(found.size());
    each.add_waits(found);
    for (auto at = found.begin() + before; at != found.end(); ++at) {
      at->who = of_source(each.number_, at->who);
      at->for_whom = of_source(each.number_, at->for_whom);
      at->number |= each.number_ << wait_bits;
    }
  });
  return found;
}

}  // namespace sluice::watch
