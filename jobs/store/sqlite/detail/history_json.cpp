#include "jobs/store/sqlite/detail/history_json.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/store/sqlite/detail/errors_json.hpp"

namespace sluice::jobs::detail {
namespace {

unix_time read_time(json::json_reader& in) {
  return {
      in.whole(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())};
}

attempt_record read_attempt(json::json_reader& in) {
  attempt_record a;
  in.begin_object();
  for (std::string_view next; in.next_key(next);) {
    const std::string key(next);
    if (key == "attempt") {
      a.attempt =
          static_cast<std::uint32_t>(in.natural(0, std::numeric_limits<std::uint32_t>::max()));
    } else if (key == "began") {
      a.began = read_time(in);
    } else if (key == "ended") {
      a.ended = read_time(in);
    } else if (key == "worker") {
      a.worker = in.string();
    } else if (key == "worker_base64") {
      a.worker = in.base64();
    } else if (key == "outcome") {
      a.outcome = attempt_outcome_from(in.string()).value_or(attempt_outcome::failed);
    } else {
      in.skip();
    }
  }
  return a;
}

}  // namespace

std::string history_to_json(const std::vector<attempt_record>& history) {
  std::string text;
  json::json_writer out(text);
  out.begin_array();
  for (const attempt_record& a : history) {
    out.begin_object().key("attempt").value(a.attempt);
    out.key("began").value(a.began.ms).key("ended").value(a.ended.ms);
    write_text(out, "worker", "worker_base64", a.worker);
    out.key("outcome").value(to_string(a.outcome)).end_object();
  }
  out.end_array();
  return text;
}

std::vector<attempt_record> history_from_json(std::string_view text) {
  std::vector<attempt_record> history;
  json::json_reader in(text);
  for (in.begin_array(); in.next_element();) history.push_back(read_attempt(in));
  if (!in.finish()) return {};
  return history;
}

}  // namespace sluice::jobs::detail
