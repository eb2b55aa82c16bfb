// The text of a file of tokens, and what is shown to the server as one of them.

#include <string>

#include "fuzz/fuzz_target.hpp"
#include "jobs/auth/token_set.hpp"

using namespace sluice::jobs;
using sluice::fuzz::claim;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = sluice::fuzz::text_of(data, size);
  const auto all = token_set::parse(input);
  if (!all) {
    claim(all.error().code == error_code::corrupt, "the code of a file that is wrong");
    claim(!all.error().message.empty(), "what is wrong with it");
  } else {
    claim(all->list().size() <= token_set::tokens_max, "a bounded number of tokens");
    const std::string written = all->text();
    const auto again = token_set::parse(written);
    claim(again.has_value() && again->text() == written,
          "that tokens are read as they were written");
    for (const auto& t : all->list()) {
      claim(!t->roles.empty(), "a role of every token");
      // Whoever knows the file knows no secret: what is in it opens nothing.
      const std::string guessed = "slk_" + t->id + "_" + std::string(43, 'a');
      claim(!all->authenticate(guessed, unix_time{}).has_value(), "that a wrong secret is refused");
    }
  }
  token_set made;
  claim(!made.authenticate(input, unix_time{}).has_value(), "that nobody is let in without tokens");
  return 0;
}
