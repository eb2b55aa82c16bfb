#include "sluice/base/detail/user_code.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sluice/base/detail/code_address.hpp"
#include "sluice/base/detail/symbols.hpp"

// Counts as a function of the library, by its namespace.
namespace sluice {
[[gnu::noinline]] inline const void* look_from_inside_the_library() {
  const void* const found = seam::user_code_on_stack();
  asm volatile("" ::: "memory");  // keeps the call above from being a tail call
  return found;
}
[[gnu::noinline]] inline const void* look_through_the_library() {
  const void* const found = look_from_inside_the_library();
  asm volatile("" ::: "memory");
  return found;
}
[[gnu::noinline]] inline const void* return_address_in_the_library() {
  return __builtin_return_address(0);
}
[[gnu::noinline]] inline const void* address_in_the_library() {
  const void* const here = return_address_in_the_library();
  asm volatile("" ::: "memory");
  return here;
}
}  // namespace sluice

namespace user_code_test {
namespace {

namespace seam = sluice::seam;

[[gnu::noinline]] const void* move_money() {
  const void* const found = sluice::look_through_the_library();
  asm volatile("" ::: "memory");
  return found;
}

TEST(UserCode, IsTheInnermostFunctionOnTheStackOutsideTheLibrary) {
  const std::string text = seam::code_address_text(move_money());
  EXPECT_NE(text.find("user_code_test::(anonymous namespace)::move_money()+0x"), std::string::npos)
      << text;
  EXPECT_NE(text.find("_test+0x"), std::string::npos) << text << ": no offset in the file";
}

TEST(UserCode, IsDistinguishedFromTheLibraryWithoutDynamicSymbols) {
  EXPECT_TRUE(seam::is_library_code(sluice::address_in_the_library()));
  EXPECT_TRUE(seam::is_library_code(sluice::address_in_the_library())) << "from the cache";
  EXPECT_FALSE(seam::is_library_code(move_money()));
  EXPECT_FALSE(seam::is_library_code(reinterpret_cast<const void*>(0x10)));
}

TEST(UserCode, IsSearchedFromAGivenAddressOnTheStack) {
  EXPECT_EQ(seam::user_code_on_stack(reinterpret_cast<const void*>(0x10)), nullptr);
}

TEST(UserCode, HeadersOfTheLibraryAndOfTheStandardLibraryAreNotTheUsers) {
  EXPECT_TRUE(seam::is_library_file("/usr/include/c++/12/bits/std_mutex.h"));
  EXPECT_TRUE(seam::is_library_file("/usr/lib/llvm-16/include/c++/v1/mutex"));
  EXPECT_TRUE(seam::is_library_file("/usr/local/include/sluice/sync/mutex.hpp"));
  EXPECT_TRUE(seam::is_library_file("./sluice/channel/select.hpp"));
  EXPECT_TRUE(seam::is_library_file("sluice/queue/detail/queue_core_impl.hpp"));
  EXPECT_FALSE(seam::is_library_file("sluice/sync/testing/coroutine.hpp"));
  EXPECT_FALSE(seam::is_library_file("/home/ann/sluice/bank/ledger.hpp"));
  EXPECT_FALSE(seam::is_library_file("/home/ann/mysluice/sync/ledger.hpp"));
  EXPECT_FALSE(seam::is_library_file("bank.cpp"));
  EXPECT_FALSE(seam::is_library_file(""));
}

TEST(UserCode, AnAddressOutsideOfTheProgramHasNoSymbol) {
  const auto nothing = seam::find_symbol(reinterpret_cast<const void*>(0x10));
  EXPECT_TRUE(nothing.file.empty());
  EXPECT_TRUE(nothing.name.empty());
}

}  // namespace
}  // namespace user_code_test
