#pragma once

// EXPECT_HAS(text, part): expects that `text` contains `part`, and prints `text` if it does not.

#include <gtest/gtest.h>

#include <string_view>

#define EXPECT_HAS(text, part) \
  EXPECT_NE(std::string_view(text).find(part), std::string_view::npos) << "in: " << (text)
