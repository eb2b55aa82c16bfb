// TRACK and BATCH.

#include "jobs/protocol/faktory/testing/faktory_words.hpp"

namespace sluice::jobs::testing::faktory_track_test {
namespace {

class FaktoryTrack : public faktory_words {
 protected:
  std::string state_of(speaker& s, const std::string& jid) {
    const std::string got = s.ask("TRACK GET " + jid);
    EXPECT_EQ(jid_in(got), "\"" + jid + "\"");
    const std::string word = member(got, "state");
    return word.size() > 2 ? word.substr(1, word.size() - 2) : word;
  }
};

TEST_F(FaktoryTrack, AJobIsTrackedUntilItsEnd) {
  auto& c = client();
  EXPECT_EQ(c.ask("TRACK GET 12345678"), R"({"jid":"12345678","state":"unknown","updated_at":""})");
  EXPECT_EQ(c.ask(push_line("12345678", R"("custom":{"track":1})")), "+OK");
  EXPECT_EQ(c.ask("TRACK GET 12345678"),
            R"({"jid":"12345678","state":"enqueued","updated_at":"2026-01-01T00:00:00.000Z"})");
  (void)c.ask("FETCH");
  EXPECT_EQ(state_of(c, "12345678"), "working");
  EXPECT_EQ(c.ask(R"(FAIL {"jid":"12345678"})"), "+OK");
  EXPECT_EQ(state_of(c, "12345678"), "failed");
  pass(1min);
  (void)c.ask("FETCH");
  EXPECT_EQ(c.ask(R"(ACK {"jid":"12345678"})"), "+OK");
  EXPECT_EQ(c.ask("TRACK GET 12345678"),
            R"({"jid":"12345678","state":"success","updated_at":"2026-01-01T00:01:00.000Z"})");
}

TEST_F(FaktoryTrack, EveryEndHasItsWord) {
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("scheduled", R"("at":"2026-02-01T00:00:00Z")")), "+OK");
  EXPECT_EQ(state_of(c, "scheduled"), "scheduled");
  EXPECT_EQ(c.ask(push_line("dead-job", R"("retry":-1)")), "+OK");
  (void)c.ask("FETCH");
  EXPECT_EQ(c.ask(R"(FAIL {"jid":"dead-job"})"), "+OK");
  EXPECT_EQ(state_of(c, "dead-job"), "dead");
  EXPECT_EQ(c.ask(push_line("discarded", R"("retry":0)")), "+OK");
  (void)c.ask("FETCH");
  EXPECT_EQ(c.ask(R"(FAIL {"jid":"discarded"})"), "+OK");
  EXPECT_EQ(state_of(c, "discarded"), "dead");
}

TEST_F(FaktoryTrack, AJobOfAnotherApiIsFoundByItsId) {
  push({.kind = "k"});
  auto& c = client();
  EXPECT_EQ(state_of(c, "sluice-00000001"), "enqueued");
  EXPECT_EQ(state_of(c, "sluice-00000002"), "unknown");
}

TEST_F(FaktoryTrack, TheOldestAreDropped) {
  wire_options.tracked_max = 2;
  auto& c = client();
  for (const char* jid : {"11111111", "22222222", "33333333"}) {
    EXPECT_EQ(c.ask(push_line(jid)), "+OK");
  }
  EXPECT_EQ(state_of(c, "11111111"), "unknown");
  EXPECT_EQ(state_of(c, "22222222"), "enqueued");
  EXPECT_EQ(state_of(c, "33333333"), "enqueued");
}

TEST_F(FaktoryTrack, AWorkerReportsProgress) {
  auto& w = worker();
  auto& c = client();
  EXPECT_EQ(c.ask(push_line("12345678")), "+OK");
  (void)w.ask("FETCH");
  pass(5s);
  EXPECT_EQ(w.ask(R"(TRACK SET {"jid":"12345678","percent":42,"desc":"Counting"})"), "+OK");
  EXPECT_EQ(c.ask("TRACK GET 12345678"),
            R"({"jid":"12345678","percent":42,"desc":"Counting","state":"working",)"
            R"("updated_at":"2026-01-01T00:00:05.000Z"})");
}

TEST_F(FaktoryTrack, OmittedMembersStayUnchanged) {
  auto& w = worker();
  EXPECT_EQ(w.ask(push_line("12345678")), "+OK");
  (void)w.ask("FETCH");
  const auto set = [&](const std::string& members) {
    EXPECT_EQ(w.ask(R"(TRACK SET {"jid":"12345678",)" + members + "}"), "+OK");
    const std::string got = w.ask("TRACK GET 12345678");
    return member(got, "percent") + ' ' + member(got, "desc");
  };
  EXPECT_EQ(set(R"("desc":"Counting")"), "0 \"Counting\"");
  EXPECT_EQ(set(R"("percent":40)"), "40 \"Counting\"");
  EXPECT_EQ(set(R"("desc":"Adding")"), "40 \"Adding\"");
  EXPECT_EQ(set(R"("reserve_until":"2026-01-01T01:00:00Z")"), "40 \"Adding\"");
  EXPECT_EQ(set(R"("percent":50,"desc":"")"), "50 \"\"");
}

TEST_F(FaktoryTrack, AReservationIsExtendedAndNeverShortened) {
  auto& w = worker();
  EXPECT_EQ(w.ask(push_line("12345678", R"("reserve_for":60)")), "+OK");
  (void)w.ask("FETCH");
  const job_id id = list_all({}).at(0).id;
  EXPECT_EQ(w.ask(R"(TRACK SET {"jid":"12345678","reserve_until":"2026-01-01T00:00:30Z"})"), "+OK");
  EXPECT_EQ(e().lease_of(id)->until, time.now() + 60s);
  EXPECT_EQ(w.ask(R"(TRACK SET {"jid":"12345678","reserve_until":"2026-01-01T00:05:00Z"})"), "+OK");
  EXPECT_EQ(e().lease_of(id)->until, time.now() + 5min);
  EXPECT_EQ(w.ask(R"(TRACK SET {"jid":"12345678","reserve_until":"2027-01-01T00:00:00Z"})"), "+OK");
  EXPECT_EQ(e().lease_of(id)->until, time.now() + 24h);
}

TEST_F(FaktoryTrack, AnInvalidCommandNamesTheExpectedArguments) {
  auto& c = client();
  EXPECT_EQ(c.ask("TRACK"), "-ERR expected TRACK GET or TRACK SET");
  EXPECT_EQ(c.ask("TRACK GET"), "-ERR expected a jid");
  EXPECT_EQ(c.ask("TRACK GET a b"), "-ERR expected a jid");
  EXPECT_EQ(c.ask("TRACK SET {}"), "-ERR the field \"jid\" is missing");
  EXPECT_EQ(c.ask(R"(TRACK SET {"jid":"12345678","percent":1})"),
            "-ERR Job not found 12345678: this worker does not hold it");
  EXPECT_TRUE(c.ask(R"(TRACK SET {"jid":"12345678","percent":101})").starts_with("-ERR percent: "));
}

class FaktoryBatch : public faktory_words {
 protected:
  static std::string in_batch(const std::string& jid, const std::string& bid) {
    return push_line(jid, R"("custom":{"bid":")" + bid + "\"}");
  }
  static std::string callback(const std::string& kind) {
    return R"({"jobtype":")" + kind + R"(","args":[7],"queue":"callbacks"})";
  }
};

TEST_F(FaktoryBatch, ItsCallbacksRunWhenAllItsJobsAreDone) {
  auto& c = client();
  const std::string bid = c.ask(R"(BATCH NEW {"description":"all docs","success":)" +
                                callback("Done") + R"(,"complete":)" + callback("Over") + "}");
  EXPECT_EQ(bid.substr(0, 2), "b-");
  EXPECT_EQ(bid.size(), 10U);
  EXPECT_EQ(c.ask(in_batch("11111111", bid)), "+OK");
  EXPECT_EQ(c.ask(in_batch("22222222", bid)), "+OK");
  const std::string status = c.ask("BATCH STATUS " + bid);
  EXPECT_EQ(status, R"({"bid":")" + bid +
                        R"(","total":2,"pending":2,"failed":0,)"
                        R"("created_at":"2026-01-01T00:00:00.000Z","description":"all docs",)"
                        R"("parent_bid":"","complete_st":"","success_st":""})");
  (void)c.ask("FETCH");
  (void)c.ask("FETCH");
  EXPECT_EQ(c.ask(R"(ACK {"jid":"11111111"})"), "+OK");
  EXPECT_EQ(c.ask(R"(ACK {"jid":"22222222"})"), "+OK");
  settle();
  EXPECT_EQ(counts("callbacks").ready, 0U);  // it may still grow
  EXPECT_EQ(c.ask("BATCH COMMIT " + bid), "+OK");
  settle();
  EXPECT_EQ(counts("callbacks").ready, 2U);
  EXPECT_EQ(member(c.ask("BATCH STATUS " + bid), "success_st"), "\"1\"");
  const std::string job = c.ask("FETCH callbacks");
  EXPECT_EQ(member(job, "args"), "[7]");
  EXPECT_EQ(member(job, "jobtype"), "\"Over\"") << "complete comes first";
  EXPECT_EQ(c.ask(R"(ACK {"jid":)" + jid_in(job) + "}"), "+OK");
  EXPECT_EQ(member(c.ask("BATCH STATUS " + bid), "complete_st"), "\"2\"");
  EXPECT_EQ(member(c.ask("BATCH STATUS " + bid), "success_st"), "\"1\"");
  const std::string next = c.ask("FETCH callbacks");
  EXPECT_EQ(member(next, "jobtype"), "\"Done\"");
  EXPECT_EQ(c.ask(R"(ACK {"jid":)" + jid_in(next) + "}"), "+OK");
  EXPECT_EQ(member(c.ask("BATCH STATUS " + bid), "success_st"), "\"2\"");
}

TEST_F(FaktoryBatch, ItsCallbacksHaveItsBid) {
  auto& c = client();
  const auto custom_of_called = [&](const std::string& custom) {
    const std::string bid =
        c.ask(R"(BATCH NEW {"success":{"jobtype":"t","args":[],"reserve_for":60,)" + custom +
              R"("queue":"callbacks"}})");
    EXPECT_EQ(c.ask("BATCH COMMIT " + bid), "+OK");
    settle();
    const std::string job = c.ask("FETCH callbacks");
    EXPECT_EQ(member(job, "reserve_for"), "60");
    EXPECT_EQ(c.ask(R"(ACK {"jid":)" + jid_in(job) + "}"), "+OK");
    std::string got = member(job, "custom");
    if (const auto at = got.find(bid); at != std::string::npos) got.replace(at, bid.size(), "BID");
    return got;
  };
  EXPECT_EQ(custom_of_called(""), R"({"_bid":"BID"})");
  EXPECT_EQ(custom_of_called(R"("custom":{ },)"), R"({ "_bid":"BID"})");
  EXPECT_EQ(custom_of_called(R"("custom":{"locale":"de","x":{}},)"),
            R"({"locale":"de","x":{},"_bid":"BID"})");
  EXPECT_EQ(custom_of_called(R"("custom":{"_bid":"b-1"},)"), R"({"_bid":"b-1","_bid":"BID"})");
}

TEST_F(FaktoryBatch, ABatchWhoseCallbackIsRefusedLeavesNothingBehind) {
  configure({.capacity_jobs = 1, .when_full = overflow::reject}, "callbacks");
  auto& c = client();
  EXPECT_TRUE(c.ask(R"(BATCH NEW {"success":)" + callback("Done") + R"(,"complete":)" +
                    callback("Over") + "}")
                  .starts_with("-ERR "));
  settle();
  EXPECT_EQ(counts("callbacks").unfinished(), 0U);
  EXPECT_TRUE(list_all({}).empty());
}

TEST_F(FaktoryBatch, ABatchExistsWithBothCallbacksOrNotAtAll) {
  auto& c = client();
  settle();
  const std::size_t before = drive.adds().size();
  std::size_t commits = 0;
  drive.fails_when([&](const sluice::jobs::transaction& b) -> std::optional<error> {
    if (b.changes.empty() || ++commits == 1) return std::nullopt;
    return error{error_code::io_error, "made to fail after the first"};
  });
  const std::string bid = c.ask(R"(BATCH NEW {"success":)" + callback("Done") + R"(,"complete":)" +
                                callback("Over") + "}");
  EXPECT_EQ(bid.substr(0, 2), "b-") << bid;
  drive.works();
  const auto adds = drive.adds();
  EXPECT_EQ(std::vector(adds.begin() + static_cast<std::ptrdiff_t>(before), adds.end()),
            std::vector<std::size_t>{2});
  crash();
  EXPECT_EQ(counts("callbacks").held, 2U);
}

TEST_F(FaktoryBatch, AFailurePreventsTheSuccessCallback) {
  auto& c = client();
  const std::string bid = c.ask(R"(BATCH NEW {"success":)" + callback("Done") + R"(,"complete":)" +
                                callback("Over") + "}");
  EXPECT_EQ(c.ask(push_line("11111111", R"("retry":-1,"custom":{"bid":")" + bid + "\"}")), "+OK");
  EXPECT_EQ(c.ask("BATCH COMMIT " + bid), "+OK");
  (void)c.ask("FETCH");
  EXPECT_EQ(c.ask(R"(FAIL {"jid":"11111111"})"), "+OK");
  settle();
  EXPECT_EQ(member(c.ask("FETCH callbacks"), "jobtype"), "\"Over\"");
  EXPECT_EQ(counts("callbacks").ready, 0U);
  EXPECT_EQ(member(c.ask("BATCH STATUS " + bid), "failed"), "1");
}

TEST_F(FaktoryBatch, AnEmptyBatchRunsItsCallbacksAtOnce) {
  auto& c = client();
  const std::string bid = c.ask(R"(BATCH NEW {"success":)" + callback("Done") + "}");
  EXPECT_EQ(c.ask("BATCH COMMIT " + bid), "+OK");
  settle();
  EXPECT_EQ(counts("callbacks").ready, 1U);
}

TEST_F(FaktoryBatch, ItsJobsMayReopenIt) {
  auto& c = client();
  const std::string bid = c.ask(R"(BATCH NEW {"success":)" + callback("Done") + "}");
  EXPECT_EQ(c.ask(in_batch("11111111", bid)), "+OK");
  EXPECT_EQ(c.ask("BATCH COMMIT " + bid), "+OK");
  EXPECT_EQ(jid_in(c.ask("FETCH")), "\"11111111\"");
  EXPECT_EQ(c.ask("BATCH OPEN " + bid), bid);
  EXPECT_EQ(c.ask(in_batch("22222222", bid)), "+OK");
  EXPECT_EQ(c.ask("BATCH COMMIT " + bid), "+OK");
  EXPECT_EQ(c.ask(R"(ACK {"jid":"11111111"})"), "+OK");
  settle();
  EXPECT_EQ(counts("callbacks").ready, 0U);
  (void)c.ask("FETCH");
  EXPECT_EQ(c.ask(R"(ACK {"jid":"22222222"})"), "+OK");
  settle();
  EXPECT_EQ(counts("callbacks").ready, 1U);
  EXPECT_EQ(c.ask("BATCH OPEN " + bid), "-ERR batch " + bid + " has ended");
  EXPECT_TRUE(c.ask(in_batch("33333333", bid)).starts_with("-ERR "));
}

TEST_F(FaktoryBatch, AParentEndsAfterTheCallbacksOfItsChild) {
  auto& c = client();
  const std::string parent = c.ask(R"(BATCH NEW {"success":)" + callback("Parent") + "}");
  const std::string child =
      c.ask(R"(BATCH NEW {"parent_bid":")" + parent + R"(","success":)" + callback("Child") + "}");
  EXPECT_EQ(member(c.ask("BATCH STATUS " + child), "parent_bid"), "\"" + parent + "\"");
  EXPECT_EQ(c.ask(in_batch("11111111", child)), "+OK");
  EXPECT_EQ(c.ask("BATCH COMMIT " + child), "+OK");
  EXPECT_EQ(c.ask("BATCH COMMIT " + parent), "+OK");
  (void)c.ask("FETCH");
  EXPECT_EQ(c.ask(R"(ACK {"jid":"11111111"})"), "+OK");
  settle();
  const std::string job = c.ask("FETCH callbacks");
  EXPECT_EQ(member(job, "jobtype"), "\"Child\"");
  EXPECT_EQ(counts("callbacks").ready, 0U);
  EXPECT_EQ(c.ask(R"(ACK {"jid":)" + jid_in(job) + "}"), "+OK");
  settle();
  EXPECT_EQ(member(c.ask("FETCH callbacks"), "jobtype"), "\"Parent\"");
}

TEST_F(FaktoryBatch, AnInvalidCommandNamesTheExpectedArguments) {
  auto& c = client();
  EXPECT_EQ(c.ask("BATCH"), "-ERR expected BATCH NEW, BATCH OPEN, BATCH COMMIT or BATCH STATUS");
  EXPECT_EQ(c.ask("BATCH NEW {}"), R"(-ERR a batch needs a "success" or a "complete" job)");
  EXPECT_EQ(c.ask(R"(BATCH NEW {"success":{"args":[]}})"),
            R"(-ERR success: the field "jobtype" is missing)");
  EXPECT_EQ(c.ask(R"(BATCH NEW {"parent_bid":"x","success":)" + callback("A") + "}"),
            "-ERR parent_bid: no such batch x");
  EXPECT_TRUE(c.ask(R"(BATCH NEW {"parent_bid":"b-00000099","success":)" + callback("A") + "}")
                  .starts_with("-ERR "));
  for (const std::string action : {"OPEN", "COMMIT", "STATUS"}) {
    EXPECT_EQ(c.ask("BATCH " + action + " nonsense"), "-ERR No such batch nonsense");
    EXPECT_TRUE(c.ask("BATCH " + action + " b-00000099").starts_with("-ERR ")) << action;
  }
  EXPECT_TRUE(c.ask(in_batch("11111111", "b-00000099")).starts_with("-ERR "));
}

}  // namespace
}  // namespace sluice::jobs::testing::faktory_track_test
