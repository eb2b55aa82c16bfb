// The target of a request: its path to a route, and the parameters of its query.

#include "fuzz/fuzz_target.hpp"
#include "jobs/http/detail/router.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = sluice::fuzz::text_of(data, size);
  const auto method = static_cast<http::method>(sluice::fuzz::take_choice(input) % 7);
  const http::request_head head{.method = method, .target = std::string(input)};

  const http::routed found = http::find_route(method, head.path());
  claim((found.target != nullptr) || (found.status >= 200 && found.status < 500),
        "a route, or an error status");

  std::string_view query = head.query();
  std::string name;
  std::string value;
  while (!query.empty()) {
    const std::size_t before = query.size();
    const auto is_found = http::next_parameter(query, name, value);
    claim(query.size() < before, "the query to be consumed");
    if (!is_found) break;
  }
  const auto decoded = http::percent_decode(http::percent_encode(input), false);
  claim(decoded && *decoded == input, "escaped text to be decoded to the original");
  return 0;
}
