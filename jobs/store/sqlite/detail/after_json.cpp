#include "jobs/store/sqlite/detail/after_json.hpp"

#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/store/sqlite/detail/errors_json.hpp"

namespace sluice::jobs::detail {
namespace {

dependency read_dependency(json::json_reader& in) {
  dependency d;
  in.begin_object();
  for (std::string_view next; in.next_key(next);) {
    const std::string key(next);
    if (key == "on") {
      d.on = in.natural();
    } else if (key == "when") {
      d.when = after_when_from(in.word()).value_or(after_when::success);
    } else if (key == "step") {
      d.step = in.string();
    } else if (key == "step_base64") {
      d.step = in.base64();
    } else {
      in.skip();
    }
  }
  return d;
}

}  // namespace

std::string after_to_json(const std::vector<dependency>& after) {
  std::string text;
  json::json_writer out(text);
  out.begin_array();
  for (const dependency& d : after) {
    out.begin_object().key("on").value(d.on);
    if (d.when != after_when::success) out.key("when").value(to_string(d.when));
    write_text(out, "step", "step_base64", d.step);
    out.end_object();
  }
  out.end_array();
  return text;
}

std::vector<dependency> after_from_json(std::string_view text) {
  std::vector<dependency> after;
  json::json_reader in(text);
  for (in.begin_array(); in.next_element();) after.push_back(read_dependency(in));
  if (!in.finish()) after.clear();
  return after;
}

}  // namespace sluice::jobs::detail
