#pragma once

// Reports of a store to its operator: upgrades of the file, and damage.

#include <functional>
#include <string>

namespace sluice::jobs {

struct store_notice {
  bool is_damage = false;  // log as an error
  std::string text{};      // a sentence that names the file
};

// Called on any thread that uses the store. It must return at once and not use the store.
using notice_callback = std::function<void(const store_notice&)>;

}  // namespace sluice::jobs
