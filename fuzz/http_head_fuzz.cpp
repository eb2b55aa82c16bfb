// A request from the network, parsed whole and again in pieces: both must give the same result.

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <string>

#include "fuzz/fuzz_target.hpp"
#include "jobs/http/detail/request_parser.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

namespace {

constexpr std::uint32_t head_bytes_max = 16'384;
constexpr std::uint64_t body_bytes_max = 4'096;

struct outcome {
  bool head_done = false;
  bool done = false;
  std::string target{};
  http::media media = http::media::none;
  std::string_view ambiguity{};

  friend bool operator==(const outcome&, const outcome&) = default;
};

// Like a connection: passes unconsumed bytes again, together with the next ones.
outcome read(std::string_view bytes, std::size_t piece) {
  http::request_parser parser(head_bytes_max);
  std::string buffer;
  bool failed = false;
  while (!failed && !parser.is_done() && (!bytes.empty() || !buffer.empty())) {
    const std::size_t count = std::min(piece, bytes.size());
    buffer += bytes.substr(0, count);
    bytes.remove_prefix(count);
    bool moves = true;
    while (moves && !failed && !parser.is_done() && !buffer.empty()) {
      const bool had_head = parser.is_header_done();
      boost::beast::error_code ec;
      const std::size_t used = parser.put(boost::asio::buffer(buffer), ec);
      claim(used <= buffer.size(), "at most the given bytes to be consumed");
      if (!had_head && parser.is_header_done()) {
        parser.use_body(http::request_parser::body_use::keep, body_bytes_max);
      }
      failed = ec && ec != boost::beast::http::error::need_more;
      moves = used > 0;
      buffer.erase(0, used);
    }
    if (bytes.empty()) break;
  }
  outcome o{.head_done = parser.is_header_done(), .done = parser.is_done()};
  if (o.head_done) {
    o.target = parser.head().target;
    o.media = parser.head().media;
    o.ambiguity = parser.head().ambiguity;
  }
  claim(parser.kept_bytes() <= body_bytes_max, "a bound on the kept bytes");
  return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = sluice::fuzz::text_of(data, size);
  const unsigned choice = sluice::fuzz::take_choice(input);
  const outcome whole = read(input, input.size() + 1);
  const outcome pieces = read(input, 1 + choice % 32);
  claim(whole == pieces, "the same result in pieces");
  claim(!whole.head_done || !whole.target.empty(), "a target");
  (void)http::prefer_wait(input);
  (void)http::media_of(input);
  (void)http::is_foreign_host(input);
  (void)http::is_own_origin(input, "http", "localhost:7433");
  const std::string origin = "http://" + std::string(input);
  claim(input.empty() || http::is_own_origin(origin, "http", input),
        "an origin that equals itself");
  return 0;
}
