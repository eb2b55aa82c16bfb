#pragma once

// What a test of actors expected and did not get: thrown by `actor_probe` and `actor_test_kit`, so
// that they need no test framework and every one of them shows the text.

#include <stdexcept>

namespace sluice {

class actor_test_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sluice
