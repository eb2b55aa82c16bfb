#pragma once

// What a store reports to its operator: upgrades of the file, and damage that it found.

#include <functional>
#include <string>

namespace sluice::jobs {

struct store_notice {
  bool is_damage = false;  // to be logged as an error
  std::string text{};      // a sentence; names the file
};

// Called on any thread that uses the store. It must return at once and not use the store.
using notice_callback = std::function<void(const store_notice&)>;

}  // namespace sluice::jobs
