#include "sluice/base/detail/code_address.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace sluice::code_address_test {
namespace {

TEST(CodeAddress, NamesAFunctionThatHasASymbol) {
  // A function of libc that no sanitizer replaces.
  const auto* const inside = reinterpret_cast<const char*>(&std::rand) + 1;
  const std::string text = seam::code_address_text(inside);
  EXPECT_TRUE(text.starts_with("rand+0x1 (libc")) << text;
}

TEST(CodeAddress, AnAddressOutsideOfCodeIsANumber) {
  EXPECT_EQ(seam::code_address_text(reinterpret_cast<const void*>(0x10)), "+0x10");
}

}  // namespace
}  // namespace sluice::code_address_test
