// Ten thousand thermometers, of which two hundred are in memory: keyed actors.
//
// A sender of readings addresses a device by its key, whether or not the device is in memory: the
// message activates it, it is passivated when others need its place, and the next message activates
// it again. At the end a second system asks every device for its state: all saved readings are
// there.
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>

#include "sluice/actor/keyed_actors.hpp"
#include "sluice/actor/memory_actor_store.hpp"
#include "sluice/base/random.hpp"
#include "sluice/executor/work_stealing_pool.hpp"

namespace {

using namespace sluice;

constexpr std::uint32_t devices = 10'000;
constexpr std::uint32_t readings = 100'000;

struct reading {
  int degrees;
};
struct report {
  struct line {
    std::uint32_t readings = 0;
    int lowest = 1000;
    int highest = -1000;
  };
  using reply = line;
};

class thermometer : public actor<thermometer, reading, report> {
 public:
  void on(reading r) {
    ++seen_.readings;
    if (r.degrees < seen_.lowest) seen_.lowest = r.degrees;
    if (r.degrees > seen_.highest) seen_.highest = r.degrees;
  }
  report::line on(report) const { return seen_; }

  // The state that is saved at a passivation.
  std::string save() const {
    std::ostringstream out;
    out << seen_.readings << ' ' << seen_.lowest << ' ' << seen_.highest;
    return out.str();
  }
  void load(std::string_view saved) {
    std::istringstream in{std::string(saved)};
    in >> seen_.readings >> seen_.lowest >> seen_.highest;
  }

 private:
  report::line seen_;
};

std::string key_of(std::uint32_t number) {
  return "device-" + std::to_string(number);
}

keyed_options kept_in(actor_store& store) {
  keyed_options o;
  o.store = &store;
  o.type = "thermometer";
  o.live_max = 200;  // beyond it the least recently used are passivated
  return o;
}

bool take_readings(work_stealing_pool& pool, actor_store& store) {
  actor_system system(pool);
  keyed_actors<thermometer> all(system, kept_in(store));
  sluice::random dice(1);
  for (std::uint32_t i = 0; i < readings; ++i) {
    const int degrees = static_cast<int>(dice.below(60)) - 20;
    if (!all.of(key_of(dice.below(devices))).send(reading{degrees})) return false;
  }
  const keyed_stats s = all.stats();
  std::printf("%u readings of %u devices: %zu in memory, brought there %llu times\n", readings,
              devices, s.live, static_cast<unsigned long long>(s.loads));
  all.close();  // queued messages are handled, live actors are saved
  (void)all.ended().get();
  return s.live <= 400;  // live_limit: twice live_max
}

bool tell_all(work_stealing_pool& pool, actor_store& store) {
  actor_system system(pool);
  const keyed_actors<thermometer> all(system, kept_in(store));
  report::line sum;
  for (std::uint32_t i = 0; i < devices; ++i) {
    const report::line one = all.of(key_of(i)).ask(report{}).get();
    sum.readings += one.readings;
    if (one.lowest < sum.lowest) sum.lowest = one.lowest;
    if (one.highest > sum.highest) sum.highest = one.highest;
  }
  std::printf("they remember %u readings, from %d to %d degrees\n", sum.readings, sum.lowest,
              sum.highest);
  return sum.readings == readings;
}

}  // namespace

int main() {
  memory_actor_store store;  // sqlite_actor_store if the state must outlive the process
  work_stealing_pool pool;
  return take_readings(pool, store) && tell_all(pool, store) ? 0 : 1;
}
