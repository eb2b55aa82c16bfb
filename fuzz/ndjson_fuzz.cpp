// Many jobs as NDJSON, in pieces of any size, pushed to a stopped engine, which keeps
// none of them.

#include <algorithm>
#include <memory>
#include <string>

#include "fuzz/fuzz_target.hpp"
#include "jobs/http/detail/ndjson_push.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "sluice/executor/manual_executor.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

namespace {

class listener final : public http::answerer {
 public:
  void answer(std::uint64_t, http::response&& r) override {
    ++answers;
    claim(r.status >= 200 && r.status < 600, "a status");
  }
  void begin_parts(std::uint64_t, http::response&&, std::shared_ptr<http::part_source>) override {
    claim(false, "a whole answer, no parts");
  }
  bool put_part(std::uint64_t, std::string_view) override { return true; }
  void end_parts(std::uint64_t) override {}
  void keep(std::uint64_t, std::size_t) override {}
  void begin_load(std::uint64_t, sluice::unique_function<void()> done) override { done(); }
  void end_load(std::uint64_t) override {}
  void resume() override {}
  sluice::executor& home() noexcept override { return loop; }
  void call_begins() noexcept override { ++calls; }
  void call_ended() noexcept override { --calls; }
  std::stop_token gone() override { return {}; }
  bool is_gone() const noexcept override { return false; }
  std::string& scratch() noexcept override {
    scratch_.clear();
    return scratch_;
  }

  // Blocks until every call of the engine has returned.
  void settle() {
    while (calls > 0) (void)loop.run_next();
    loop.run_all();
  }

  int answers = 0;
  int calls = 0;
  sluice::manual_executor loop;

 private:
  std::string scratch_;
};

engine& stopped_engine() {
  static const std::unique_ptr<engine> jobs = [] {
    auto opened = engine::open(make_memory_store({}));
    claim(opened.has_value(), "an engine");
    (*opened)->stop();
    return std::move(*opened);
  }();
  return *jobs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static http::server_state server{http_server_options{.stream_jobs_max = 100}};
  std::string_view input = sluice::fuzz::text_of(data, size);
  const unsigned choice = sluice::fuzz::take_choice(input);
  const std::size_t piece = 1 + choice / 2;
  const http::push_parameters asked{.mode = choice % 2 == 0 ? bulk::each : bulk::all_or_nothing};

  const auto receiver = std::make_shared<listener>();
  const auto push = std::make_shared<http::ndjson_push>(
      server, stopped_engine(), http::ticket(receiver, 1), asked, identity());
  while (!input.empty() && !push->is_refused()) {
    const std::size_t count = std::min(piece, input.size());
    push->feed(input.substr(0, count));
    input.remove_prefix(count);
    receiver->settle();
    claim(push->held_bytes() <= push->held_bytes_max() + piece, "a bound on memory");
  }
  if (!push->is_refused()) push->end();
  receiver->settle();
  claim(receiver->answers == 1, "exactly one answer");
  return 0;
}
