// Faktory's protocol: commands in pieces of any size, on a running engine and on a stopped one;
// jobs, decoded and encoded again; patterns.

#include <algorithm>
#include <memory>
#include <string>

#include "fuzz/fuzz_target.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/protocol/faktory/detail/faktory_session.hpp"
#include "jobs/protocol/testing/fake_client.hpp"
#include "jobs/store/memory/memory_store.hpp"
#include "sluice/executor/manual_executor.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

namespace {

// A server whose queues and jobs are reset before they accumulate. No client waits in it for a job.
class world {
 public:
  enum class state : std::uint8_t { lives, has_stopped };

  explicit world(state is) {
    auto opened = engine::open(make_memory_store({}), {.time = &time_, .seed = 1});
    claim(opened.has_value(), "an engine");
    jobs_ = std::move(*opened);
    if (is == state::has_stopped) jobs_->stop();
    faktory_options options;
    options.fetch_wait = milliseconds(0);
    options.time = &time_;
    all_ = std::make_unique<faktory::shared_state>(options, *jobs_);
  }
  ~world() {
    jobs_.reset();
    loop_.run_all();
  }

  // Each command has one reply, and each reply is whole.
  void talk(std::string_view input, std::size_t piece) {
    const std::uint64_t before = all_->counts.commands.load(sluice::relaxed);
    const auto wire = testing::fake_client::connect(loop_, [&](protocol::client& target) {
      return std::make_unique<faktory::faktory_session>(*all_, target);
    });
    const bool greets = input.starts_with("HELLO ");
    if (!greets) wire->send("HELLO {\"v\":2,\"wid\":\"w\"}\r\n");
    while (!input.empty()) {
      wire->send(input.substr(0, piece));
      input.remove_prefix(std::min(piece, input.size()));
      settle(*wire);
    }
    claim(wire->open_replies() == 0, "every command to be answered");
    claim(wire->needs() <= faktory::faktory_session::line_bytes_max, "a bound on a command");
    std::uint64_t replies = 0;
    while (const auto reply = wire->try_read()) ++replies;
    const std::uint64_t commands = all_->counts.commands.load(sluice::relaxed) - before;
    claim(replies == commands + 1, "one reply for each command");
    claim(wire->take().empty(), "whole replies");
    wire->close();
    claim(all_->connections.load(sluice::relaxed) == 0 && all_->crew.count().workers == 0 &&
              all_->crew.count().jobs == 0,
          "zero counts after the connection has closed");
  }

 private:
  // Runs until no command is in progress. A FETCH without a job is answered after its time-out.
  void settle(testing::fake_client& wire) {
    for (;;) {
      while (wire.calls() > 0) (void)loop_.run_next();
      loop_.run_all();
      if (wire.open_replies() == 0 || wire.wakes_at() == sluice::time_point::max()) return;
      wire.wake(sluice::time_point::max());
    }
  }

  manual_time time_;
  sluice::manual_executor loop_;
  std::unique_ptr<engine> jobs_;
  std::unique_ptr<faktory::shared_state> all_;
};

// The last server is not destroyed: an engine cannot be stopped during the exit of the program.
world& living() {
  static world* server = nullptr;
  static unsigned inputs = 0;
  if (inputs++ % 200 == 0) {
    delete server;
    server = new world(world::state::lives);
  }
  return *server;
}

world& stopped() {
  static world* const server = new world(world::state::has_stopped);
  return *server;
}

void there_and_back(std::string_view input) {
  auto read = faktory::read_job(input, {.now = {1'767'225'600'000}});
  if (!read) return claim(!read.error().message.empty(), "a reason");
  job stored;
  stored.id = 1;
  stored.spec = read->spec;
  stored.errors.push_back({1, {1'767'225'600'000}, "E", std::string(input.substr(0, 100)), "a\nb"});
  const faktory::job_facts facts = faktory::facts_of(stored);
  claim(facts.is_ours && facts.jid == read->jid, "a jid to be found again");
  std::string text;
  faktory::write_job(text, stored, facts);
  claim(json::check_json(text).has_value(), "JSON");
  const auto again = faktory::read_job(text, {.now = {1'767'225'600'000}});
  if (!again) return;  // the added created_at may duplicate a kept member
  claim(again->jid == read->jid && again->spec.args == read->spec.args &&
            again->spec.kind == read->spec.kind && again->spec.queue == read->spec.queue &&
            again->spec.unique == read->spec.unique && again->spec.retry == read->spec.retry,
        "the same job");
}

void look_for(std::string_view input) {
  const std::size_t cut = std::min(input.find('\n'), input.size());
  const std::string_view pattern = input.substr(0, cut);
  const std::string_view text = input.substr(std::min(cut + 1, input.size()));
  const bool found = faktory::matches(pattern, text);
  if (found)
    claim(faktory::matches("*" + std::string(pattern) + "*", text),
          "a longer pattern to match too");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = sluice::fuzz::text_of(data, size);
  const unsigned choice = sluice::fuzz::take_choice(input);
  switch (choice % 4) {
    case 0:
      there_and_back(input);
      break;
    case 1:
      look_for(input);
      break;
    case 2:
      living().talk(input, 1 + choice / 4);
      break;
    default:
      stopped().talk(input, 1 + choice / 4);
      break;
  }
  return 0;
}
