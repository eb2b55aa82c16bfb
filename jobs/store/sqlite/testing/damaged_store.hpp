#pragma once

// A fixture with a store on a file that a test damages, with its notices and problems.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobs/store/sqlite/sqlite_store.hpp"
#include "jobs/store/sqlite/store_check.hpp"
#include "jobs/store/sqlite/testing/raw_database.hpp"
#include "jobs/store/testing/store_words.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

namespace sluice::jobs::testing {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class damaged_store : public ::testing::Test {
 protected:
  result<std::unique_ptr<store>> try_open(const std::string& file,
                                          sync_mode sync = sync_mode::off) {
    auto opened = open_sqlite({.path = file,
                               .sync = sync,
                               .reserve_file_bytes = 0,
                               .on_notice = [this](const store_notice& n) {
                                 if (n.is_damage) notices.push_back(n.text);
                                 if (!n.is_damage) remarks.push_back(n.text);
                               }});
    return opened;
  }
  std::unique_ptr<store> open() {
    auto db = must(try_open(path));
    must(db->load());
    return db;
  }
  void sql(const std::string& text) { ASSERT_EQ(raw_database(path).run(text), SQLITE_OK) << text; }
  bool has_notice(std::string_view part) const {
    return std::ranges::any_of(
        notices, [&](const std::string& n) { return n.find(part) != std::string::npos; });
  }
  std::vector<std::string> problems() { return must(check_store(path)).problems; }

  sluice::testing::temporary_folder folder;
  std::string path = folder.file("jobs.db");
  std::vector<std::string> notices;
  std::vector<std::string> remarks;
};

}  // namespace sluice::jobs::testing
