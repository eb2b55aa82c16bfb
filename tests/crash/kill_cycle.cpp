#include "tests/crash/kill_cycle.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <stop_token>

#include "sluice/base/seam.hpp"
#include "sluice/base/testing/test_name.hpp"
#include "sluice/sync/event.hpp"
#include "tests/crash/http_client.hpp"

namespace sluice::crash {
namespace {

using namespace std::chrono_literals;

// How a life ends.
enum class ending : std::uint8_t {
  under_load,
  when_all_are_answered  // so that the kill cannot hide a request that is never answered
};

std::unique_ptr<client> client_of(const kill_plan::connect_to& connect,
                                  const server_program& server) {
  if (connect) return connect(server);
  return std::make_unique<http_client>(port_of(server.url()));
}

// Keeps the server busy, and ends it after a random time.
void end_under_load(server_program& server, ledger& book, random& chance, ending when,
                    std::chrono::milliseconds at_least, const kill_plan& plan) {
  const auto connect_to = [&] { return client_of(plan.connect, server); };
  const auto moment = below(chance, 1s) + at_least;
  load busy = plan.busy;
  busy.seed = chance.next();
  std::stop_source enough;
  const bool waits = when == ending::when_all_are_answered;
  {
    const seam::thread killer([&] {
      pass(moment);
      if (waits) {
        enough.request_stop();
      } else {
        plan.end_server(server, chance);
      }
    });
    const int deserted = keep_busy(book, connect_to, busy, enough.get_token());
    EXPECT_TRUE(!waits || deserted == 0) << "a running server left clients without an answer";
  }
  if (waits) plan.end_server(server, chance);
}

// Kills the server while it starts and recovers, before any client is connected.
void end_while_it_starts(const temporary_folder& folder, random& chance) {
  jobs::cli::testing::program server({"serve", "--data", folder.file("data"), "--port", "0"});
  pass(below(chance, 50ms));
  server.signal(SIGKILL);
  EXPECT_EQ(server.wait().code, 128 + SIGKILL);
}

// Whether the load so far was large enough to be meaningful.
bool was_busy(const verdict& so_far, std::uint64_t kills) {
  return so_far.acknowledged >= 20 * kills && so_far.done >= 5 * kills && so_far.redelivered > 0;
}

}  // namespace

void pass(std::chrono::microseconds time) {
  event never_set;  // a power cut comes without notice
  (void)never_set.wait(time);
}

std::chrono::microseconds below(random& chance, std::chrono::microseconds bound) {
  return std::chrono::microseconds(chance.below(static_cast<std::uint32_t>(bound.count())));
}

verdict end_repeatedly(const kill_plan& plan) {
  const std::string name = sluice::testing::test_name();
  const std::uint64_t kills = sluice::testing::effort(name, "kills", plan.kills);
  const temporary_folder folder;
  random chance(sluice::testing::seed(name));
  ledger book;
  std::uint64_t cut_short = 0;
  const auto has_shown_enough = [&] {
    const verdict so_far = book.judge();
    return was_busy(so_far, kills) && cut_short > 0 && plan.has_shown(so_far);
  };
  for (std::uint64_t i = 0; i < kills || (i < 10 * kills && !has_shown_enough()); ++i) {
    if (i % 5 == 1) end_while_it_starts(folder, chance);
    server_program server(folder, plan.arguments);
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "after " << i << " kills";
      return book.judge();
    }
    end_under_load(server, book, chance,
                   i % 10 == 3 ? ending::when_all_are_answered : ending::under_load,
                   i % 10 == 7 ? plan.long_life : 0ms, plan);
    const auto ended = server.itself().wait();
    EXPECT_TRUE(plan.codes.contains(ended.code)) << ended.code << ": " << ended.err;
    cut_short += ended.code != 0 ? 1U : 0U;
    if (plan.after_life) plan.after_life();
    book.crashed();
  }
  server_program server(folder, plan.arguments);
  const auto last = client_of(plan.connect_last, server);
  EXPECT_TRUE(drain(book, *last)) << server.itself().err();
  auto found = book.judge();
  std::printf("[          ] %s\n", found.to_string().c_str());
  EXPECT_TRUE(found.ok());
  EXPECT_TRUE(was_busy(found, kills)) << "too little load to show anything";
  EXPECT_TRUE(plan.has_shown(found)) << "the load's own condition was never met";
  EXPECT_GT(cut_short, 0U) << "every life ended in an orderly shutdown";
  EXPECT_EQ(server.stop().code, 0);
  return found;
}

}  // namespace sluice::crash
