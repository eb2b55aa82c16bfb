#pragma once

// EXPECT_HAS(text, part): `part` is somewhere in `text`, which is printed if it is not.

#include <gtest/gtest.h>

#include <string_view>

#define EXPECT_HAS(text, part) \
  EXPECT_NE(std::string_view(text).find(part), std::string_view::npos) << "in: " << (text)
