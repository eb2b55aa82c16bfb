// The header with which a receiver verifies a delivery.

#include "fuzz/fuzz_target.hpp"
#include "jobs/deliver/signature.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<std::string> secrets = {"a-secret-of-enough-bytes"};
  constexpr unix_time now{1'700'000'000'000};
  const std::string_view input = sluice::fuzz::text_of(data, size);
  const auto verified = verify_signature(input, "body", secrets, now);
  if (verified) {
    // Without the secret, only the valid signature of the corpus passes, with other text around it.
    const std::string real = sign("body", now, secrets);
    claim(input.find(real.substr(real.find("v1="))) != std::string_view::npos,
          "the valid signature");
  } else {
    claim(sluice::fuzz::is_printable(verified.error().message), "a printable message");
  }
  claim(verify_signature(sign(input, now, secrets), input, secrets, now).has_value(),
        "a signed text to be verified");
  for (const std::string& secret : split_secrets(input)) claim(!secret.empty(), "no empty secret");
  return 0;
}
