#include "benchmarks/actor/population.hpp"

#include <unistd.h>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/actor/workloads.hpp"
#include "benchmarks/child_process.hpp"
#include "benchmarks/cpu_time.hpp"

namespace sluice::bench {

namespace {

constexpr std::string_view child_flag = "--population";  // CONTENDER WORKLOAD SIZE
constexpr auto idle_window = std::chrono::seconds(1);

struct registered_population {
  std::string who;
  population_registration::maker make;
};

std::vector<registered_population>& all() {
  static std::vector<registered_population> list;
  return list;
}

double resident_bytes() {
  std::uint64_t size_pages = 0;
  std::uint64_t resident_pages = 0;
  std::ifstream file("/proc/self/statm");
  if (!(file >> size_pages >> resident_pages)) fail("cannot read /proc/self/statm");
  return static_cast<double>(resident_pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// The three workloads run the same steps and measure different quantities.
double take(population& people, std::string_view workload, std::uint64_t size) {
  const double bytes_before = resident_bytes();
  const auto started = std::chrono::steady_clock::now();
  people.create(size);
  const seconds took = std::chrono::steady_clock::now() - started;
  expect_equal(people.count(), size, "actors that answered after they were created");
  if (workload == "create") return static_cast<double>(size) / took.count();
  if (workload == "bytes") return (resident_bytes() - bytes_before) / static_cast<double>(size);
  if (workload != "idle_cpu_ms") fail("no measurement of a population has that name");
  const double cpu_before_ms = process_cpu_ms();
  std::this_thread::sleep_for(idle_window);
  const double used_ms = process_cpu_ms() - cpu_before_ms;
  expect_equal(people.count(), size, "actors that answered after they were idle");
  return used_ms;
}

measure in_child(std::string who, std::string workload) {
  return [who = std::move(who), workload = std::move(workload)](const settings& s) {
    const std::uint64_t size = s.quick ? population_size / 100 : population_size;
    return run_child(
        {"/proc/self/exe", std::string(child_flag), who, workload, std::to_string(size)});
  };
}

const registration added{[](suite& s) {
  for (const registered_population& each : all()) {
    for (const char* const workload : {"create", "bytes", "idle_cpu_ms"}) {
      s.add(workload, each.who, in_child(each.who, workload));
    }
  }
}};

}  // namespace

population_registration::population_registration(std::string who, maker make) {
  all().push_back({std::move(who), make});
}

void run_if_child(int argc, char** argv) {
  if (argc != 5 || argv[1] != child_flag) return;
  const std::string_view digits = argv[4];
  std::uint64_t size = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), size);
  for (const registered_population& each : all()) {
    if (each.who != argv[2]) continue;
    const std::unique_ptr<population> people = each.make();
    std::printf("%.6f\n", take(*people, argv[3], size));
    std::fflush(stdout);
    std::_Exit(0);  // a runtime may take long to end a million actors
  }
  fail("no contender with that name has a population");
}

}  // namespace sluice::bench
