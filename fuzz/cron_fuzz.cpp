// The text of a cron line; its first byte chooses the zone.

#include <array>

#include "fuzz/fuzz_target.hpp"
#include "jobs/model/cron_schedule.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

namespace {

const time_zone& zone_of(unsigned choice) {
  static const std::array<time_zone, 4> zones = [] {
    std::array<time_zone, 4> all;
    const std::array names = {"UTC", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia"};
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto found = time_zone::find(names[i]);
      if (found) all[i] = *found;
    }
    return all;
  }();
  return zones[choice % zones.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = sluice::fuzz::text_of(data, size);
  const time_zone& zone = zone_of(sluice::fuzz::take_choice(input));
  const auto cron = cron_schedule::parse(input, zone);
  if (!cron) {
    claim(sluice::fuzz::is_printable(cron.error().message), "a printable message");
    claim(cron.error().message.size() < 600, "a short message");
    return 0;
  }
  const auto again = cron_schedule::parse(cron->text(), zone);
  claim(again.has_value() && *again == *cron, "its own text to be readable");
  claim(!cron->describe().empty(), "a description");
  for (const std::int64_t ms : {1'774'700'000'000, 1'325'000'000'000, -9'000'000'000'001}) {
    unix_time last{ms};
    for (int i = 0; i < 3; ++i) {
      const auto next = cron->next_after(last);
      claim(next.has_value(), "a run within 100 years");
      claim(*next > last, "a later next run");
      claim(cron->next_after(*next - milliseconds(1)) == next, "no run in between");
      last = *next;
    }
  }
  return 0;
}
