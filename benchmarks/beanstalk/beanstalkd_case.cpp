// `beanstalkd`: Debian's. Durable: a binlog, synced at every write (-f 0). Relaxed: no binlog.
#include "benchmarks/beanstalk/beanstalk_dialect.hpp"
#include "benchmarks/beanstalk/contender.hpp"
#include "benchmarks/wire/crowd.hpp"

namespace sluice::bench {
namespace {

std::unique_ptr<queue_server> start_beanstalkd(const std::filesystem::path& folder,
                                               durability kept) {
  const std::uint16_t port = free_port();
  std::vector<std::string> command = {"beanstalkd", "-l", "127.0.0.1", "-p", std::to_string(port)};
  if (kept == durability::durable) {
    const auto binlog = folder / "binlog";
    std::filesystem::create_directory(binlog);
    command.insert(command.end(), {"-b", binlog.string(), "-f", "0"});
  }
  return std::make_unique<peer_server>(command, folder, port);
}

const registration added{[](suite& s) {
  add_contender(s, {.who = "beanstalkd",
                    .protocol = std::make_shared<beanstalk_dialect>(),
                    .start = start_beanstalkd});
}};

}  // namespace
}  // namespace sluice::bench
