#include "jobs/model/job.hpp"

#include <gtest/gtest.h>

#include <array>

namespace sluice::jobs::job_test {
namespace {

using namespace std::chrono_literals;

constexpr std::array all_states = {job_state::scheduled, job_state::ready, job_state::running,
                                   job_state::retrying,  job_state::done,  job_state::dead,
                                   job_state::cancelled};

job_spec good() {
  return {.kind = "mail"};
}

template <class Change>
error refused(Change change) {
  job_spec spec = good();
  change(spec);
  const auto valid = validate(spec);
  EXPECT_FALSE(valid);
  return valid ? error{} : valid.error();
}

template <class Change>
bool accepted(Change change) {
  job_spec spec = good();
  change(spec);
  return static_cast<bool>(validate(spec));
}

TEST(JobState, RoundTripsThroughItsWord) {
  for (const job_state s : all_states) EXPECT_EQ(job_state_from(to_string(s)), s);
  EXPECT_EQ(to_string(job_state::retrying), "retrying");
  EXPECT_EQ(job_state_from("Ready"), std::nullopt);
  EXPECT_EQ(job_state_from(""), std::nullopt);
  EXPECT_EQ(to_string(static_cast<job_state>(99)), "unknown");
}

TEST(JobState, HasEndedInFinalStates) {
  for (const job_state s : all_states) {
    EXPECT_EQ(has_ended(s),
              s == job_state::done || s == job_state::dead || s == job_state::cancelled);
  }
}

TEST(JobWeight, GrowsWithTheFieldsOfTheProducer) {
  const auto empty = weight_of(job_spec{});
  EXPECT_GT(empty, 0U);
  EXPECT_EQ(weight_of({.kind = "1234", .args = {"12345"}}), empty + 9);
  EXPECT_EQ(weight_of({.unique = {.key = "123"}, .metadata = "{}"}), empty + 5);
}

TEST(QueueName, HasLettersDigitsAndFewSigns) {
  EXPECT_TRUE(validate_queue_name("default"));
  EXPECT_TRUE(validate_queue_name("AZaz09._-/:+;$()"));
  EXPECT_TRUE(validate_queue_name(std::string(200, 'q')));
}

TEST(QueueName, IsRejectedWithTheReason) {
  const auto error_of = [](std::string_view name) { return validate_queue_name(name).error(); };
  EXPECT_EQ(error_of("").message, "the name of a queue must not be empty");
  EXPECT_EQ(error_of(std::string(201, 'q')).code, error_code::too_large);
  EXPECT_NE(error_of("a b").message.find("byte 2"), std::string::npos);
  EXPECT_EQ(error_of("a\n").code, error_code::invalid);
  EXPECT_EQ(error_of(std::string_view("a\0b", 3)).code, error_code::invalid);
  EXPECT_EQ(error_of("caf\xC3\xA9").code, error_code::invalid);
}

TEST(JobSpec, IsValidWithAKindAlone) {
  EXPECT_TRUE(validate(good()));
}

TEST(JobSpec, ErrorsNameTheField) {
  const auto says = [](const error& e, std::string_view field) {
    return e.message.find(field) != std::string::npos;
  };
  EXPECT_TRUE(says(refused([](job_spec& s) { s.queue = "a b"; }), "queue"));
  EXPECT_TRUE(says(refused([](job_spec& s) { s.kind.clear(); }), "kind must not be empty"));
  EXPECT_TRUE(says(refused([](job_spec& s) { s.run_at.ms = -1; }), "run_at"));
  EXPECT_TRUE(says(refused([](job_spec& s) { s.lease_for = -1ms; }), "lease_for"));
  EXPECT_TRUE(says(refused([](job_spec& s) { s.lease_for = 24h * 366 * 11; }), "lease_for"));
  EXPECT_TRUE(says(refused([](job_spec& s) { s.time_limit = -1ms; }), "time_limit"));
  EXPECT_TRUE(says(refused([](job_spec& s) { s.keep_for = -1ms; }), "keep_for"));
  EXPECT_TRUE(says(refused([](job_spec& s) { s.retry.factor = 0; }), "retry.factor"));
  EXPECT_TRUE(says(refused([](job_spec& s) { s.unique.lasts = -1ms; }), "unique.for"));
  EXPECT_TRUE(
      says(refused([](job_spec& s) { s.unique = {.key = "k", .until = unique_until::elapsed}; }),
           "unique.for must be set"));
}

TEST(JobSpec, AcceptsItsLimits) {
  EXPECT_TRUE(accepted([](job_spec& s) { s.kind.assign(limits::kind_bytes_max, 'k'); }));
  EXPECT_TRUE(accepted([](job_spec& s) { s.args.data.assign(limits::args_bytes_max, '1'); }));
  EXPECT_TRUE(accepted([](job_spec& s) { s.metadata.assign(limits::metadata_bytes_max, ' '); }));
  EXPECT_TRUE(
      accepted([](job_spec& s) { s.unique.key.assign(limits::unique_key_bytes_max, 'u'); }));
  EXPECT_TRUE(accepted([](job_spec& s) { s.priority = limits::priority_max; }));
  EXPECT_TRUE(accepted([](job_spec& s) { s.priority = -limits::priority_max; }));
  EXPECT_TRUE(accepted([](job_spec& s) { s.keep_for = 24h * 366 * 10; }));
}

TEST(JobSpec, IsTooLargeOneByteAboveItsLimits) {
  const auto code = [](auto change) { return refused(change).code; };
  EXPECT_EQ(code([](job_spec& s) { s.kind.assign(limits::kind_bytes_max + 1, 'k'); }),
            error_code::too_large);
  EXPECT_EQ(code([](job_spec& s) { s.args.data.assign(limits::args_bytes_max + 1, '1'); }),
            error_code::too_large);
  EXPECT_EQ(code([](job_spec& s) { s.metadata.assign(limits::metadata_bytes_max + 1, ' '); }),
            error_code::too_large);
  EXPECT_EQ(code([](job_spec& s) { s.unique.key.assign(limits::unique_key_bytes_max + 1, 'u'); }),
            error_code::too_large);
  EXPECT_EQ(code([](job_spec& s) { s.priority = limits::priority_max + 1; }), error_code::invalid);
  EXPECT_EQ(code([](job_spec& s) { s.priority = -limits::priority_max - 1; }), error_code::invalid);
}

}  // namespace
}  // namespace sluice::jobs::job_test
