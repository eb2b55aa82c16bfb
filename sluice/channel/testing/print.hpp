#pragma once

// Makes a failed expectation print "closed" instead of bytes.

#include <ostream>

#include "sluice/base/outcome.hpp"

namespace sluice {

inline void PrintTo(status s, std::ostream* out) {
  *out << to_string(s);
}
inline void PrintTo(status::code c, std::ostream* out) {
  *out << to_string(c);
}

}  // namespace sluice
