#pragma once

// A failed expectation of a test of actors, thrown by `actor_probe` and `actor_test_kit`: they need
// no test framework, and every framework shows the text.

#include <stdexcept>

namespace sluice {

class actor_test_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sluice
