// Web pages that make a browser send commands to this port.

#include "jobs/protocol/faktory/testing/faktory_words.hpp"
#include "jobs/protocol/testing/browser_requests.hpp"

namespace sluice::jobs::testing::faktory_browser_test {
namespace {

class FaktoryBrowser : public faktory_words {
 protected:
  static std::string commands() { return "HELLO {\"v\":2}\r\n" + push_line("12345678") + "\r\n"; }
  void send(speaker& s, std::string_view bytes, std::size_t piece) {
    for (std::string_view left = bytes; !left.empty();) {
      const std::size_t count = std::min(piece, left.size());
      s.wire().send(left.substr(0, count));
      left.remove_prefix(count);
    }
    s.settle();
  }
};

TEST_F(FaktoryBrowser, AnHttpRequestEndsTheConnectionAndNoneOfItsCommandsIsExecuted) {
  for (const auto& request : browser_requests(commands())) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, request.bytes.size()}) {
      SCOPED_TRACE(request.label);
      auto& browser = connect();
      (void)browser.hear();
      send(browser, request.bytes, piece);
      EXPECT_TRUE(browser.wire().is_ended());
      const std::string reply = browser.wire().take();
      EXPECT_TRUE(reply.starts_with("-ERR ")) << reply;
      EXPECT_EQ(reply.find("\r\n"), reply.size() - 2) << reply;
    }
  }
  EXPECT_EQ(e().stats().pushed, 0U);
  EXPECT_EQ(all().connections.load(relaxed), 0U);
}

TEST_F(FaktoryBrowser, AnHttpRequestAfterHelloEndsTheConnectionToo) {
  for (const auto& request : browser_requests(push_line("12345678") + "\r\n")) {
    SCOPED_TRACE(request.label);
    auto& c = client();
    send(c, request.bytes, request.bytes.size());
    EXPECT_TRUE(c.wire().is_ended());
    EXPECT_TRUE(
        c.wire().take().ends_with("-ERR this port speaks Faktory's protocol, not HTTP\r\n"));
  }
  EXPECT_EQ(e().stats().pushed, 0U);
}

TEST_F(FaktoryBrowser, CommandsBeforeTheRequestAreFinishedFirst) {
  auto& c = client();
  c.send(push_line("12345678") + "\r\nPOST / HTTP/1.1\r\n" + push_line("87654321"));
  EXPECT_EQ(c.hear(), "+OK");
  EXPECT_EQ(c.hear(), "-ERR this port speaks Faktory's protocol, not HTTP");
  EXPECT_TRUE(c.wire().is_ended());
  EXPECT_EQ(e().stats().pushed, 1U);
}

TEST_F(FaktoryBrowser, JobsMayHoldHttp) {
  auto& c = client();
  EXPECT_EQ(c.ask(R"(PUSH {"jid":"12345678","jobtype":"a","args":["POST / HTTP/1.1"]})"), "+OK");
  EXPECT_EQ(member(c.ask("FETCH"), "args"), R"(["POST / HTTP/1.1"])");
}

}  // namespace
}  // namespace sluice::jobs::testing::faktory_browser_test
