#include "benchmarks/server/server_process.hpp"

#include <fstream>

#include "benchmarks/harness.hpp"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

fs::path program() {
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  return build / "jobs" / "cli" / "sluice";
}

std::vector<std::string> command(const fs::path& folder, const fs::path& port_file,
                                 const std::vector<std::string>& more) {
  fs::remove(port_file);
  // No grace period: workers that hold a lease at the end are already disconnected.
  std::vector<std::string> words = {program().string(), "serve", "--data",
                                    (folder / "data").string()};
  for (const char* word : {"--port", "0", "--log-level", "warn", "--shutdown-grace", "0s"}) {
    words.emplace_back(word);
  }
  words.insert(words.end(), {"--port-file", port_file.string()});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Returns the ports in the file, by protocol; none while the file is incomplete.
std::map<std::string, std::uint16_t> ports_in(const fs::path& file) {
  std::ifstream in(file);
  std::map<std::string, std::uint16_t> ports;
  for (std::string line; std::getline(in, line);) {
    if (in.eof()) return {};
    const std::size_t space = line.find(' ');
    const bool is_http = space == std::string::npos;
    const std::string number = is_http ? line : line.substr(space + 1);
    ports[is_http ? "http" : line.substr(0, space)] = static_cast<std::uint16_t>(std::stoi(number));
  }
  return ports;
}

}  // namespace

server_process::server_process(const fs::path& folder, const std::vector<std::string>& more)
    : started_(std::chrono::steady_clock::now()),
      runs_(command(folder, folder / "port", more), folder / "server.log",
            daemon_process::end::must_be_clean, [&] {
              ports_ = ports_in(folder / "port");
              return !ports_.empty();
            }) {}

std::uint16_t server_process::port(const std::string& protocol) const {
  const auto found = ports_.find(protocol);
  if (found == ports_.end()) fail("the server does not listen for " + protocol);
  return found->second;
}

}  // namespace sluice::bench
