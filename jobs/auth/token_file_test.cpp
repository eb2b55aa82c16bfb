// Tokens on disk: atomic writes, private permissions, one writer at a time.
#include "jobs/auth/token_file.hpp"
#include "sluice/base/testing/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace sluice::jobs::token_file_test {
namespace {

class TokenFile : public ::testing::Test {
 protected:
  token_set::created make(std::string name = "web") {
    auto made = change_tokens(file_, [&](token_set& all) {
      return all.create({.name = std::move(name), .roles = {role::push}}, time_.now());
    });
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(file_).rdbuf();
    return out.str();
  }
  mode_t mode() const {
    struct stat found {};
    EXPECT_EQ(::stat(file_.c_str(), &found), 0);
    return found.st_mode & 07777U;
  }

  sluice::testing::temporary_folder folder_;
  std::string file_ = token_file_in(folder_.path());
  manual_time time_;
};

TEST_F(TokenFile, WithoutAFileHasNoTokens) {
  const auto all = load_tokens(file_);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_TRUE(all->empty());
}

TEST_F(TokenFile, KeepsTokensAndIsReadableForItsOwnerOnly) {
  const auto made = make();
  EXPECT_EQ(mode(), mode_t{0600});
  const auto all = load_tokens(file_);
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_TRUE(all->authenticate(made.text, time_.now()));
  EXPECT_EQ(text().find(made.text.substr(13)), std::string::npos);
}

TEST_F(TokenFile, IsRejectedWhenOthersCanReadItAndTheErrorHasTheFix) {
  make();
  for (const mode_t open : {0640U, 0604U, 0620U, 0602U, 0644U}) {
    ASSERT_EQ(::chmod(file_.c_str(), open), 0);
    const auto all = load_tokens(file_);
    ASSERT_FALSE(all) << open;
    EXPECT_EQ(all.error().code, error_code::invalid);
    EXPECT_NE(all.error().message.find("chmod 600 " + file_), std::string::npos);
  }
  ASSERT_EQ(::chmod(file_.c_str(), 0400), 0);
  EXPECT_TRUE(load_tokens(file_));
}

TEST_F(TokenFile, IsNamedInTheErrorWhenItIsDamaged) {
  std::ofstream(file_) << "{\"version\":1,\"tokens\":[{\"id\":7}]}";
  ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  const auto all = load_tokens(file_);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, error_code::corrupt);
  EXPECT_NE(all.error().message.find(file_), std::string::npos);
  EXPECT_NE(all.error().message.find("tokens[0].id"), std::string::npos);
  const auto changed = change_tokens(file_, [&](token_set& set) { return set.revoke("x"); });
  EXPECT_FALSE(changed) << "a damaged file is not overwritten";
  EXPECT_NE(text().find("\"id\":7"), std::string::npos);
}

TEST_F(TokenFile, IsRejectedWhenItIsNoRegularFile) {
  ASSERT_EQ(::mkdir(file_.c_str(), 0700), 0);
  EXPECT_FALSE(load_tokens(file_));
}

TEST_F(TokenFile, IsRejectedWhenItIsHuge) {
  {
    std::ofstream out(file_);
    out << std::string(std::size_t{5} << 20, ' ');
  }
  ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  EXPECT_FALSE(load_tokens(file_));
}

TEST_F(TokenFile, IsNotWrittenWhenTheChangeFails) {
  make();
  const std::string before = text();
  EXPECT_FALSE(change_tokens(file_, [](token_set& all) { return all.remove("zzzzzzzz"); }));
  EXPECT_EQ(text(), before);
}

TEST_F(TokenFile, IsUnchangedByAnInterruptedWrite) {
  const auto made = make();
  std::ofstream(file_ + ".new") << "{\"version\":1,\"tok";
  EXPECT_TRUE(load_tokens(file_)->authenticate(made.text, time_.now()));
  make();
  EXPECT_EQ(load_tokens(file_)->list().size(), 2U);
}

TEST_F(TokenFile, IsNamedInTheErrorWhenItsFolderIsMissing) {
  const auto saved = save_tokens(folder_.file("no/tokens.json"), token_set());
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message.find("no/tokens.json"), std::string::npos);
}

TEST_F(TokenFile, LosesNoTokenWhenSeveralAreCreatedAtOnce) {
  std::vector<std::jthread> makers;
  for (int i = 0; i < 8; ++i) {
    makers.emplace_back([&] {
      for (int k = 0; k < 5; ++k) make();
    });
  }
  makers.clear();
  EXPECT_EQ(load_tokens(file_)->list().size(), 40U);
}

}  // namespace
}  // namespace sluice::jobs::token_file_test
