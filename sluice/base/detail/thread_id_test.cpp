#include "sluice/base/detail/thread_id.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "sluice/base/this_thread.hpp"

namespace sluice::thread_id_test {
namespace {

TEST(ThreadId, IsConstantForAThread) {
  EXPECT_NE(seam::kernel_thread_id(), 0U);
  EXPECT_EQ(seam::kernel_thread_id(), seam::kernel_thread_id());
}

TEST(ThreadId, GivesTheNameOfAnotherThread) {
  std::uint32_t id = 0;
  std::string name;
  std::jthread([&] {
    seam::name_thread("courier");
    id = seam::kernel_thread_id();
    std::jthread([&] { name = seam::thread_name(id); });
  }).join();
  EXPECT_EQ(name, "courier");
  EXPECT_NE(id, seam::kernel_thread_id());
}

TEST(ThreadId, AnEndedThreadHasNoName) {
  EXPECT_EQ(seam::thread_name(0), "");
}

}  // namespace
}  // namespace sluice::thread_id_test
