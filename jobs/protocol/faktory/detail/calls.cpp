#include "jobs/protocol/faktory/detail/calls.hpp"

#include <array>
#include <limits>
#include <utility>

#include "jobs/json/json_reader.hpp"
#include "jobs/protocol/faktory/detail/faktory_job.hpp"
#include "jobs/protocol/faktory/detail/object_reader.hpp"

namespace sluice::jobs::faktory {
namespace {

using json::json_reader;

constexpr std::size_t words_max = 10'000;  // in one list of a call

template <class Call, class Read>
result<Call> read_call(std::string_view text, Read read_it) {
  json_reader in(text);
  Call call;
  read_it(in, call);
  if (auto read = in.finish(); !read) return std::move(read.error());
  return call;
}

error missing(std::string_view name) {
  return {error_code::invalid, "the field \"" + std::string(name) + "\" is missing"};
}

std::vector<std::string> read_words(json_reader& in) {
  std::vector<std::string> words;
  for (in.begin_array(); in.next_element();) {
    if (words.size() == words_max) {
      in.refuse("expected at most 10000 elements");
      break;
    }
    words.push_back(in.string());
  }
  return words;
}

// Reads a string, or the JSON text of any other value that a client sends in its place.
std::string read_loosely(json_reader& in) {
  return in.peek() == json_reader::kind::string ? in.string() : std::string(in.raw());
}

void read_filter(json_reader& in, mutate_call& into) {
  for (object_reader o(in); o.next();) {
    if (o.is("jobtype")) {
      into.jobtype = in.string();
    } else if (o.is("jids")) {
      into.jids = read_words(in);
    } else if (o.is("regexp") || o.is("pattern")) {
      into.pattern = in.string();
      constexpr std::size_t bytes_max = 256;
      if (into.pattern.size() > bytes_max) in.refuse("expected a pattern of at most 256 bytes");
    } else {
      in.skip();
    }
  }
}

template <class Value, std::size_t n>
std::optional<Value> one_of(std::string_view word,
                            const std::array<std::pair<std::string_view, Value>, n>& words) {
  for (const auto& [name, value] : words) {
    if (name == word) return value;
  }
  return std::nullopt;
}

constexpr std::array<std::pair<std::string_view, mutate_call::act>, 4> act_words = {{
    {"kill", mutate_call::act::kill},
    {"requeue", mutate_call::act::requeue},
    {"discard", mutate_call::act::discard},
    {"clear", mutate_call::act::clear},
}};
constexpr std::array<std::pair<std::string_view, job_state>, 3> target_words = {{
    {"retries", job_state::retrying},
    {"scheduled", job_state::scheduled},
    {"dead", job_state::dead},
}};

}  // namespace

result<hello_call> read_hello(std::string_view json) {
  return read_call<hello_call>(json, [](json_reader& in, hello_call& call) {
    for (object_reader o(in); o.next();) {
      if (o.is("v")) {
        call.version = in.whole(0, std::numeric_limits<std::int64_t>::max());
      } else if (o.is("hostname")) {
        call.hostname = in.string();
      } else if (o.is("wid")) {
        call.wid = in.string();
      } else if (o.is("pid")) {
        call.pid = in.whole(std::numeric_limits<std::int64_t>::min(),
                            std::numeric_limits<std::int64_t>::max());
      } else if (o.is("labels")) {
        call.labels = read_words(in);
      } else if (o.is("pwdhash")) {
        call.pwdhash = in.string();
      } else {
        in.skip();
      }
    }
  });
}

result<beat_call> read_beat(std::string_view json) {
  auto call = read_call<beat_call>(json, [](json_reader& in, beat_call& parsed) {
    for (object_reader o(in); o.next();) {
      if (o.is("wid")) {
        parsed.wid = in.string();
      } else if (o.is("current_state")) {
        parsed.current_state = in.string();
      } else if (o.is("rss_kb")) {
        parsed.rss_kb = in.natural();
      } else {
        in.skip();
      }
    }
  });
  if (call && call->wid.empty()) return missing("wid");
  return call;
}

result<std::string> read_jid(std::string_view json) {
  auto call = read_call<std::string>(json, [](json_reader& in, std::string& jid) {
    for (object_reader o(in); o.next();) {
      if (o.is("jid")) {
        jid = in.string();
      } else {
        in.skip();
      }
    }
  });
  if (call && call->empty()) return missing("jid");
  return call;
}

result<fail_call> read_fail(std::string_view json) {
  auto call = read_call<fail_call>(json, [](json_reader& in, fail_call& parsed) {
    for (object_reader o(in); o.next();) {
      if (o.is("jid")) {
        parsed.jid = in.string();
      } else if (o.is("errtype")) {
        parsed.errtype = read_loosely(in);
      } else if (o.is("message")) {
        parsed.message = read_loosely(in);
      } else if (o.is("backtrace") && in.peek() == json_reader::kind::array) {
        parsed.backtrace = read_words(in);
      } else if (o.is("backtrace")) {
        parsed.backtrace = {read_loosely(in)};
      } else {
        in.skip();
      }
    }
  });
  if (call && call->jid.empty()) return missing("jid");
  return call;
}

result<mutate_call> read_mutate(std::string_view json) {
  bool has_act = false, has_target = false;
  auto call = read_call<mutate_call>(json, [&](json_reader& in, mutate_call& parsed) {
    for (object_reader o(in); o.next();) {
      if (o.is("cmd")) {
        const auto act = one_of(in.word(), act_words);
        if (!act) in.refuse("expected \"kill\", \"requeue\", \"discard\" or \"clear\"");
        parsed.action = act.value_or(parsed.action);
        has_act = true;
      } else if (o.is("target")) {
        const auto target = one_of(in.word(), target_words);
        if (!target) in.refuse("expected \"retries\", \"scheduled\" or \"dead\"");
        parsed.target = target.value_or(parsed.target);
        has_target = true;
      } else if (o.is("filter")) {
        read_filter(in, parsed);
      } else {
        in.skip();
      }
    }
  });
  if (call && !has_act) return missing("cmd");
  if (call && !has_target) return missing("target");
  return call;
}

result<track_call> read_track(std::string_view json) {
  auto call = read_call<track_call>(json, [](json_reader& in, track_call& parsed) {
    for (object_reader o(in); o.next();) {
      if (o.is("jid")) {
        parsed.jid = in.string();
      } else if (o.is("percent")) {
        parsed.percent = in.number(0, 100);
      } else if (o.is("desc")) {
        parsed.desc = in.string();
      } else if (o.is("reserve_until")) {
        parsed.reserve_until = in.time();
      } else {
        in.skip();
      }
    }
  });
  if (call && call->jid.empty()) return missing("jid");
  return call;
}

result<batch_call> read_batch(std::string_view json, unix_time now) {
  std::string_view success, complete;
  auto call = read_call<batch_call>(json, [&](json_reader& in, batch_call& parsed) {
    for (object_reader o(in); o.next();) {
      if (o.is("description")) {
        parsed.description = in.string();
      } else if (o.is("parent_bid")) {
        parsed.parent_bid = in.string();
      } else if (o.is("success")) {
        success = in.raw_object();
      } else if (o.is("complete")) {
        complete = in.raw_object();
      } else {
        in.skip();
      }
    }
  });
  if (!call) return call;
  if (success.empty() && complete.empty()) {
    return error{error_code::invalid, "a batch needs a \"success\" or a \"complete\" job"};
  }
  const auto read_callback = [&](std::string_view name, std::string_view text,
                                 std::optional<job_spec>& into) -> void_result {
    if (text.empty()) return done{};
    auto job = read_job(text, {.now = now, .needs_jid = false});
    if (!job) return error{job.error().code, std::string(name) + ": " + job.error().message};
    into = std::move(job->spec);
    return done{};
  };
  if (auto read = read_callback("success", success, call->success); !read) return read.error();
  if (auto read = read_callback("complete", complete, call->complete); !read) return read.error();
  return call;
}

result<std::vector<std::string_view>> read_jobs(std::string_view json) {
  using jobs = std::vector<std::string_view>;
  return read_call<jobs>(json, [](json_reader& in, jobs& into) {
    for (in.begin_array(); in.next_element();) into.push_back(in.raw_object());
  });
}

}  // namespace sluice::jobs::faktory
