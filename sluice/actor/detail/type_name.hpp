#pragma once

// The name of a type as it is written in source, at compile time.

#include <string_view>

namespace sluice::detail {

template <class T>
constexpr std::string_view type_name() noexcept {
  // "... type_name() [with T = the_type; ...]" from g++, "... [T = the_type]" from clang.
  std::string_view all = __PRETTY_FUNCTION__;
  const std::string_view before = "T = ";
  all.remove_prefix(all.find(before) + before.size());
  return all.substr(0, all.find_first_of(";]"));
}

}  // namespace sluice::detail
