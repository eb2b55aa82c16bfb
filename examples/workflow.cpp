// Jobs that wait for one another, on the embedded engine: a batch with a callback, two of its jobs
// under one key, so that they never run at the same time, and a cron entry beside it.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "jobs/embedded/open.hpp"
#include "jobs/worker/worker.hpp"
#include "sluice/sync/event.hpp"

using namespace std::chrono_literals;
namespace jobs = sluice::jobs;

namespace {

int fail(const jobs::error& why) {
  std::fprintf(stderr, "%s\n", why.message.c_str());
  return 1;
}

// Both bookings charge the same card: with their key, one of them runs at a time.
jobs::batch_spec trip_of(const std::string& traveller) {
  const std::string card = "card:" + traveller;
  jobs::batch_spec trip;
  trip.jobs = {{.kind = "book", .key = card, .step = "flight"},
               {.kind = "book", .key = card, .step = "hotel"},
               {.kind = "mail", .after = {{.step = "flight"}, {.step = "hotel"}}}};
  trip.on_success = jobs::job_spec{.kind = "celebrate"};
  trip.on_failure = jobs::job_spec{.kind = "apologise"};
  return trip;
}

int run(const std::string& path) {
  std::atomic<int> booking = 0, booked = 0, overlaps = 0, wrong = 0;
  sluice::event swept;

  auto opened = jobs::open(path);
  if (!opened) return fail(opened.error());
  jobs::engine& queue = **opened;

  jobs::worker w(jobs::work_from(queue), {.concurrency = 4});
  w.handle("book", [&](jobs::job_context& ctx) {
    overlaps += booking.fetch_add(1);
    ctx.progress(40, "the card is charged");  // percent, and a line for people
    ctx.log("room 12, two nights");           // a line of this attempt's log
    ++booked;
    --booking;
  });
  w.handle("mail", [&] { wrong += booked == 2 ? 0 : 1; });
  w.handle("celebrate", [&] { return std::string("bon voyage"); });
  w.handle("apologise", [&] { ++wrong; });
  w.handle("sweep", [&] { swept.set(); });
  w.start();

  auto pushed = queue.push_batch(trip_of("ada")).get();
  if (!pushed) return fail(pushed.error());  // all jobs are on disk, or none

  jobs::cron_spec sweep;
  sweep.name = "sweep";
  sweep.schedule = "@every 1s";
  sweep.job.kind = "sweep";
  if (auto set = queue.set_cron(sweep).get(); !set) return fail(set.error());

  const auto ended = queue.wait(pushed->on_success, sluice::deadline::after(30s)).get();
  if (!ended) return fail(ended.error());
  const auto trip = queue.get_batch(pushed->id).get();
  if (!trip) return fail(trip.error());
  const bool ran = static_cast<bool>(swept.wait(30s));

  std::printf("trip %llu is %s: %s; the cron entry %s\n", static_cast<unsigned long long>(trip->id),
              std::string(to_string(trip->state())).c_str(),
              ended->result.value_or(jobs::payload{}).data.c_str(),
              ran ? "has run" : "has not run");
  const bool finished = static_cast<bool>(w.stop(sluice::deadline::after(5s)));
  const bool right = trip->state() == jobs::batch_state::done && overlaps == 0 && wrong == 0;
  return finished && right && ran ? 0 : 1;
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("sluice_workflow_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const int code = run(folder / "jobs.db");
  std::filesystem::remove_all(folder);
  return code;
}
