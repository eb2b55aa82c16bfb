// The resident memory of `sluice serve` while a hundred hostile connections drive each phase of a
// protocol to its bound.
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/auth/token_file.hpp"
#include "jobs/cli/testing/program.hpp"
#include "jobs/http/testing/certificates.hpp"
#include "jobs/http/testing/tls_wire.hpp"
#include "jobs/http/testing/wire.hpp"
#include "jobs/net/client_memory.hpp"

namespace sluice::jobs::cli::serve_memory_test {
namespace {

using jobs::testing::make_certificate;
using jobs::testing::tls_wire;
using jobs::testing::wire;
using testing::server_program;
using testing::temporary_folder;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#elif defined(__has_feature)
constexpr bool is_sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool is_sanitized = false;
#endif

constexpr std::size_t crowd_size = 100;
constexpr std::size_t kb = std::size_t{1} << 10;
constexpr std::size_t mb = std::size_t{1} << 20;
constexpr std::size_t budget = 64 * mb;
// Beside the budget: answers in progress when it is exceeded, free memory of the allocator, the
// store's cache and the engine's window.
constexpr std::size_t slack = 64 * mb;
// A connection sends no more than this.
constexpr std::size_t sent_max = 3 * mb;

enum class port_of : std::uint8_t { http, beanstalk, faktory, tls };

// The input of each connection: `first`, then `again` repeatedly.
struct phase {
  std::string_view name;
  port_of port;
  std::string first;
  std::string again;
  std::size_t bytes_max;   // that resident memory may grow by
  bool has_jobs = false;   // the server has large ones; the first is 1, if there is no batch
  bool has_token = false;  // the requests have a token for the queue of these jobs
  bool has_batch = false;  // these jobs are in the batch 1
};

// One connection that sends and reads nothing.
class attacker : public wire {
 public:
  attacker(std::uint16_t port, const phase& p) : wire(port), phase_(&p) { receive_buffer(4096); }

  // Fills the socket's buffer. Returns false if nothing is left to send or the server has closed.
  bool send_on() {
    if (is_over_) return false;
    while (sent_ < sent_max && (sent_ < phase_->first.size() || !phase_->again.empty())) {
      const bool is_first = sent_ < phase_->first.size();
      const std::string_view some =
          is_first ? std::string_view(phase_->first).substr(sent_)
                   : std::string_view(phase_->again)
                         .substr((sent_ - phase_->first.size()) % phase_->again.size());
      errno = 0;
      const std::size_t n = send_without_waiting(some);
      if (n == 0) {
        is_over_ = errno != EAGAIN;
        return !is_over_;
      }
      sent_ += n;
    }
    return false;
  }
  pollfd waits() const { return {socket(), POLLOUT, 0}; }

 private:
  const phase* phase_;
  std::size_t sent_ = 0;
  bool is_over_ = false;
};

// Sends until the server reads from no connection.
// Ends after some seconds in any case: the server closes connections to read from others.
void flood(std::vector<attacker>& crowd) {
  constexpr int patience_ms = 300;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  while (std::chrono::steady_clock::now() < end) {
    std::vector<pollfd> waiting;
    for (attacker& a : crowd) {
      if (a.send_on()) waiting.push_back(a.waits());
    }
    if (waiting.empty() || ::poll(waiting.data(), waiting.size(), patience_ms) == 0) return;
  }
}

// Of /proc/PID/status, in bytes.
std::size_t memory_of(pid_t pid, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  while (in >> word) {
    std::size_t kilobytes = 0;
    if (word == field + ":" && in >> kilobytes) return kilobytes * kb;
  }
  ADD_FAILURE() << "no " << field << " of " << pid;
  return 0;
}

// From now on VmHWM begins at the memory of this moment, which is returned.
std::size_t begin_to_measure(pid_t pid) {
  std::ofstream("/proc/" + std::to_string(pid) + "/clear_refs") << "5";
  return memory_of(pid, "VmRSS");
}

std::uint16_t http_port(const server_program& server) {
  return static_cast<std::uint16_t>(std::stoul(server.url().substr(server.url().rfind(':') + 1)));
}

const std::string host = "Host: localhost\r\n";
const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n";
const std::string push = "POST /v1/jobs HTTP/1.1\r\n" + host;
const std::string json = "Content-Type: application/json\r\n";
const std::string hello = "HELLO {\"v\":2}\r\n";

// A connection holds a head, the 64 KiB of the last read, and as much again while a string grows.
constexpr std::size_t small = crowd_size * 256 * kb;
constexpr std::size_t large = budget + slack;
// A lease has its jobs before its answer is made and counted: here 12 jobs of 4 MiB.
constexpr std::size_t leases = budget + slack + 12 * 4 * mb;
// Fixed shares of connections, and the record of a ClientHello until its handshake ends: measured
// 60 KiB for each connection with 100, 200 and 400 of them.
constexpr std::size_t hello_record = 16 * kb;
// Of OpenSSL at the first handshakes, independent of their number: measured 1.4 MiB.
constexpr std::size_t tls_tables = 2 * mb;
constexpr std::size_t sessions =
    tls_tables + crowd_size * (net::client_memory::tls_session_bytes +
                               net::client_memory::connection_bytes + hello_record);
// Replaced in requests.
constexpr std::string_view token_here = "Authorization: TOKEN\r\n";

std::string many(const std::string& command) {
  std::string all;
  while (all.size() < 64 * kb) all += command;
  return all;
}

// A request of a token for some queues.
std::string scoped_request(std::string_view target, const std::string& body) {
  return "POST " + std::string(target) + " HTTP/1.1\r\n" + host + json + std::string(token_here) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
const std::string scoped_ack = R"({"lease":1,"result":")" + std::string(50 * kb, 'x') + "\"}";
const std::string scoped_push =
    R"({"kind":"k","queue":"default","after":[1],"args":")" + std::string(50 * kb, 'x') + "\"}";

// A ClientHello of this length without its last byte.
std::string hello_of(std::size_t claimed) {
  const auto number = [](std::size_t value, unsigned bytes) {
    std::string text;
    while (bytes-- > 0) text += static_cast<char>(value >> (8 * bytes));
    return text;
  };
  constexpr std::size_t record_max = 16'384;
  std::string message = "\x01" + number(claimed, 3) + std::string(claimed - 1, 'x');
  std::string records;
  for (std::size_t at = 0; at < message.size(); at += record_max) {
    const std::string part = message.substr(at, record_max);
    // The last record announces the byte that does not come.
    const std::size_t length = part.size() + (at + record_max < message.size() ? 0 : 1);
    records += "\x16\x03\x01" + number(length, 2) + part;
  }
  return records;
}

std::vector<phase> all_phases() {
  const std::string much(64 * kb, 'a');
  const std::string zeros(64 * kb, '0');
  const std::string get = "GET /healthz HTTP/1.1\r\n" + host;
  std::string chunk = "10000\r\n" + much + "\r\n";
  return {
      {"head", port_of::http, get + "X: ", much, small},
      {"request line", port_of::http, "GET /", much, small},
      {"chunk size", port_of::http, get + chunked, zeros, small},
      {"chunk extension", port_of::http, get + chunked + "1;x=", much, small},
      {"trailer", port_of::http, get + chunked + "1\r\na\r\n0\r\nX: ", much, small},
      {"body", port_of::http, push + json + "Content-Length: 16000000\r\n\r\n", much, large},
      {"body in chunks", port_of::http, push + json + chunked, chunk, large},
      {"line of NDJSON", port_of::http, push + "Content-Type: application/x-ndjson\r\n" + chunked,
       chunk, large},
      {"pipelined requests", port_of::http, "", many("GET /v1/jobs/1 HTTP/1.1\r\n" + host + "\r\n"),
       large, true},
      {"pipelined waits", port_of::http, "",
       many("GET /v1/jobs/1?wait=1ms HTTP/1.1\r\n" + host + "\r\n"), large, true},
      {"pipelined lists", port_of::http, "", many("GET /v1/jobs HTTP/1.1\r\n" + host + "\r\n"),
       large, true},
      {"pipelined leases", port_of::http, "",
       many("POST /v1/leases HTTP/1.1\r\n" + host + json +
            "Content-Length: 12\r\n\r\n{\"max\":1000}"),
       leases, true},
      {"pipelined pushes", port_of::http, "",
       many(push + json + "Content-Length: 12\r\n\r\n{\"kind\":\"k\"}"), large},
      {"results of NDJSON", port_of::http,
       push + "Content-Type: application/x-ndjson\r\n" + chunked,
       "10000\r\n" + many("x\n") + "\r\n", large},
      {"look-ups of acks", port_of::http, "", many(scoped_request("/v1/jobs/1/ack", scoped_ack)),
       large, true, true},
      {"look-ups of pushes", port_of::http, "", many(scoped_request("/v1/jobs", scoped_push)),
       large, true, true},
      {"graphs", port_of::http, "", many("GET /v1/batches/1/graph HTTP/1.1\r\n" + host + "\r\n"),
       large, true, false, true},
      {"TLS hello", port_of::tls, hello_of(16'380), "", sessions},
      {"long TLS hello", port_of::tls, hello_of(131'000), "", sessions},
      {"beanstalk line", port_of::beanstalk, "", much, small},
      {"beanstalk body", port_of::beanstalk, "put 0 0 10 4000000\r\n", much, large},
      {"beanstalk replies", port_of::beanstalk, "", many("peek 1\r\n"), large, true},
      {"beanstalk reserves", port_of::beanstalk, "", many("reserve-with-timeout 0\r\n"), large,
       true},
      {"Faktory HELLO", port_of::faktory, "HELLO {", much, small},
      {"Faktory line", port_of::faktory, hello + "PUSH {", much, large},
      {"Faktory replies", port_of::faktory, hello, many("INFO\r\n"), large},
      {"Faktory fetches", port_of::faktory, hello, many("FETCH default\r\n"), large, true},
  };
}

class ServeMemory : public ::testing::Test {
 protected:
  static void push_large_jobs(std::uint16_t port, const std::string& headers,
                              std::string_view more = {}) {
    const std::string body =
        R"({"kind":"k","args":")" + std::string(4 * mb - 2, 'x') + '"' + std::string(more) + "}";
    wire w(port);
    for (int i = 0; i < 12; ++i) {
      w.request("POST", "/v1/jobs", body, headers);
      ASSERT_EQ(w.receive().status, 201);
    }
  }
  // An open batch with the id 1.
  static void push_batch(std::uint16_t port) {
    wire w(port);
    w.request("POST", "/v1/batches", R"({"open":true})");
    ASSERT_EQ(w.receive().status, 201);
  }
  // Returns the header of a token for the queue "default".
  static std::string make_token(const std::string& data) {
    std::filesystem::create_directory(data);
    const auto made = change_tokens(token_file_in(data), [](token_set& all) {
      return all.create(
          {.name = "t", .roles = {role::push, role::work, role::read}, .queues = {"default"}},
          real_time().now());
    });
    return "Authorization: Bearer " + made.value().text + "\r\n";
  }
  static void replace_all(std::string& text, std::string_view from,
                          const std::string& replacement) {
    for (auto at = text.find(from); at != std::string::npos;
         at = text.find(from, at + replacement.size())) {
      text.replace(at, from.size(), replacement);
    }
  }
  static void expect_alive_securely(std::uint16_t port) {
    tls_wire w(port);
    w.request("GET", "/healthz");
    EXPECT_EQ(w.receive().status, 200);
  }
  static void expect_alive(std::uint16_t port) {
    wire w(port);
    w.request("GET", "/healthz");
    EXPECT_EQ(w.receive().status, 200);
  }
  static void expect_grown(std::string_view name, std::size_t before, std::size_t most,
                           std::size_t bytes_max) {
    const std::size_t grown = most > before ? most - before : 0;
    std::printf("phase %-20.*s peak RSS %6.1f MiB: %6.1f before, grown by %6.1f, bound %6.1f\n",
                static_cast<int>(name.size()), name.data(), static_cast<double>(most) / mb,
                static_cast<double>(before) / mb, static_cast<double>(grown) / mb,
                static_cast<double>(bytes_max) / mb);
    // A sanitizer keeps freed memory.
    if constexpr (!is_sanitized) {
      EXPECT_LE(grown, bytes_max);
    }
  }
};

class ServeMemoryPhase : public ServeMemory, public ::testing::WithParamInterface<phase> {};

TEST_P(ServeMemoryPhase, IsBoundedWhileAHundredConnectionsAreHostile) {
  phase p = GetParam();
  const temporary_folder folder;
  std::vector<std::string> words = {"--client-memory",     std::to_string(budget / mb) + "MB",
                                    "--beanstalk",         ":0",
                                    "--faktory",           ":0",
                                    "--beanstalk-job-max", "4MB"};
  const bool has_tls = p.port == port_of::tls;
  if (has_tls) {
    const auto files = make_certificate(folder, "server");
    words.insert(words.end(), {"--tls-cert", files.certificate, "--tls-key", files.key});
  }
  const std::string header = p.has_token ? make_token(folder.file("data")) : "";
  replace_all(p.again, token_here, header);
  server_program server(folder, words);
  const std::uint16_t http = http_port(server);
  if (p.has_batch) push_batch(http);
  if (p.has_jobs) push_large_jobs(http, header, p.has_batch ? ",\"batch\":1" : "");
  const pid_t pid = server.itself().pid();
  const std::size_t before = begin_to_measure(pid);
  const std::uint16_t port = p.port == port_of::beanstalk ? server.port_for("beanstalk")
                             : p.port == port_of::faktory ? server.port_for("faktory")
                                                          : http;
  std::vector<attacker> crowd;
  crowd.reserve(crowd_size);
  for (std::size_t i = 0; i < crowd_size; ++i) crowd.emplace_back(port, p);
  flood(crowd);
  has_tls ? expect_alive_securely(http) : expect_alive(http);
  expect_grown(p.name, before, memory_of(pid, "VmHWM"), p.bytes_max);
}

INSTANTIATE_TEST_SUITE_P(Phases, ServeMemoryPhase, ::testing::ValuesIn(all_phases()),
                         [](const auto& each) {
                           std::string name(each.param.name);
                           std::erase_if(name, [](char c) { return c == ' ' || c == '-'; });
                           return name;
                         });

TEST_F(ServeMemory, IsBoundedWhileEventStreamsAreNotRead) {
  const temporary_folder folder;
  server_program server(folder, {"--client-memory", std::to_string(budget / mb) + "MB"});
  const std::uint16_t port = http_port(server);
  const phase stream{"event streams", port_of::http, "GET /v1/events HTTP/1.1\r\n" + host + "\r\n",
                     "", large};
  std::vector<attacker> crowd;
  for (std::size_t i = 0; i < crowd_size; ++i) {
    crowd.emplace_back(port, stream);
    crowd.back().send(stream.first);
    EXPECT_EQ(crowd.back().receive_head().status, 200);
  }
  const pid_t pid = server.itself().pid();
  std::string jobs = R"({"jobs":[)";
  for (int i = 0; i < 5000; ++i) {
    jobs += (i == 0 ? R"({"kind":"k","queue":")" : R"(,{"kind":"k","queue":")") +
            std::string(200, 'q') + "\"}";
  }
  jobs += "]}";
  wire producer(port);
  producer.request("POST", "/v1/jobs", jobs);  // so that the engine's own memory is not measured
  EXPECT_EQ(producer.receive().status, 200);
  const std::size_t before = begin_to_measure(pid);
  for (int i = 0; i < 4; ++i) {
    producer.request("POST", "/v1/jobs", jobs);
    EXPECT_EQ(producer.receive().status, 200);
  }
  expect_alive(port);
  expect_grown(stream.name, before, memory_of(pid, "VmHWM"), stream.bytes_max);
}

TEST_F(ServeMemory, IsBoundedByWhatATlsSessionCountsFor) {
  const temporary_folder folder;
  const auto files = make_certificate(folder, "server");
  server_program server(folder, {"--client-memory", std::to_string(budget / mb) + "MB",
                                 "--tls-cert", files.certificate, "--tls-key", files.key});
  const std::uint16_t port = http_port(server);
  const auto open = [&](std::vector<std::unique_ptr<tls_wire>>& all) {
    for (std::size_t i = 0; i < crowd_size; ++i) {
      all.push_back(std::make_unique<tls_wire>(port));
      ASSERT_TRUE(all.back()->is_secure());
      all.back()->request("GET", "/healthz");
      EXPECT_EQ(all.back()->receive().status, 200);
    }
  };
  std::vector<std::unique_ptr<tls_wire>> all;
  open(all);
  const pid_t pid = server.itself().pid();
  const std::size_t before = begin_to_measure(pid);
  open(all);
  expect_grown(
      "TLS sessions", before, memory_of(pid, "VmHWM"),
      crowd_size * (net::client_memory::tls_session_bytes + net::client_memory::connection_bytes));
}

}  // namespace
}  // namespace sluice::jobs::cli::serve_memory_test
