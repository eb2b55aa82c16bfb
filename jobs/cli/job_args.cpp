#include "jobs/cli/job_args.hpp"

#include <utility>

#include "jobs/json/codec.hpp"

namespace sluice::jobs::cli {

result<payload> read_args(const std::string& text, bool as_bytes, const console& io) {
  const auto read = [&]() -> result<std::string> {
    if (text == "-") return io.read_all(limits::args_bytes_max);
    if (text.starts_with('@')) return read_file(text.substr(1), limits::args_bytes_max);
    return text;
  };
  auto data = read();
  if (!data) return data.error();
  if (as_bytes) return payload{std::move(*data), content_type::bytes};
  if (text.empty()) return payload{};
  if (const auto is_json = json::check_json(*data); !is_json) {
    return error{error_code::invalid, "the args are not JSON: " + is_json.error().message +
                                          "; use --bytes for text that is not JSON"};
  }
  return payload{std::move(*data), content_type::json};
}

void_result check_metadata(const std::string& text) {
  if (text.empty()) return done{};
  const auto is_json = json::check_json(text);
  if (is_json) return done{};
  return error{error_code::invalid, "--metadata is not JSON: " + is_json.error().message};
}

}  // namespace sluice::jobs::cli
