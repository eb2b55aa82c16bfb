// Creating tokens, authenticating them, and the errors for unusable tokens.
#include "jobs/auth/token_set.hpp"

#include <gtest/gtest.h>

#include <set>

namespace sluice::jobs::token_set_test {
namespace {

using std::chrono::hours;

class TokenSet : public ::testing::Test {
 protected:
  token_set::created make(role_set roles = {role::push}, std::vector<std::string> queues = {}) {
    return all_.create({.name = "web", .roles = roles, .queues = std::move(queues)}, time_.now())
        .value();
  }
  std::string refusal(std::string_view shown) const {
    const auto caller = all_.authenticate(shown, time_.now());
    EXPECT_FALSE(caller);
    if (caller) return "";
    EXPECT_EQ(caller.error().code, error_code::unauthenticated);
    return caller.error().message;
  }

  manual_time time_;
  token_set all_;
};

TEST_F(TokenSet, AuthenticatesATokenThatItCreated) {
  const auto made = make({role::push, role::read}, {"mail-*"});
  const auto caller = all_.authenticate(made.text, time_.now());
  ASSERT_TRUE(caller) << caller.error().message;
  EXPECT_EQ(caller->id(), made.info.id);
  EXPECT_TRUE(caller->may(role::push, "mail-eu"));
  EXPECT_FALSE(caller->may(role::push, "reports"));
  EXPECT_FALSE(caller->may(role::work, "mail-eu"));
  EXPECT_TRUE(caller->is_scoped());
}

TEST_F(TokenSet, RenewsAnIdentityWithTheCurrentToken) {
  const auto made = make({role::push}, {"mail"});
  const auto limited = all_.create(
      {.name = "web", .roles = {role::push}, .expires_at = time_.now() + hours(1)}, time_.now());
  const identity caller = all_.authenticate(made.text, time_.now()).value();
  const identity guest = all_.authenticate(limited->text, time_.now()).value();
  const auto why = [&](const token_set& set, const identity& of) {
    const auto known = set.renew(of, time_.now());
    if (known) return std::string();
    EXPECT_EQ(known.error().code, error_code::unauthenticated);
    return known.error().message;
  };
  EXPECT_EQ(why(all_, caller), "");
  EXPECT_EQ(why(all_, guest), "");
  EXPECT_EQ(guest.expires_at(), time_.now() + hours(1));
  time_.advance(hours(1));
  EXPECT_NE(why(all_, guest).find("has expired"), std::string::npos);

  std::string text = all_.text();
  text.replace(text.find("[\"mail\"]"), 8, "[\"news\"]");
  const auto changed = token_set::parse(text)->renew(caller, time_.now());
  ASSERT_TRUE(changed);
  EXPECT_FALSE(changed->may(role::push, "mail"));
  EXPECT_TRUE(changed->may(role::push, "news"));

  text = all_.text();
  text.replace(text.find("\"sha256\":\"") + 10, 64, std::string(64, 'a'));
  EXPECT_NE(why(*token_set::parse(text), caller).find("was removed"), std::string::npos);
  EXPECT_NE(why(token_set(), caller).find("was removed"), std::string::npos);
  EXPECT_NE(why(all_, identity()).find("needs a token"), std::string::npos);
  ASSERT_TRUE(all_.revoke(made.info.id));
  EXPECT_NE(why(all_, caller).find("was revoked"), std::string::npos);
}

TEST_F(TokenSet, CoversAScopeWithItsPatternsOrWithoutAScope) {
  const auto one = [&](std::vector<std::string> queues) {
    return all_.authenticate(make({role::push}, std::move(queues)).text, time_.now()).value();
  };
  EXPECT_TRUE(one({}).covers_scope_of(one({"a"})));
  EXPECT_TRUE(one({}).covers_scope_of(one({})));
  EXPECT_TRUE(one({"a", "b-*"}).covers_scope_of(one({"b-*"})));
  EXPECT_FALSE(one({"a"}).covers_scope_of(one({})));
  EXPECT_FALSE(one({"a"}).covers_scope_of(one({"a", "b"})));
  EXPECT_FALSE(one({"a"}).covers_scope_of(identity()));
}

TEST_F(TokenSet, CreatesUniqueTokensOfAKnownForm) {
  std::set<std::string> texts;
  for (int i = 0; i < 100; ++i) {
    const auto made = make();
    EXPECT_EQ(made.text.size(), 4U + 8 + 1 + 43);
    EXPECT_TRUE(made.text.starts_with("slk_" + made.info.id + "_"));
    EXPECT_EQ(made.text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-"),
              std::string::npos);
    texts.insert(made.text.substr(13));
  }
  EXPECT_EQ(texts.size(), 100U);
}

TEST_F(TokenSet, StoresNoSecret) {
  const auto made = make();
  EXPECT_EQ(all_.text().find(made.text.substr(13)), std::string::npos);
}

TEST_F(TokenSet, RejectsEveryChangeOfAToken) {
  const auto made = make();
  for (std::size_t i = 0; i < made.text.size(); ++i) {
    std::string changed = made.text;
    changed[i] = changed[i] == 'a' ? 'b' : 'a';
    EXPECT_NE(refusal(changed), "") << i;
  }
  EXPECT_NE(refusal(made.text + "a"), "");
  EXPECT_NE(refusal(made.text.substr(0, made.text.size() - 1)), "");
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal("slk_"), "");
  EXPECT_NE(refusal(std::string(100'000, 'a')), "");
}

TEST_F(TokenSet, RejectsAWrongSecretAndAnUnknownIdWithTheSameError) {
  const auto first = make();
  const auto other = make();
  const std::string wrong_secret = first.text.substr(0, 13) + other.text.substr(13);
  std::string no_id = first.text;
  no_id.replace(4, 8, "zzzzzzzz");
  EXPECT_EQ(refusal(wrong_secret), refusal(no_id));
  EXPECT_EQ(refusal(wrong_secret).find(other.text.substr(13)), std::string::npos);
}

TEST_F(TokenSet, RejectsATokenWhoseHashIsTheDummy) {
  // No secret with the hash zero is known, but a token with an unknown id must be rejected anyway.
  EXPECT_NE(refusal("slk_00000000_" + std::string(43, 'A')), "");
}

TEST_F(TokenSet, ExpiresATokenAtItsTime) {
  const auto made =
      all_.create({.name = "guest", .roles = {role::read}, .expires_at = time_.now() + hours(1)},
                  time_.now())
          .value();
  time_.advance(hours(1) - milliseconds(1));
  EXPECT_TRUE(all_.authenticate(made.text, time_.now()));
  EXPECT_TRUE(all_.has_usable(time_.now()));
  time_.advance(milliseconds(1));
  EXPECT_NE(refusal(made.text).find("has expired"), std::string::npos);
  EXPECT_FALSE(all_.has_usable(time_.now()));
}

TEST_F(TokenSet, ReportsARevokedTokenOnlyToACallerWithItsSecret) {
  const auto made = make();
  const auto other = make();
  EXPECT_TRUE(all_.revoke(made.info.id));
  EXPECT_NE(refusal(made.text).find("revoked"), std::string::npos);
  EXPECT_EQ(refusal(made.text.substr(0, 13) + other.text.substr(13)).find("revoked"),
            std::string::npos);
  EXPECT_EQ(all_.list().size(), 2U);
  EXPECT_TRUE(all_.authenticate(other.text, time_.now()));
}

TEST_F(TokenSet, ForgetsATokenThatIsRemoved) {
  const auto first = make();
  const auto second = make();
  EXPECT_TRUE(all_.remove(first.info.id));
  EXPECT_EQ(all_.list().size(), 1U);
  EXPECT_NE(refusal(first.text), "");
  EXPECT_TRUE(all_.authenticate(second.text, time_.now()));
  EXPECT_EQ(all_.remove(first.info.id).error().code, error_code::not_found);
}

TEST_F(TokenSet, DoesNotRepeatATokenPassedInPlaceOfItsId) {
  const auto made = make();
  const auto refused = all_.revoke(made.text);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find(made.text.substr(13)), std::string::npos);
}

TEST_F(TokenSet, NamesTheMissingRoleOrQueue) {
  const auto made = make({role::push}, {"mail-*"});
  const auto why = [&](need permission) {
    const auto caller = all_.authorize(made.text, permission, time_.now());
    return caller ? std::string()
                  : std::string(to_string(caller.error().code)) + ": " + caller.error().message;
  };
  EXPECT_EQ(why({.required = role::push}), "");
  EXPECT_EQ(why({.required = role::push, .queue = "mail-eu"}), "");
  EXPECT_EQ(why({.required = role::work}),
            "forbidden: this needs the role work, but the token " + made.info.id + " has push");
  EXPECT_EQ(why({.required = role::push, .queue = "reports"}),
            "forbidden: the token " + made.info.id +
                " has the role push, but not for the queue 'reports'");
  EXPECT_EQ(all_.authorize("x", {.required = role::push}, time_.now()).error().code,
            error_code::unauthenticated);
}

TEST_F(TokenSet, RejectsAnInvalidRequest) {
  const auto why = [&](token_request request) {
    const auto made = all_.create(std::move(request), time_.now());
    return made ? error_code::unavailable : made.error().code;
  };
  const role_set some = {role::read};
  EXPECT_EQ(why({.name = "", .roles = some}), error_code::invalid);
  EXPECT_EQ(why({.name = std::string(101, 'n'), .roles = some}), error_code::invalid);
  EXPECT_EQ(why({.name = "n", .roles = {}}), error_code::invalid);
  EXPECT_EQ(why({.name = "n", .roles = some, .queues = {"a b"}}), error_code::invalid);
  EXPECT_EQ(why({.name = "n", .roles = some, .queues = std::vector<std::string>(101, "q")}),
            error_code::invalid);
  EXPECT_EQ(why({.name = "n", .roles = some, .expires_at = time_.now()}), error_code::invalid);
  EXPECT_TRUE(all_.empty());
}

TEST_F(TokenSet, IsBounded) {
  for (std::size_t i = 0; i < token_set::tokens_max; ++i) make();
  EXPECT_EQ(all_.create({.name = "n", .roles = {role::read}}, time_.now()).error().code,
            error_code::too_large);
  const auto again = token_set::parse(all_.text());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->list().size(), token_set::tokens_max);
}

TEST_F(TokenSet, ParsesItsOwnText) {
  const auto plain = make();
  const auto limited = all_.create({.name = "a \"guest\"\n",
                                    .roles = {role::work, role::admin},
                                    .queues = {"a", "b-*"},
                                    .expires_at = time_.now() + hours(2)},
                                   time_.now())
                           .value();
  EXPECT_TRUE(all_.revoke(plain.info.id));
  const auto again = token_set::parse(all_.text());
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->list().size(), 2U);
  EXPECT_TRUE(again->list()[0]->disabled);
  const token& t = *again->list()[1];
  EXPECT_EQ(t.name, "a \"guest\"\n");
  EXPECT_EQ(t.roles, (role_set{role::work, role::admin}));
  EXPECT_EQ(t.queues, (std::vector<std::string>{"a", "b-*"}));
  EXPECT_EQ(t.created_at, time_.now());
  EXPECT_EQ(t.expires_at, time_.now() + hours(2));
  EXPECT_TRUE(again->authenticate(limited.text, time_.now()));
  EXPECT_EQ(again->text(), all_.text());
}

TEST_F(TokenSet, NamesThePlaceOfAnErrorInADamagedText) {
  const auto why = [](std::string_view text) {
    const auto read = token_set::parse(text);
    if (read) return std::string();
    EXPECT_EQ(read.error().code, error_code::corrupt);
    return read.error().message;
  };
  const auto token_with = [](std::string_view request) {
    return "{\"version\":1,\"tokens\":[{" + std::string(request) + "}]}";
  };
  const std::string hash(64, 'a');
  const std::string sound = R"("id":"abcdefgh","name":"n","roles":["push"],)"
                            R"("created_at":"2026-01-01T00:00:00Z","sha256":")" +
                            hash + "\"";
  EXPECT_EQ(why(token_with(sound)), "");
  EXPECT_NE(why("").find("line 1"), std::string::npos);
  EXPECT_NE(why("[]").find("expected"), std::string::npos);
  EXPECT_NE(why("{\"tokens\":[]}").find("version"), std::string::npos);
  EXPECT_NE(why("{\"version\":2,\"tokens\":[]}").find("version"), std::string::npos);
  EXPECT_NE(why(token_with("")).find("\"id\" is missing"), std::string::npos);
  EXPECT_NE(why(token_with(sound + ",\"id\":\"abcdefgh\"")).find("duplicate field"),
            std::string::npos);
  EXPECT_NE(why(token_with(sound + ",\"role\":[]")).find("roles"), std::string::npos);
  EXPECT_NE(why(token_with(sound + ",\"queues\":[\"a b\"]")).find("tokens[0].queues[0]"),
            std::string::npos);
  EXPECT_NE(why("{\"version\":1,\"tokens\":[{" + sound + "},{" + sound + "}]}").find("two tokens"),
            std::string::npos);
  const auto with = [&](std::string_view from, std::string_view replacement) {
    std::string changed = sound;
    changed.replace(changed.find(from), from.size(), replacement);
    return why(token_with(changed));
  };
  EXPECT_NE(with("abcdefgh", "abc").find("tokens[0].id"), std::string::npos);
  EXPECT_NE(with("[\"push\"]", "[\"root\"]").find("tokens[0].roles[0]"), std::string::npos);
  EXPECT_NE(with("[\"push\"]", "[]").find("role"), std::string::npos);
  EXPECT_NE(with(hash, "aa").find("tokens[0].sha256"), std::string::npos);
  EXPECT_NE(with("2026-01-01T00:00:00Z", "yesterday").find("created_at"), std::string::npos);
}

// A text cut at any byte, or with any one byte changed, is parsed completely or rejected.
TEST_F(TokenSet, IsRobustAgainstAnyCutOrChange) {
  make({role::push}, {"mail-*"});
  make({role::admin});
  const std::string sound = all_.text();
  const std::string compact = sound.substr(0, sound.rfind('}'));  // cuts behind it change nothing
  for (std::size_t i = 0; i < compact.size(); ++i) {
    EXPECT_FALSE(token_set::parse(std::string_view(sound).substr(0, i))) << i;
  }
  for (std::size_t i = 0; i < sound.size(); ++i) {
    std::string changed = sound;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    if (const auto read = token_set::parse(changed)) {
      EXPECT_EQ(read->list().size(), 2U) << i;
    }
  }
}

}  // namespace
}  // namespace sluice::jobs::token_set_test
