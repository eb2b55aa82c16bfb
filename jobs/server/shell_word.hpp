#pragma once

// A text as one word of a shell's line, so that a command that is printed can be pasted.
//
//     shell_word("mail")      mail
//     shell_word("a$b")       'a$b'

#include <string>
#include <string_view>

namespace sluice::jobs {

std::string shell_word(std::string_view text);

}  // namespace sluice::jobs
