// The URL of a server, from the options of a client.

#include <algorithm>

#include "fuzz/fuzz_target.hpp"
#include "jobs/client/detail/http_url.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = sluice::fuzz::text_of(data, size);
  const auto url = detail::parse_http_url(input);
  if (url) {
    claim(!url->host.empty(), "a host");
    claim(!url->port.empty() &&
              std::ranges::all_of(url->port, [](char c) { return c >= '0' && c <= '9'; }),
          "a port of digits");
    claim(!url->prefix.ends_with('/'), "a prefix without a slash at its end");
    // These become part of the head of a request.
    claim(sluice::fuzz::is_printable(url->authority) && sluice::fuzz::is_printable(url->prefix),
          "no byte that could end a line");
  }
  const std::string encoded = detail::percent_encoded(input);
  claim(sluice::fuzz::is_printable(encoded) && encoded.find_first_of("/?#& ") == std::string::npos,
        "no byte with a meaning in a URL");
  return 0;
}
