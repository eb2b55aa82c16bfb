// Authentication, and the begin and end of a connection.

#include "jobs/protocol/faktory/detail/sha256.hpp"
#include "jobs/protocol/faktory/testing/faktory_words.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::jobs::testing::faktory_hello_test {
namespace {

class FaktoryHello : public faktory_words {
 protected:
  // Connects to a server with a password, and returns the salt.
  std::string greeted_salt(speaker& s) {
    const std::string hi = s.hear();
    EXPECT_TRUE(hi.starts_with(R"(+HI {"v":2,"i":3000,"s":")")) << hi;
    return member(hi, "s").substr(1, 32);
  }
  static std::string hello_with(const std::string& hash) {
    return R"(HELLO {"v":2,"pwdhash":")" + hash + "\"}";
  }
};

TEST_F(FaktoryHello, AServerWithoutAPasswordRequiresNone) {
  auto& s = connect();
  EXPECT_EQ(s.hear(), R"(+HI {"v":2})");
  EXPECT_EQ(s.ask(R"(HELLO {"v":2})"), "+OK");
}

TEST_F(FaktoryHello, APasswordHashIsIteratedSha256) {
  EXPECT_EQ(faktory::password_hash("abcde123", "123", 3),
            "ef646abadf4ffba660d9bbb8de8e45576970de917b4c9da8cad96b49e64636d9");
  EXPECT_EQ(faktory::password_hash("a", "bc", 1),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(FaktoryHello, TheRightPasswordIsAccepted) {
  wire_options.password = "secret";
  auto& s = connect();
  const std::string salt = greeted_salt(s);
  EXPECT_EQ(s.ask(hello_with(faktory::password_hash("secret", salt, 3000))), "+OK");
  EXPECT_EQ(s.ask(push_line("abcdefgh")), "+OK");
}

TEST_F(FaktoryHello, AWrongPasswordEndsTheConnection) {
  wire_options.password = "secret";
  auto& s = connect();
  const std::string salt = greeted_salt(s);
  EXPECT_EQ(s.ask(hello_with(faktory::password_hash("Secret", salt, 3000))),
            "-ERR Invalid password");
  EXPECT_TRUE(s.wire().is_ended());
  auto& none = connect();
  (void)greeted_salt(none);
  EXPECT_EQ(none.ask(R"(HELLO {"v":2})"), "-ERR Invalid password");
  EXPECT_TRUE(none.wire().is_ended());
  EXPECT_EQ(all().counts.bad_passwords.load(relaxed), 2U);
}

// Thousands of hashes: failed logins must not delay other clients.
TEST_F(FaktoryHello, APasswordIsNotHashedOnTheLoop) {
  wire_options.password = "secret";
  auto& s = connect();
  const std::string salt = greeted_salt(s);
  s.send(hello_with(faktory::password_hash("Secret", salt, 3000)));
  s.send(push_line("abcdefgh"));
  EXPECT_EQ(s.wire().received(), 0U);
  EXPECT_EQ(s.wire().open_replies(), 1U);
  pass(3s);  // HELLO arrived in time
  EXPECT_EQ(s.hear(), "-ERR Invalid password");
  EXPECT_TRUE(s.wire().is_ended());
}

TEST_F(FaktoryHello, AnInvalidHashIsRefusedWithoutHashing) {
  wire_options.password = "secret";
  for (const std::string& wrong :
       {std::string("x"), std::string(64, 'g'), std::string(64, 'A'), std::string(65, 'a')}) {
    auto& s = connect();
    (void)greeted_salt(s);
    s.send(hello_with(wrong));
    EXPECT_EQ(s.wire().take(), "-ERR Invalid password\r\n");
    EXPECT_TRUE(s.wire().is_ended());
  }
  EXPECT_EQ(all().counts.bad_passwords.load(relaxed), 4U);
  EXPECT_FALSE(all().hashing.is_built());
}

TEST_F(FaktoryHello, AClientThatLeavesBeforeItsPasswordIsHashedIsNotIntroduced) {
  wire_options.password = "secret";
  auto& s = connect();
  const std::string salt = greeted_salt(s);
  s.send(R"(HELLO {"v":2,"wid":"w","pwdhash":")" + faktory::password_hash("secret", salt, 3000) +
         "\"}");
  s.wire().close();
  s.settle();
  EXPECT_TRUE(all().crew.list().workers.empty());
}

TEST_F(FaktoryHello, WhenTooManyPasswordsWaitToBeHashedTheRestAreRefused) {
  wire_options.password = "secret";
  wire_options.hash_iterations = 1;
  const auto proceed = std::make_shared<sluice::event>();  // the pool outlives the test
  (void)all().hashing.get().submit([proceed] { proceed->wait(); });
  sluice::testing::eventually([&] { return all().hashing.get().stats().active == 1; });
  for (std::size_t i = 0; i < faktory::hashes_waiting_max; ++i) {
    auto& s = connect();
    (void)s.hear();
    s.send(hello_with(std::string(64, 'a')));
    EXPECT_EQ(s.wire().open_replies(), 1U);
  }
  auto& s = connect();
  (void)s.hear();
  s.send(hello_with(std::string(64, 'a')));
  EXPECT_EQ(s.wire().take(), "-ERR too many HELLO commands at once, try again later\r\n");
  EXPECT_TRUE(s.wire().is_ended());
  proceed->set();
}

TEST_F(FaktoryHello, EveryConnectionHasASaltOfItsOwn) {
  wire_options.password = "secret";
  const std::string one = greeted_salt(connect());
  const std::string other = greeted_salt(connect());
  EXPECT_NE(one, other);
  auto& s = connect();
  (void)greeted_salt(s);
  EXPECT_EQ(s.ask(hello_with(faktory::password_hash("secret", one, 3000))),
            "-ERR Invalid password");
}

TEST_F(FaktoryHello, ANewPasswordAppliesToNewConnections) {
  wire_options.password = "old";
  auto& s = connect();
  const std::string salt = greeted_salt(s);
  all().password.with([](std::string& p) { p = "new"; });
  EXPECT_EQ(s.ask(hello_with(faktory::password_hash("old", salt, 3000))), "+OK");
  auto& later = connect();
  const std::string fresh = greeted_salt(later);
  EXPECT_EQ(later.ask(hello_with(faktory::password_hash("new", fresh, 3000))), "+OK");
}

TEST_F(FaktoryHello, AnotherVersionIsRefused) {
  auto& s = connect();
  (void)s.hear();
  EXPECT_EQ(s.ask(R"(HELLO {"v":3})"),
            "-ERR this server supports version 2 of the protocol, not 3");
  EXPECT_EQ(s.ask(R"(HELLO {})"), "-ERR this server supports version 2 of the protocol, not 0");
  EXPECT_EQ(s.ask(R"(HELLO {"v":2})"), "+OK");
}

TEST_F(FaktoryHello, AnythingElseBeforeItEndsTheConnection) {
  for (const std::string verb : {"PUSH", "PUSHB", "FETCH", "ACK", "FAIL", "BEAT", "INFO", "FLUSH",
                                 "END", "QUEUE", "MUTATE", "TRACK", "BATCH", "JUMP", "hello"}) {
    auto& s = connect();
    (void)s.hear();
    s.send(verb + " {}\r\nHELLO {\"v\":2}\r\n" + push_line("12345678"));
    EXPECT_EQ(s.wire().take(), "-ERR " + verb + " is not allowed before HELLO\r\n");
    EXPECT_TRUE(s.wire().is_ended());
  }
  EXPECT_EQ(e().stats().pushed, 0U);
}

TEST_F(FaktoryHello, ItIsAcceptedOnce) {
  EXPECT_EQ(client().ask(R"(HELLO {"v":2})"), "-ERR HELLO was already received");
}

TEST_F(FaktoryHello, InvalidJsonIsReportedWithItsPosition) {
  auto& s = connect();
  (void)s.hear();
  EXPECT_EQ(s.ask("HELLO"), "-ERR line 1, column 1: expected an object, found the end of the text");
  EXPECT_EQ(
      s.ask(R"(HELLO {"v":"2"})"),
      "-ERR v: expected a whole number from 0 to 9223372036854775807, found a string (line 1, "
      "column 6)");
}

TEST_F(FaktoryHello, ItMustArriveInTime) {
  auto& s = connect();
  (void)s.hear();
  pass(1999ms);
  EXPECT_FALSE(s.wire().is_ended());
  pass(1ms);
  EXPECT_EQ(s.hear(), "-ERR HELLO did not arrive in time");
  EXPECT_TRUE(s.wire().is_ended());
}

TEST_F(FaktoryHello, AfterItThereIsNoTimeLimit) {
  auto& s = client();
  pass(24h);
  EXPECT_EQ(s.ask(push_line("abcdefgh")), "+OK");
}

TEST_F(FaktoryHello, EndIsAnsweredAndEndsTheConnection) {
  auto& s = client();
  EXPECT_EQ(s.ask("END now"), "-ERR END takes no arguments");
  EXPECT_EQ(s.ask("END"), "+OK");
  EXPECT_TRUE(s.wire().is_ended());
}

TEST_F(FaktoryHello, AnUnknownVerbIsNamed) {
  auto& s = client();
  EXPECT_EQ(s.ask("JUMP high"), "-ERR Unknown command JUMP");
  EXPECT_EQ(s.ask("push {}"), "-ERR Unknown command push");
  EXPECT_EQ(s.ask(""), "-ERR Unknown command ");
  EXPECT_EQ(s.ask(std::string(100, 'X')), "-ERR Unknown command " + std::string(40, 'X'));
}

TEST_F(FaktoryHello, TheSelfDescriptionOfAWorkerIsBounded) {
  const auto hello = [&](const std::string& more) {
    auto& s = connect();
    (void)s.hear();
    return s.ask(R"(HELLO {"v":2,)" + more + "}");
  };
  const auto labels = [](std::size_t count, std::size_t bytes) {
    std::string text = R"("labels":[)";
    for (std::size_t i = 0; i < count; ++i) {
      text += (i > 0 ? ",\"" : "\"") + std::string(bytes, 'l') + "\"";
    }
    return text + "]";
  };
  EXPECT_EQ(hello(R"("wid":")" + std::string(256, 'w') + "\""), "+OK");
  EXPECT_EQ(hello(R"("wid":")" + std::string(257, 'w') + "\""),
            "-ERR wid is longer than 256 bytes");
  EXPECT_EQ(hello(R"("hostname":")" + std::string(256, 'h') + "\""), "+OK");
  EXPECT_EQ(hello(R"("hostname":")" + std::string(257, 'h') + "\""),
            "-ERR hostname is longer than 256 bytes");
  const std::string why = "-ERR expected at most 64 labels with 4096 bytes in total";
  EXPECT_EQ(hello(labels(64, 64)), "+OK");
  EXPECT_EQ(hello(labels(65, 1)), why);
  EXPECT_EQ(hello(labels(1, 4097)), why);
  EXPECT_EQ(hello(labels(10'001, 0)).substr(0, 12), "-ERR labels[");
  // It may send HELLO again.
  auto& s = connect();
  (void)s.hear();
  EXPECT_EQ(s.ask(R"(HELLO {"v":2,)" + labels(65, 1) + "}"), why);
  EXPECT_EQ(s.ask(R"(HELLO {"v":2,)" + labels(1, 1) + "}"), "+OK");
}

TEST_F(FaktoryHello, AWorkerIsListedWithItsSelfDescription) {
  auto& w = worker("w-1");
  const auto shown = all().crew.list().workers;
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].wid, "w-1");
  EXPECT_EQ(shown[0].hostname, "h");
  EXPECT_EQ(shown[0].pid, 7);
  EXPECT_EQ(shown[0].labels, std::vector<std::string>{"a"});
  EXPECT_EQ(shown[0].since, time.now());
  (void)client();
  EXPECT_EQ(all().crew.list().workers.size(), 1U);
  w.wire().close();
  EXPECT_TRUE(all().crew.list().workers.empty());
}

}  // namespace
}  // namespace sluice::jobs::testing::faktory_hello_test
