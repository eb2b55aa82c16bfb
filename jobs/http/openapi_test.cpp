// Compares the OpenAPI document with the routes and the codecs.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/src.hpp>
#include <map>
#include <set>

#include "jobs/http/detail/openapi.hpp"
#include "jobs/http/detail/router.hpp"
#include "jobs/http/testing/http_fixture.hpp"

namespace sluice::jobs::openapi_test {
namespace {

using namespace std::chrono_literals;
namespace bj = boost::json;
using names = std::set<std::string>;

const bj::object& document() {
  static const bj::value parsed = bj::parse(std::string(http::openapi_text()));
  return parsed.as_object();
}
const bj::object& schemas() {
  return document().at("components").as_object().at("schemas").as_object();
}

std::string text_of(const bj::value& v) {
  return std::string(v.as_string());
}

// Resolves a $ref; returns other values unchanged.
const bj::value& resolved(const bj::value& v) {
  if (!v.is_object() || !v.as_object().contains("$ref")) return v;
  const std::string path = text_of(v.as_object().at("$ref"));
  EXPECT_TRUE(path.starts_with("#/")) << path;
  const bj::value* at = nullptr;
  const bj::object* in = &document();
  std::size_t from = 2;
  while (from <= path.size()) {
    const std::size_t end = std::min(path.size(), path.find('/', from));
    at = in->if_contains(path.substr(from, end - from));
    if (at == nullptr) {
      ADD_FAILURE() << path << " does not exist";
      static const bj::value nothing = bj::object{};
      return nothing;
    }
    if (at->is_object()) in = &at->as_object();
    from = end + 1;
  }
  return *at;
}

template <class Visit>
void walk(const bj::value& v, Visit visit) {
  visit(v);
  if (v.is_object()) {
    for (const auto& member : v.as_object()) walk(member.value(), visit);
  } else if (v.is_array()) {
    for (const bj::value& element : v.as_array()) walk(element, visit);
  }
}

// Returns the properties of a schema, including those of its parts.
void gather(const bj::value& schema, names& properties, names& required) {
  const bj::object& o = resolved(schema).as_object();
  if (const auto* all = o.if_contains("allOf")) {
    for (const bj::value& part : all->as_array()) gather(part, properties, required);
  }
  if (const auto* has = o.if_contains("properties")) {
    for (const auto& p : has->as_object()) properties.insert(std::string(p.key()));
  }
  if (const auto* must = o.if_contains("required")) {
    for (const bj::value& p : must->as_array()) required.insert(text_of(p));
  }
}
names properties_of(const std::string& schema) {
  names properties;
  names required;
  gather(schemas().at(schema), properties, required);
  return properties;
}
names required_of(const std::string& schema) {
  names properties;
  names required;
  gather(schemas().at(schema), properties, required);
  return required;
}

std::string method_word(http::method m) {
  std::string word(http::to_string(m));
  std::ranges::transform(word, word.begin(),
                         [](char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

const bj::object* operation(const http::route& r) {
  const auto* path = document().at("paths").as_object().if_contains(r.path);
  const auto* found = path ? path->as_object().if_contains(method_word(r.method)) : nullptr;
  return found ? &found->as_object() : nullptr;
}

// ---- the document

TEST(OpenApi, HasEveryRouteAndNoOther) {
  std::size_t operations = 0;
  for (const auto& path : document().at("paths").as_object()) {
    operations += path.value().as_object().size();
  }
  EXPECT_EQ(operations, http::routes().size());
  for (const http::route& r : http::routes()) {
    EXPECT_NE(operation(r), nullptr) << http::to_string(r.method) << " " << r.path;
  }
}

TEST(OpenApi, IsWellFormed) {
  EXPECT_TRUE(text_of(document().at("openapi")).starts_with("3.0."));
  EXPECT_FALSE(text_of(document().at("info").as_object().at("title")).empty());
  names ids;
  names tags;
  for (const bj::value& t : document().at("tags").as_array()) {
    tags.insert(text_of(t.as_object().at("name")));
  }
  for (const http::route& r : http::routes()) {
    SCOPED_TRACE(r.path);
    const bj::object* const op = operation(r);
    ASSERT_NE(op, nullptr);
    EXPECT_TRUE(ids.insert(text_of(op->at("operationId"))).second);
    EXPECT_FALSE(text_of(op->at("summary")).empty());
    for (const bj::value& t : op->at("tags").as_array()) EXPECT_TRUE(tags.contains(text_of(t)));
    EXPECT_EQ(op->contains("requestBody"), r.body != http::body_rule::none);
    names in_path;
    if (const auto* parameters = op->if_contains("parameters")) {
      for (const bj::value& p : parameters->as_array()) {
        const bj::object& o = p.as_object();
        EXPECT_TRUE(o.contains("schema"));
        if (text_of(o.at("in")) != "path") continue;
        EXPECT_TRUE(o.at("required").as_bool());
        in_path.insert("{" + text_of(o.at("name")) + "}");
      }
    }
    for (const std::string variable : {"{id}", "{name}", "{wid}"}) {
      EXPECT_EQ(in_path.contains(variable), r.path.find(variable) != std::string_view::npos);
    }
    const bj::object& responses = op->at("responses").as_object();
    EXPECT_TRUE(responses.contains("default"));
    EXPECT_GE(responses.size(), 2U);
    for (const auto& response : responses) {
      EXPECT_TRUE(resolved(response.value()).as_object().contains("description"));
    }
  }
}

TEST(OpenApi, ResolvesEveryReferenceAndUsesEverySchema) {
  names used;
  walk(bj::value(document()), [&](const bj::value& v) {
    if (!v.is_object() || !v.as_object().contains("$ref")) return;
    EXPECT_TRUE(resolved(v).is_object());
    used.insert(text_of(v.as_object().at("$ref")));
  });
  for (const auto& schema : schemas()) {
    EXPECT_TRUE(used.contains("#/components/schemas/" + std::string(schema.key())))
        << schema.key() << " is unused";
  }
}

TEST(OpenApi, NamesTheParametersThatTheRoutesTake) {
  // From the routes themselves: the error for an unknown parameter lists the known ones.
  class asking : public testing::HttpTest {
   public:
    void TestBody() override {
      start();
      for (const http::route& r : http::routes()) {
        if (r.path == "/metrics" || r.path == "/healthz" || r.path == "/readyz" || r.path == "/") {
          continue;
        }
        SCOPED_TRACE(r.path);
        std::string target(r.path);
        if (const auto at = target.find("{id}"); at != std::string::npos)
          target.replace(at, 4, "1");
        if (const auto at = target.find("{name}"); at != std::string::npos) {
          target.replace(at, 6, "x");
        }
        if (const auto at = target.find("{wid}"); at != std::string::npos)
          target.replace(at, 5, "x");
        const std::string body = r.body == http::body_rule::none ? "" : "{}";
        const auto r400 = ask(http::to_string(r.method), target + "?no_such=1", body);
        const std::string why = problem_of(r400, 400, error_code::invalid);
        names listed;
        if (const auto at = why.find("known are "); at != std::string::npos) {
          std::string_view list = std::string_view(why).substr(at + 10);
          while (!list.empty()) {
            const std::size_t end = std::min(list.size(), list.find(", "));
            listed.insert(std::string(list.substr(0, end)));
            list.remove_prefix(std::min(list.size(), end + 2));
          }
        }
        names documented;
        if (const auto* parameters = operation(r)->if_contains("parameters")) {
          for (const bj::value& p : parameters->as_array()) {
            if (text_of(p.as_object().at("in")) == "query") {
              documented.insert(text_of(p.as_object().at("name")));
            }
          }
        }
        EXPECT_EQ(listed, documented) << why;
      }
    }
    void run() {
      TestBody();
      TearDown();
    }
  };
  asking().run();
}

// ---- schemas and codecs

job_spec full_spec() {
  return {.queue = "q",
          .kind = "k",
          .args = {"1"},
          .priority = 1,
          .run_at = {5},
          .retry = {.attempts_max = 3, .first = 1s, .factor = 1.5, .longest = 1min, .jitter = 0.1},
          .lease_for = 1s,
          .time_limit = 1s,
          .unique = {.key = "u", .until = unique_until::elapsed, .lasts = 1h},
          .metadata = "{}",
          .keep_for = 1s,
          .key = "a",
          .batch = 7,
          .after = {{.on = 5}},
          .step = "s",
          .webhook = "https://a.example/"};
}

job full_job() {
  job j;
  j.id = 1;
  j.spec = full_spec();
  j.created_at = j.due_at = j.ended_at = {5};
  j.errors = {{1, {5}, "t", "m", "b"}};
  j.result = payload{"1"};
  j.blockers = 1;
  j.progress = progress{1, "x"};
  return j;
}

bj::object parsed(const std::string& text) {
  return bj::parse(text).as_object();
}

// Checks that a value and its schema have the same properties; `more` are properties that this
// value cannot have together with the others.
void expect_same_properties(const std::string& schema, const bj::object& full,
                            const names& more = {}) {
  SCOPED_TRACE(schema);
  names written = more;
  for (const auto& member : full) written.insert(std::string(member.key()));
  EXPECT_EQ(properties_of(schema), written);
}

// The same for a request; also checks that the reader requires the required properties, and accepts
// all properties.
template <class T>
void expect_request(const std::string& schema, const T& value, const names& more = {}) {
  SCOPED_TRACE(schema);
  const std::string text = json::to_json(value);
  const bj::object full = parsed(text);
  expect_same_properties(schema, full, more);
  EXPECT_TRUE(json::read<T>(text)) << text;
  names required;
  for (const auto& member : full) {
    bj::object without = full;
    without.erase(member.key());
    if (!json::read<T>(bj::serialize(without))) required.insert(std::string(member.key()));
  }
  EXPECT_EQ(required_of(schema), required);
  for (const std::string& name : more) {
    const auto read = json::read<T>("{\"" + name + "\":[]}");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().message.find("unknown field"), std::string::npos) << name;
  }
  const bj::object& o = schemas().at(schema).as_object();
  EXPECT_TRUE(o.contains("additionalProperties") && !o.at("additionalProperties").as_bool());
}

// For a response: the schema must require the properties that a client needs.
template <class T>
void expect_answer(const std::string& schema, const T& value, const names& more = {}) {
  SCOPED_TRACE(schema);
  const std::string text = json::to_json(value);
  const bj::object full = parsed(text);
  expect_same_properties(schema, full, more);
  names required;
  for (const auto& member : full) {
    bj::object without = full;
    without.erase(member.key());
    if (!json::read<T>(bj::serialize(without))) required.insert(std::string(member.key()));
  }
  for (const std::string& name : required) {
    EXPECT_TRUE(required_of(schema).contains(name)) << name;
  }
}

TEST(OpenApi, DescribesRequests) {
  expect_request("JobSpec", full_spec(), {"args_base64", "delay"});
  json::lease_call lease;
  lease.request.worker = "w";
  lease.request.lease_for = 1s;
  lease.request.pick = lease_request::order::strict;
  expect_request("LeaseCall", lease);
  expect_request("ExtendCall", json::extend_call{1, 1s, progress{1, "x"}});
  expect_request("ProgressCall", json::progress_call{1, {1, "x"}});
  expect_request("LogCall", json::log_call{1, {"x"}});
  expect_request("AckCall", json::ack_call{1, payload{"1"}}, {"result_base64"});
  expect_request("AcksCall", json::acks_call{{{{1, 2}, {}}}});
  expect_request("FailCall", json::fail_call{1, {"t", "m", "b", 1s, true}});
  expect_request("ReleaseCall", json::release_call{1, {1s, 3}});
  const queue_patch patch{.capacity_jobs = 1,
                          .capacity_bytes = 1,
                          .when_full = overflow::block,
                          .paused = true,
                          .lease_for = 1s,
                          .keep_done = 1s,
                          .keep_results = 1s,
                          .keep_dead = 1s,
                          .rate = 1,
                          .rate_burst = 1,
                          .concurrency = 1,
                          .weight = 1,
                          .key_concurrency = 1,
                          .key_rate = 1,
                          .key_burst = 1,
                          .deliver_url = "https://a.example/",
                          .deliver_concurrency = 1,
                          .deliver_timeout = 1s};
  expect_request("QueuePatch", patch);
  batch_spec batch;
  batch.name = "n";
  batch.open = true;
  batch.jobs = {{.kind = "k"}};
  batch.on_success = batch.on_end = batch.on_failure = job_spec{.kind = "k"};
  expect_request("BatchSpec", batch);
  expect_request("CronSpec", cron_spec{.name = "n", .schedule = "@daily", .job = {.kind = "k"}});
  expect_request("CronPatch", cron_patch{.paused = true});
  expect_request("CronCheck", json::cron_check{"@daily", "UTC"});
}

TEST(OpenApi, DescribesResponses) {
  expect_answer("Job", full_job(), {"args_base64", "result_base64"});
  expect_answer("JobPage", job_page{{full_job()}, 5});
  const bj::object leased = parsed(
      json::to_json(std::vector<leased_job>{{std::make_shared<job>(full_job()), 5, 1, {9}}}));
  expect_same_properties("LeasedJob", leased.at("jobs").as_array().at(0).as_object(),
                         {"args_base64", "result_base64"});
  expect_answer("Extension", extension{{5}, true});
  expect_answer("FailReceipt", fail_receipt{job_state::retrying, {5}});
  queue_info queue{"q", {}, {}};
  queue.options.deliver.url = "https://a.example/";
  expect_answer("Queue", queue);
  expect_same_properties("QueueCounts", parsed(json::to_json(queue)).at("counts").as_object());
  expect_same_properties("Delivery", parsed(json::to_json(queue)).at("deliver").as_object());
  expect_answer("QueueList", std::vector{queue});
  expect_answer("PurgeReceipt", json::purge_receipt{1});
  expect_answer(
      "Batch", batch_info{.id = 1, .name = "n", .created_at = {5}, .ended_at = {5}, .due_at = {5}});
  expect_answer("BatchPage", batch_page{{batch_info{.id = 1}}, 5});
  expect_answer("BatchReceipt", batch_receipt{1, {2}, 3, 4, 5});
  expect_answer("CancelReceipt", json::cancel_receipt{1});
  expect_answer("RetryReceipt", json::retry_receipt{1});
  cron_info cron;
  cron.entry = {.spec = {.name = "n", .schedule = "@daily", .job = {.kind = "k"}},
                .next_at = {5},
                .last_at = {5},
                .last_job = 1};
  expect_answer("Cron", cron);
  expect_answer("CronList", std::vector{cron});
  expect_answer("CronTimes", json::cron_times{"d", {{5}}});
  expect_answer("LogPage", log_page{{{1, 1, {5}, "x"}}, 5});
  const job_event e{.number = 1,
                    .at = {5},
                    .type = event_type::progress,
                    .job = 1,
                    .queue = "q",
                    .attempt = 1,
                    .batch = 1,
                    .percent = 1,
                    .text = "x"};
  expect_answer("Event", e);
  expect_answer("EventPage", event_page{{e}, 1, 2, true});
  const faktory_worker worker{.wid = "w",
                              .hostname = "h",
                              .pid = 1,
                              .labels = {"l"},
                              .state = worker_state::quiet,
                              .rss_kb = 1,
                              .since = {5},
                              .last_beat = {5},
                              .running = 1};
  expect_answer("FaktoryWorker", worker);
  expect_answer("FaktoryWorkerPage", faktory_worker_page{{worker}, "w"});
  expect_answer("Stats", engine_stats{});
  expect_answer("Problem", json::problem{404, "t", {error_code::not_found, "m", 5}});
}

TEST(OpenApi, DescribesTheParts) {
  const bj::object spec = parsed(json::to_json(full_spec()));
  expect_same_properties("RetryPolicy", spec.at("retry").as_object());
  expect_same_properties("UniqueKey", spec.at("unique").as_object());
  const bj::object object = parsed(json::to_json(full_job()));
  expect_same_properties("AttemptError", object.at("errors").as_array().at(0).as_object());
  expect_same_properties("Progress", object.at("progress").as_object());
  const bj::object lines = parsed(json::to_json(log_page{{{1, 1, {5}, "x"}}, 5}));
  expect_same_properties("LogLine", lines.at("lines").as_array().at(0).as_object());
}

names words_of(const std::string& schema) {
  names words;
  for (const bj::value& v : schemas().at(schema).as_object().at("enum").as_array()) {
    words.insert(text_of(v));
  }
  return words;
}

template <class Enum>
names all_words(Enum last) {
  names words;
  for (unsigned i = 0; i <= static_cast<unsigned>(last); ++i) {
    words.insert(std::string(to_string(static_cast<Enum>(i))));
  }
  return words;
}

TEST(OpenApi, ListsEveryWord) {
  EXPECT_EQ(words_of("JobState"), all_words(job_state::cancelled));
  EXPECT_EQ(words_of("EventType"), all_words(event_type::cron_ran));
  EXPECT_EQ(words_of("BatchState"), all_words(batch_state::failed));
  EXPECT_EQ(words_of("WorkerState"), all_words(worker_state::terminate));
  EXPECT_EQ(words_of("When"), all_words(after_when::failure));
  names codes;
  for (unsigned i = 0; i < 64; ++i) {
    const std::string word(to_string(static_cast<error_code>(i)));
    if (json::error_code_from(word)) codes.insert(word);
  }
  EXPECT_EQ(words_of("ErrorCode"), codes);
}

class OpenApiServed : public testing::HttpTest {};

TEST_F(OpenApiServed, IsTheDocumentOfTheReference) {
  start();
  const auto r = ask("GET", "/v1/openapi.json");
  EXPECT_EQ(r.status, 200);
  EXPECT_EQ(r.header("content-type"), "application/json");
  EXPECT_EQ(r.body, http::openapi_text());
}

// ---- what other tests have seen

// Statuses of every route: replies of the server before or instead of the handler.
bool is_of_the_server(int status) {
  static constexpr std::array all = {0,   401, 403, 405, 408, 411, 413, 414,
                                     415, 417, 421, 431, 500, 503, 505};
  return std::ranges::find(all, status) != all.end();
}

class answers_are_documented : public ::testing::Environment {
 public:
  void TearDown() override {
    const auto seen = testing::answers_seen().lock();
    for (const testing::answer_seen& a : *seen) {
      const std::string_view path = std::string_view(a.target).substr(0, a.target.find('?'));
      const http::route* const r = find(a.method, path);
      if (r == nullptr || operation(*r) == nullptr) continue;
      const bj::object& responses = operation(*r)->at("responses").as_object();
      const std::string status = std::to_string(a.status);
      EXPECT_TRUE(responses.contains(status) || is_of_the_server(a.status))
          << a.method << " " << a.target << " was answered " << status
          << ", which the OpenAPI document does not have";
    }
  }

 private:
  static const http::route* find(const std::string& method, std::string_view path) {
    for (const http::route& r : http::routes()) {
      if (http::to_string(r.method) == method ||
          (method == "HEAD" && r.method == http::method::get)) {
        const auto found = http::find_route(r.method, path);
        if (found.target != nullptr) return found.target;
      }
    }
    return nullptr;
  }
};

const auto* const checked_at_the_end =
    ::testing::AddGlobalTestEnvironment(new answers_are_documented);

}  // namespace
}  // namespace sluice::jobs::openapi_test
