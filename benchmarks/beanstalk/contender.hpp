#pragma once

// A server that runs all workloads of this benchmark: its start function and its protocol.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/daemon_process.hpp"
#include "benchmarks/harness.hpp"
#include "benchmarks/wire/dialect.hpp"

namespace sluice::bench {

enum class durability {
  durable,  // synced before the reply
  relaxed   // synced later, or never
};

class queue_server {
 public:
  virtual ~queue_server() = default;
  virtual std::uint16_t port() const = 0;
  virtual double cpu_us() const = 0;  // of all its threads, so far
};

// A program that gets a port of this machine as an argument, and is up when it listens there.
class peer_server final : public queue_server {
 public:
  peer_server(const std::vector<std::string>& command, const std::filesystem::path& folder,
              std::uint16_t port);
  std::uint16_t port() const override { return port_; }
  double cpu_us() const override { return runs_.cpu_us(); }

 private:
  std::uint16_t port_;
  daemon_process runs_;
};

using start_server = std::function<std::unique_ptr<queue_server>(
    const std::filesystem::path& folder, durability kept)>;

struct queue_contender {
  std::string who;
  std::shared_ptr<const dialect> protocol;
  start_server start;
};
void add_contender(suite& s, const queue_contender& c);

}  // namespace sluice::bench
