// The bytes of a time zone file.

#include <array>

#include "fuzz/fuzz_target.hpp"
#include "jobs/model/cron_schedule.hpp"
#include "jobs/model/time_zone.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

namespace {

void ask(const time_zone& zone, std::chrono::seconds time) {
  const auto p = zone.period_at(std::chrono::sys_seconds(time));
  claim(p.begin < p.end, "a period of positive length");
  if (zone.period_at(p.end).begin > p.begin) {
    claim(zone.period_at(p.end).begin == p.end, "adjacent periods");
  }
  const std::chrono::local_seconds local(time);
  const auto at = zone.resolve(local);
  claim(at.first <= at.second, "ordered moments");
  if (at.kind != time_zone::shown::never) {
    claim(zone.period_at(at.first).to_local(at.first) == local, "the requested local time");
    claim(zone.period_at(at.second).to_local(at.second) == local,
          "the requested local time at the second moment");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto zone = time_zone::read("Fuzzed/Zone", sluice::fuzz::text_of(data, size));
  if (!zone) {
    claim(sluice::fuzz::is_printable(zone.error().message), "a printable message");
    return 0;
  }
  constexpr std::array<std::int64_t, 7> times = {-100'000'000'000, -1'000'000'000, 0,
                                                 1'325'000'000,    1'774'746'000,  4'100'000'000,
                                                 200'000'000'000};
  for (const std::int64_t time : times) {
    ask(*zone, std::chrono::seconds(time));
  }
  for (const char* text : {"30 2 * * *", "0 */2 * * *", "15 * * * *"}) {
    const auto cron = cron_schedule::parse(text, *zone);
    unix_time last{1'325'000'000'000};
    for (int i = 0; i < 5; ++i) {
      const auto next = cron->next_after(last);
      claim(next && *next > last, "a later run");
      last = *next;
    }
  }
  return 0;
}
