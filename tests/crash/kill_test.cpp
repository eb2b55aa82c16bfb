// The real program under load, killed at random moments and started again on the same data: nothing
// that it had acknowledged is lost, nothing is invented.
//
// SLUICE_CRASH_KILLS sets how often, SLUICE_CRASH_SEED when and with what load.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <stop_token>
#include <string>

#include "jobs/cli/testing/program.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/seam.hpp"
#include "sluice/base/testing/eventually.hpp"
#include "sluice/sync/event.hpp"
#include "tests/crash/http_client.hpp"
#include "tests/crash/load.hpp"

namespace sluice::crash {
namespace {

using namespace std::chrono_literals;

#if defined(SLUICE_CRASH_SANITIZED)
constexpr std::uint64_t usual_kills = 10;
#else
constexpr std::uint64_t usual_kills = 50;
#endif

std::uint64_t setting(const char* name, std::uint64_t usual) {
  const char* const asked = std::getenv(name);
  return asked == nullptr ? usual : std::strtoull(asked, nullptr, 10);
}

using jobs::cli::testing::server_program;
using jobs::cli::testing::temporary_folder;

using end_it = void (*)(server_program&, random&);

// How a life ends.
enum class ending : std::uint8_t {
  under_load,
  when_all_are_answered  // so that a request which is never answered cannot hide behind the kill
};

void pass(std::chrono::microseconds time) {
  event nobody_sets;  // a power switch gives no sign
  (void)nobody_sets.wait_within({deadline::after(time), {}});
}

std::chrono::microseconds below(random& chance, std::chrono::microseconds bound) {
  return std::chrono::microseconds(chance.below(static_cast<std::uint32_t>(bound.count())));
}

// Keeps it busy, and ends it after a random time.
void end_under_load(server_program& server, ledger& book, random& chance, ending when, end_it how) {
  const auto connect_to = [&] { return std::make_unique<http_client>(port_of(server.url())); };
  const auto moment = below(chance, 1s);
  const load busy{.pushers = 4, .workers = 4, .seed = chance.next()};
  std::stop_source enough;
  const bool waits = when == ending::when_all_are_answered;
  {
    const seam::thread killer([&] {
      pass(moment);
      if (waits) {
        enough.request_stop();
      } else {
        how(server, chance);
      }
    });
    const int deserted = keep_busy(book, connect_to, busy, enough.get_token());
    EXPECT_TRUE(!waits || deserted == 0) << "a living server left clients without an answer";
  }
  if (waits) how(server, chance);
}

// Power that goes again while it starts and recovers: nobody gets to speak to it.
void end_while_it_starts(const temporary_folder& folder, random& chance) {
  jobs::cli::testing::program server({"serve", "--data", folder.file("data"), "--port", "0"});
  pass(below(chance, 50ms));
  server.signal(SIGKILL);
  EXPECT_EQ(server.wait().code, 128 + SIGKILL);
}

// So many ends and starts, and then the judgement. `codes`: with which it may end.
void end_again_and_again(std::uint64_t kills, end_it how, std::set<int> codes) {
  const auto seed = setting("SLUICE_CRASH_SEED",
                            static_cast<std::uint64_t>(seam::now().time_since_epoch().count()));
  std::printf("[          ] %lu kills, SLUICE_CRASH_SEED=%lu\n", static_cast<unsigned long>(kills),
              static_cast<unsigned long>(seed));
  std::fflush(stdout);  // a run that hangs or is ended must have said it
  const temporary_folder folder;
  random chance(seed);
  ledger book;
  std::uint64_t cut_short = 0;
  for (std::uint64_t i = 0; i < kills; ++i) {
    if (i % 5 == 1) end_while_it_starts(folder, chance);
    server_program server(folder);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "after " << i << " kills";
    end_under_load(server, book, chance,
                   i % 10 == 3 ? ending::when_all_are_answered : ending::under_load, how);
    const auto ended = server.itself().wait();
    EXPECT_TRUE(codes.contains(ended.code)) << ended.code << ": " << ended.err;
    cut_short += ended.code != 0 ? 1U : 0U;
    book.crashed();
  }
  server_program server(folder);
  http_client last(port_of(server.url()));
  EXPECT_TRUE(drain(book, last)) << server.itself().err();
  const auto found = book.judge();
  std::printf("[          ] %s\n", found.to_string().c_str());
  EXPECT_TRUE(found.ok());
  EXPECT_GE(found.acknowledged, 20 * kills) << "too little load to show anything";
  EXPECT_GE(found.done, 5 * kills);
  EXPECT_GT(found.redelivered, 0U);
  EXPECT_GT(cut_short, 0U) << "every end was one in good order";
  EXPECT_GT(found.called_off, 0U);
  EXPECT_GT(found.expired, 0U);
  EXPECT_EQ(server.stop().code, 0);
}

TEST(kill_test, NothingAcknowledgedIsLost) {
  end_again_and_again(setting("SLUICE_CRASH_KILLS", usual_kills),
                      [](server_program& server, random&) { server.itself().signal(SIGKILL); },
                      {128 + SIGKILL});
}

// It may have had no lease to wait for, and be done before the second signal: code 0.
TEST(kill_test, NothingAcknowledgedIsLostWhenASecondSignalEndsItAtOnce) {
  end_again_and_again(
      5,
      [](server_program& server, random&) {
        const auto& it = server.itself();
        it.signal(SIGTERM);
        sluice::testing::eventually(
            [&] { return it.has_ended() || it.err().find("shutting down") != std::string::npos; },
            "the first signal to be heard");
        it.signal(SIGTERM);
      },
      {0, 128 + SIGTERM});
}

TEST(kill_test, NothingAcknowledgedIsLostWhenItIsKilledWhileItShutsDown) {
  end_again_and_again(5,
                      [](server_program& server, random& chance) {
                        server.itself().signal(SIGTERM);
                        pass(below(chance, 50ms));
                        server.itself().signal(SIGKILL);
                      },
                      {0, 128 + SIGKILL});
}

}  // namespace
}  // namespace sluice::crash
