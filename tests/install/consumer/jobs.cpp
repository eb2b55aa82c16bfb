// A program of another project with an embedded durable job queue: pushes, leases and acks a job.
#include <cstdio>
#include <filesystem>

#include "jobs/embedded/open.hpp"

int main() {
  const std::filesystem::path file = "consumer-jobs.db";
  auto opened = sluice::jobs::open(file.string());
  if (!opened) {
    std::printf("%s\n", opened.error().message.c_str());
    return 1;
  }
  auto& jobs = **opened;
  const auto pushed = jobs.push({.kind = "greet", .args = {R"({"name":"Ada"})"}}).get();
  const auto leased = jobs.lease({}).get();
  if (!pushed || !leased) return 2;
  const auto acked = jobs.ack(leased->front().ref()).get();
  std::printf("job %llu: %s\n", static_cast<unsigned long long>(pushed->id),
              leased->front().job->spec.args.data.c_str());
  return acked && leased->front().job->id == pushed->id ? 0 : 3;
}
