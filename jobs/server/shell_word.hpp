#pragma once

// Quotes a text as one word for a shell, so that a printed command can be pasted.
//
//     shell_word("mail")      mail
//     shell_word("a$b")       'a$b'

#include <string>
#include <string_view>

namespace sluice::jobs {

std::string shell_word(std::string_view text);

}  // namespace sluice::jobs
