// The text of a configuration file.

#include "fuzz/fuzz_target.hpp"
#include "jobs/server/config.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = sluice::fuzz::text_of(data, size);
  configuration first;
  const auto applied = apply_config_text(first, text, "sluice.toml");
  if (!applied) {
    claim(applied.error().message.find("sluice.toml") != std::string::npos, "a place in the file");
    return 0;
  }
  configuration second;
  claim(apply_config_text(second, text, "sluice.toml").has_value(), "the same answer again");
  claim(describe(first) == describe(second), "the same settings again");
  return 0;
}
