#include <utility>

#include "tests/crash/wire_clients.hpp"

namespace sluice::crash {

bool wire_client::send(std::string_view bytes) {
  gone_ = gone_ || !wire_.send(bytes);
  return !gone_;
}

std::string wire_client::receive_line() {
  if (gone_) return {};
  std::string line = wire_.line();
  gone_ = line == "(the end)";
  return gone_ ? std::string() : line;
}

std::string wire_client::receive_bytes(std::size_t count) {
  if (gone_) return {};
  std::string some = wire_.bytes(count);
  gone_ = some.size() < count;
  return gone_ ? std::string() : some;
}

}  // namespace sluice::crash
