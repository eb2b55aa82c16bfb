#include "jobs/store/sqlite/detail/errors_json.hpp"

#include <cstdint>
#include <limits>

#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"

namespace sluice::jobs::detail {
namespace {

using json::json_reader;
using json::json_writer;

// True if the text is unchanged after it is written as JSON and read again.
bool survives(std::string_view text) {
  std::string written;
  json_writer(written).value(text);
  json_reader back(written);
  return back.string() == text && back.finish().has_value();
}

attempt_error read_error(json_reader& in) {
  attempt_error e;
  in.begin_object();
  for (std::string_view next; in.next_key(next);) {
    const std::string key(next);
    if (key == "attempt") {
      e.attempt =
          static_cast<std::uint32_t>(in.natural(0, std::numeric_limits<std::uint32_t>::max()));
    } else if (key == "at") {
      e.at.ms = in.whole(std::numeric_limits<std::int64_t>::min(),
                         std::numeric_limits<std::int64_t>::max());
    } else if (key == "type") {
      e.type = in.string();
    } else if (key == "type_base64") {
      e.type = in.base64();
    } else if (key == "message") {
      e.message = in.string();
    } else if (key == "message_base64") {
      e.message = in.base64();
    } else if (key == "backtrace") {
      e.backtrace = in.string();
    } else if (key == "backtrace_base64") {
      e.backtrace = in.base64();
    } else {
      in.skip();
    }
  }
  return e;
}

}  // namespace

void write_text(json_writer& out, std::string_view name, std::string_view name_base64,
                std::string_view text) {
  if (text.empty()) return;
  if (survives(text)) {
    out.key(name).value(text);
  } else {
    out.key(name_base64).base64(text);
  }
}

std::string errors_to_json(const std::vector<attempt_error>& errors) {
  std::string text;
  json_writer out(text);
  out.begin_array();
  for (const attempt_error& e : errors) {
    out.begin_object().key("attempt").value(e.attempt).key("at").value(e.at.ms);
    write_text(out, "type", "type_base64", e.type);
    write_text(out, "message", "message_base64", e.message);
    write_text(out, "backtrace", "backtrace_base64", e.backtrace);
    out.end_object();
  }
  out.end_array();
  return text;
}

std::vector<attempt_error> errors_from_json(std::string_view text) {
  std::vector<attempt_error> errors;
  json_reader in(text);
  for (in.begin_array(); in.next_element();) errors.push_back(read_error(in));
  if (auto read = in.finish(); !read) {
    attempt_error unreadable;
    unreadable.type = "unreadable";
    unreadable.message = "the errors of this job cannot be read: " + read.error().message;
    return {unreadable};
  }
  return errors;
}

}  // namespace sluice::jobs::detail
