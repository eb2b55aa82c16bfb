// Web pages that make a browser send commands to this port.
#include "jobs/protocol/beanstalk/testing/beanstalk_words.hpp"
#include "jobs/protocol/testing/browser_requests.hpp"

namespace sluice::jobs::beanstalk_browser_test {
namespace {

using beanstalk_browser_test = testing::beanstalk_words;

TEST_F(beanstalk_browser_test, AnHttpRequestEndsTheConnectionAndNoneOfItsCommandsIsExecuted) {
  for (const auto& request : testing::browser_requests("put 0 0 10 1\r\na\r\n")) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, request.bytes.size()}) {
      SCOPED_TRACE(request.label);
      auto browser = connect();
      for (std::string_view left = request.bytes; !left.empty();) {
        const std::size_t count = std::min(piece, left.size());
        browser.say(left.substr(0, count));
        left.remove_prefix(count);
      }
      quiet();
      EXPECT_TRUE(browser.wire().is_ended());
      EXPECT_TRUE(browser.wire().take().ends_with("UNKNOWN_COMMAND\r\n"));
    }
  }
  EXPECT_EQ(e().stats().pushed, 0U);
  EXPECT_EQ(server().connections.load(), 0U);
}

TEST_F(beanstalk_browser_test, CommandsBeforeTheRequestAreFinishedFirst) {
  auto browser = connect();
  browser.say("put 0 0 10 1\r\na\r\nreserve-job 1\r\nPOST / HTTP/1.1\r\nput 0 0 10 1\r\nb\r\n");
  browser.expect("INSERTED 1\r\nRESERVED 1 1\r\na\r\nUNKNOWN_COMMAND\r\n");
  browser.expect_end();
  quiet();
  EXPECT_EQ(e().stats().pushed, 1U);
  EXPECT_EQ(counts().ready, 1U);
}

TEST_F(beanstalk_browser_test, BodiesAndNamesOfTubesMayHoldHttp) {
  ask("use HTTP/1.1\r\nwatch a/HTTP/1.1\r\n", "USING HTTP/1.1\r\nWATCHING 2\r\n");
  const job_id id = put("0 0 10", "POST / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(get(id).spec.args.data, "POST / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(get(id).spec.queue, "HTTP/1.1");
  ask("list-tube-used\r\n", "USING HTTP/1.1\r\n");
}

}  // namespace
}  // namespace sluice::jobs::beanstalk_browser_test
