// The text of a token file, and a token from a client.

#include <string>

#include "fuzz/fuzz_target.hpp"
#include "jobs/auth/token_set.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = sluice::fuzz::text_of(data, size);
  const auto all = token_set::parse(input);
  if (!all) {
    claim(all.error().code == error_code::corrupt, "the error code of an invalid file");
    claim(!all.error().message.empty(), "an error message");
  } else {
    claim(all->list().size() <= token_set::tokens_max, "a bounded number of tokens");
    const std::string written = all->text();
    const auto again = token_set::parse(written);
    claim(again.has_value() && again->text() == written, "the same tokens again");
    for (const auto& t : all->list()) {
      claim(!t->roles.empty(), "a role of every token");
      // The file contains no secret: no text of it authenticates.
      const std::string guessed = "slk_" + t->id + "_" + std::string(43, 'a');
      claim(!all->authenticate(guessed, unix_time{}).has_value(), "a wrong secret to be rejected");
    }
  }
  token_set made;
  claim(!made.authenticate(input, unix_time{}).has_value(), "no access without tokens");
  return 0;
}
