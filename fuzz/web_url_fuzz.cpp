// A URL for deliveries, and the rules that allow it.

#include "fuzz/fuzz_target.hpp"
#include "jobs/deliver/url_rules.hpp"
#include "jobs/deliver/web_url.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const url_rules rules =
      url_rules::parse({"https://good.example.com/in", "http://*.example.com:8080"}).value();
  const std::string_view input = sluice::fuzz::text_of(data, size);
  (void)url_rules::parse({std::string(input)});
  const auto url = parse_web_url(input);
  const auto allowed = rules.allowed(input);
  if (!url) {
    claim(!allowed, "an invalid URL not to be allowed");
    claim(sluice::fuzz::is_printable(url.error().message), "a printable message");
    return 0;
  }
  if (size > web_url::bytes_max - 32) return 0;  // default parts may make it too long
  const auto again = parse_web_url(url->origin() + url->target());
  claim(again && *again == *url, "the same URL again");
  if (allowed) {
    claim(url->host.ends_with(".example.com"), "a host of a rule");
    claim(url->port == 443 || url->port == 8080, "a port of a rule");
  }
  const auto own = url_rules::parse({url->origin() + url->path});
  claim(own && own->check(input), "a rule to allow its own URL");
  return 0;
}
