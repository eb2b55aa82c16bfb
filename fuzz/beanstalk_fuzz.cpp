// The commands of a beanstalk client, in pieces of any size, executed by an engine.

#include <algorithm>
#include <memory>
#include <string>

#include "fuzz/fuzz_target.hpp"
#include "jobs/protocol/beanstalk/detail/beanstalk_session.hpp"
#include "jobs/protocol/testing/fake_client.hpp"
#include "jobs/store/memory/memory_store.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

namespace {

// A server whose tubes and jobs are reset before they accumulate over many inputs.
class world {
 public:
  world() {
    auto opened = engine::open(make_memory_store({}), {.time = &time_, .seed = 1});
    claim(opened.has_value(), "an engine");
    jobs_ = std::move(*opened);
    server_ = std::make_unique<beanstalk::server_state>(
        *jobs_, beanstalk_options{.job_bytes_max = 100, .time = &time_});
  }
  ~world() {
    jobs_.reset();
    loop_.run_all();
  }

  void talk(std::string_view input, std::size_t piece, bool drains) {
    server_->is_draining = drains;
    const auto client = testing::fake_client::connect(
        loop_,
        [&](protocol::client& target) {
          return std::make_unique<beanstalk::beanstalk_session>(target, *server_);
        },
        8);
    while (!input.empty()) {
      const std::size_t count = std::min(piece, input.size());
      client->send(input.substr(0, count));
      input.remove_prefix(count);
      loop_.run_all();
    }
    client->half_close();
    while (client->calls() > 0) (void)loop_.run_next();
    claim(client->is_ended(), "every command to be answered, and then the end");
    const std::string replies = client->take();
    claim(replies.empty() || replies.ends_with("\r\n"), "whole replies");
    client->close();
    claim(server_->reserved == 0 && server_->waiting == 0 && server_->connections == 0,
          "zero counts after the connection has closed");
  }

 private:
  manual_time time_;
  sluice::manual_executor loop_;
  std::unique_ptr<engine> jobs_;
  std::unique_ptr<beanstalk::server_state> server_;
};

void parse(std::string_view line) {
  const beanstalk::command c = beanstalk::parse_command(line);
  if (c.problem != beanstalk::command::fault::none) return;
  claim(line.starts_with(to_string(c.action)), "the verb of the line");
  if (c.tube.empty()) return;
  claim(validate_queue_name(c.tube).has_value(), "a queue for a tube");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The last server is not destroyed: an engine cannot be stopped during the exit of the program.
  static world* server = nullptr;
  static unsigned inputs = 0;
  if (inputs++ % 200 == 0) {
    delete server;
    server = new world;
  }

  std::string_view input = sluice::fuzz::text_of(data, size);
  const unsigned choice = sluice::fuzz::take_choice(input);
  parse(input.substr(0, input.find('\r')));
  server->talk(input, 1 + choice / 2, choice % 2 == 1 && choice > 200);
  return 0;
}
