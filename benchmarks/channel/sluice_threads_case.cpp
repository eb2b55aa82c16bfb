// `sluice_threads`: select over four channels, with a thread for each producer and the consumer.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "benchmarks/channel/select_over_four.hpp"
#include "sluice/channel/channel.hpp"
#include "sluice/channel/select.hpp"

namespace sluice::bench {
namespace {

class sluice_channels {
 public:
  explicit sluice_channels(std::size_t capacity)
      : channels_{channel<std::uint64_t>(capacity), channel<std::uint64_t>(capacity),
                  channel<std::uint64_t>(capacity), channel<std::uint64_t>(capacity)} {}

  void send(std::size_t which, std::uint64_t item) {
    if (!channels_[which].send(item)) std::abort();  // closed, which never happens
  }

  std::uint64_t receive_any() {
    std::uint64_t item = 0;
    const auto take = [&item](const outcome<std::uint64_t>& received) { item = *received; };
    if (!select(on_receive(channels_[0], take), on_receive(channels_[1], take),
                on_receive(channels_[2], take), on_receive(channels_[3], take))) {
      std::abort();
    }
    return item;
  }

 private:
  std::array<channel<std::uint64_t>, 4> channels_;
};

const registration added{[](suite& s) {
  for (const std::size_t capacity : {1u, 1024u}) {
    s.add("select-" + std::to_string(capacity), "sluice_threads",
          operations_per_second([capacity](seconds duration) {
            return select_over_four<sluice_channels>(capacity, duration);
          }));
  }
}};

}  // namespace
}  // namespace sluice::bench
