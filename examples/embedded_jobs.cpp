// A durable job queue inside one program: jobs are pushed, run by a typed handler, retried if the
// handler fails, and still there when the program is started again.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <tuple>

#include "jobs/embedded/open.hpp"
#include "jobs/worker/worker.hpp"

using namespace std::chrono_literals;
namespace jobs = sluice::jobs;

namespace {

struct thumbnail {
  std::string url;
  int width = 320;

  static constexpr auto fields = std::tuple{jobs::field("url", &thumbnail::url),
                                            jobs::optional_field("width", &thumbnail::width)};
};

struct picture {
  std::string file;
  int bytes = 0;

  static constexpr auto fields =
      std::tuple{jobs::field("file", &picture::file), jobs::field("bytes", &picture::bytes)};
};

// Fails the first time.
picture shrink(const thumbnail& t, jobs::job_context& ctx) {
  if (ctx.attempt() == 1) throw std::runtime_error("connection reset");
  return {.file = t.url + "." + std::to_string(t.width) + ".png", .bytes = t.width * t.width};
}

int fail(const jobs::error& why) {
  std::fprintf(stderr, "%s\n", why.message.c_str());
  return 1;
}

int run(const std::string& path) {
  jobs::job_id id = 0;
  {
    auto opened = jobs::open(path);
    if (!opened) return fail(opened.error());
    jobs::engine& queue = **opened;

    auto pushed = queue
                      .push({.kind = "thumbnail",
                             .args = jobs::encode(thumbnail{.url = "ada", .width = 64}),
                             .retry = {.attempts_max = 5, .first = 10ms}})
                      .get();
    if (!pushed) return fail(pushed.error());
    id = pushed->id;  // it is on disk now
  }                   // the program ends, or is killed

  auto opened = jobs::open(path);
  if (!opened) return fail(opened.error());
  jobs::engine& queue = **opened;

  jobs::worker w(jobs::work_from(queue), {.concurrency = 4});
  w.handle("thumbnail", shrink);
  w.start();

  const auto ended = queue.wait(id, sluice::deadline::after(30s)).get();
  if (!ended) return fail(ended.error());
  const auto made = jobs::decode<picture>(ended->result.value_or(jobs::payload{}));
  if (!made) return fail(made.error());
  std::printf("job %llu is %s: %s, %d bytes, after %zu failed attempt(s): %s\n",
              static_cast<unsigned long long>(id), std::string(to_string(ended->state)).c_str(),
              made->file.c_str(), made->bytes, ended->errors.size(),
              ended->errors.empty() ? "none" : ended->errors.front().message.c_str());
  const bool finished = static_cast<bool>(w.stop(sluice::deadline::after(5s)));
  return finished && made->file == "ada.64.png" && ended->errors.size() == 1 ? 0 : 1;
}

}  // namespace

int main() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("sluice_example_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const int code = run(folder / "jobs.db");
  std::filesystem::remove_all(folder);
  return code;
}
