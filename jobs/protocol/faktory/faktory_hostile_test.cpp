// Hostile input.

#include <random>

#include "jobs/protocol/faktory/testing/faktory_words.hpp"
#include "sluice/base/testing/effort.hpp"
#include "sluice/base/testing/test_name.hpp"

namespace sluice::jobs::testing::faktory_hostile_test {
namespace {

class FaktoryHostile : public faktory_words {};

TEST_F(FaktoryHostile, ACommandMayArriveByteByByte) {
  auto& c = client();
  for (const char byte : push_line("12345678") + "\r\nFETCH default\r\nEND\r\n") {
    c.wire().send({&byte, 1});
  }
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_EQ(jid_in(c.hear()), "\"12345678\"");
  EXPECT_EQ(c.hear(), "+OK");
}

TEST_F(FaktoryHostile, ALineMayEndWithLfOnly) {
  auto& c = client();
  c.wire().send(push_line("12345678") + "\n");
  EXPECT_EQ(c.hear(), "+OK");
}

TEST_F(FaktoryHostile, JsonThatIsTooDeepIsRefused) {
  auto& c = client();
  const std::string deep = std::string(100'000, '[');
  EXPECT_TRUE(c.ask("PUSH " + deep).starts_with("-ERR "));
  EXPECT_TRUE(
      c.ask(R"(PUSH {"jid":"12345678","jobtype":"a","args":)" + deep + "}").starts_with("-ERR "));
  EXPECT_TRUE(c.ask("HELLO " + deep).starts_with("-ERR "));
  EXPECT_TRUE(c.ask("PUSHB " + deep).starts_with("-ERR "));
  EXPECT_TRUE(c.ask("BATCH NEW " + deep).starts_with("-ERR "));
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
}

TEST_F(FaktoryHostile, NumbersThatAreTooLargeAreRefused) {
  auto& c = client();
  for (const std::string number : {"1e999", "99999999999999999999", "-99999999999999999999"}) {
    EXPECT_TRUE(c.ask(push_line("12345678", "\"retry\":" + number)).starts_with("-ERR retry"));
    EXPECT_TRUE(
        c.ask(push_line("12345678", "\"reserve_for\":" + number)).starts_with("-ERR reserve_for"));
    EXPECT_TRUE(c.ask(push_line("12345678", R"("custom":{"unique_for":)" + number + "}"))
                    .starts_with("-ERR custom: unique_for"));
  }
  EXPECT_EQ(c.ask(R"(PUSH {"jid":"12345678","jobtype":"a","args":[1e999,99999999999999999999]})"),
            "+OK");
  EXPECT_EQ(member(c.ask("FETCH"), "args"), "[1e999,99999999999999999999]");
}

TEST_F(FaktoryHostile, TextThatIsNotUtf8IsRefused) {
  auto& c = client();
  EXPECT_TRUE(
      c.ask("PUSH {\"jid\":\"1234567\xff\",\"jobtype\":\"a\",\"args\":[]}").starts_with("-ERR "));
  EXPECT_TRUE(c.ask("PUSH {\"jid\":\"12345678\",\"jobtype\":\"a\",\"args\":[\"\xc0\xaf\"]}")
                  .starts_with("-ERR "));
  EXPECT_TRUE(c.ask("\xff\xfe").starts_with("-ERR Unknown command"));
}

TEST_F(FaktoryHostile, AnErrorIsAlwaysOneLine) {
  auto& c = client();
  c.wire().send(std::string("A\rB\0C\x1b[2J", 9) + "\r\n");
  EXPECT_EQ(c.hear(), std::string("-ERR Unknown command A B C [2J"));
}

TEST_F(FaktoryHostile, ALineThatIsTooLongEndsTheConnection) {
  auto& c = client();
  const std::string part(1 << 20, 'x');
  c.wire().send("PUSH ");
  for (int i = 0; i < 3; ++i) c.wire().send(part);
  EXPECT_FALSE(c.has_heard());
  EXPECT_EQ(c.wire().needs(), 3 * part.size() + 6);
  c.wire().send(part);
  EXPECT_EQ(c.hear(), "-ERR the command is longer than 4194304 bytes");
  EXPECT_TRUE(c.wire().is_ended());
}

TEST_F(FaktoryHostile, BeforeHelloLongLinesAreRefused) {
  auto& s = connect();
  (void)s.hear();
  s.wire().send("HELLO " + std::string(65'536, 'x'));
  EXPECT_EQ(s.hear(), "-ERR the command is longer than 65536 bytes");
  EXPECT_TRUE(s.wire().is_ended());
}

// Clients must not use the server's own queues: the server signs and posts their jobs.
TEST_F(FaktoryHostile, TheServersOwnQueuesAreNotForClients) {
  auto& c = client();
  const auto is_refused = [](const std::string& reply) {
    return reply.starts_with("-ERR queue 'sluice/webhooks' belongs to the server");
  };
  EXPECT_TRUE(is_refused(c.ask(push_line("12345678", R"("queue":"sluice/webhooks")"))));
  EXPECT_TRUE(is_refused(c.ask("FETCH sluice/webhooks")));
  EXPECT_TRUE(is_refused(c.ask("QUEUE PAUSE sluice/webhooks")));
  EXPECT_TRUE(is_refused(c.ask("QUEUE REMOVE sluice/webhooks")));
  EXPECT_EQ(c.ask(push_line("12345678", R"("queue":"sluice")")), "+OK");
}

TEST_F(FaktoryHostile, ALongLineInManyPacketsIsSearchedOnce) {
  auto& c = client();
  std::string line = "FETCH " + std::string(100'000, 'q');
  EXPECT_EQ(c.wire().session().consume(line), 0U);
  // The session has searched these bytes already, so it does not find a line end in them.
  line[50'000] = '\n';
  line += "qq";
  EXPECT_EQ(c.wire().session().consume(line), 0U);
  line += "\r\nINFO\r\n";
  EXPECT_EQ(c.wire().session().consume(line), line.size());
  EXPECT_TRUE(c.hear().starts_with("-ERR the name of a queue is longer than 200 bytes"));
  EXPECT_TRUE(c.hear().starts_with("{"));
}

TEST_F(FaktoryHostile, FourMegabytesMayArriveInSmallPackets) {
  auto& c = client();
  const std::string line = push_line("12345678", "\"x\":\"" + std::string(60'000, 'x') + "\"") +
                           std::string((4 << 20) - 70'000, ' ') + "\r\n";
  for (std::string_view left = line; !left.empty();) {
    const std::size_t count = std::min<std::size_t>(left.size(), 100);
    c.wire().send(left.substr(0, count));
    left.remove_prefix(count);
  }
  EXPECT_EQ(c.hear(), "+OK");
}

TEST_F(FaktoryHostile, ALongLineIsTaken) {
  auto& c = client();
  const std::string args = "[\"" + std::string(3 << 20, 'y') + "\"]";
  EXPECT_EQ(c.ask(R"(PUSH {"jid":"12345678","jobtype":"a","args":)" + args + "}"), "+OK");
  EXPECT_EQ(member(c.ask("FETCH"), "args"), args);
}

TEST_F(FaktoryHostile, TheMetadataOfAJobIsBounded) {
  auto& c = client();
  const std::string got =
      c.ask(push_line("12345678", R"("custom":{"x":")" + std::string(70'000, 'x') + "\"}"));
  EXPECT_EQ(got, "-ERR metadata is longer than 65536 bytes");
  EXPECT_TRUE(
      c.ask(R"(PUSH {"jid":"12345678","args":[],"jobtype":")" + std::string(300, 'x') + "\"}")
          .starts_with("-ERR kind is longer than 256 bytes"));
}

TEST_F(FaktoryHostile, RandomBytesBreakNothing) {
  std::mt19937_64 random(sluice::testing::seed(sluice::testing::test_name()));
  const std::vector<std::string> words = {"PUSH ",
                                          "PUSHB ",
                                          "ACK ",
                                          "FAIL ",
                                          "INFO",
                                          "BEAT ",
                                          "TRACK GET ",
                                          "TRACK SET ",
                                          "BATCH ",
                                          "NEW ",
                                          "STATUS ",
                                          "MUTATE ",
                                          "QUEUE ",
                                          "PAUSE ",
                                          "REMOVE ",
                                          "*",
                                          "{",
                                          "}",
                                          "[",
                                          "]",
                                          "\"jid\":",
                                          ",",
                                          "\"12345678\"",
                                          "\r\n",
                                          "\n",
                                          " ",
                                          "null",
                                          "1e9",
                                          "\"args\":",
                                          "\"jobtype\":",
                                          "b-00000001",
                                          "\xff"};
  auto& c = client();
  for (int round = 0; round < 3000; ++round) {
    std::string line;
    for (auto i = random() % 12; i > 0; --i) line += words[random() % words.size()];
    c.wire().send(line + "\r\n");
    c.settle();
    (void)c.wire().take();
    ASSERT_FALSE(c.wire().is_ended());
  }
  EXPECT_EQ(c.wire().open_replies(), 0U);
  EXPECT_TRUE(c.ask("INFO").starts_with("{"));
}

TEST_F(FaktoryHostile, NamesAndPatternsAreBounded) {
  auto& c = client();
  std::string fetch = "FETCH";
  for (int i = 0; i < 1001; ++i) fetch += " q" + std::to_string(i);
  EXPECT_EQ(c.ask(fetch), "-ERR FETCH names at most 1000 queues");
  EXPECT_TRUE(c.ask(R"(MUTATE {"cmd":"discard","target":"dead","filter":{"regexp":")" +
                    std::string(257, 'a') + R"("}})")
                  .starts_with("-ERR "));
}

}  // namespace
}  // namespace sluice::jobs::testing::faktory_hostile_test
