// `sluice`: `sluice serve --beanstalk`; relaxed, with --sync=interval.
#include "benchmarks/beanstalk/beanstalk_dialect.hpp"
#include "benchmarks/beanstalk/contender.hpp"
#include "benchmarks/server/server_process.hpp"

namespace sluice::bench {
namespace {

class sluice_server final : public queue_server {
 public:
  sluice_server(const std::filesystem::path& folder, durability kept)
      : runs_(folder, flags(kept)) {}
  std::uint16_t port() const override { return runs_.port("beanstalk"); }
  double cpu_us() const override { return runs_.cpu_us(); }

 private:
  static std::vector<std::string> flags(durability kept) {
    std::vector<std::string> words = {"--beanstalk", "127.0.0.1:0"};
    if (kept == durability::relaxed) words.emplace_back("--sync=interval");
    return words;
  }

  server_process runs_;
};

const registration added{[](suite& s) {
  add_contender(s, {.who = "sluice",
                    .protocol = std::make_shared<beanstalk_dialect>(),
                    .start = [](const std::filesystem::path& folder, durability kept) {
                      return std::make_unique<sluice_server>(folder, kept);
                    }});
}};

}  // namespace
}  // namespace sluice::bench
