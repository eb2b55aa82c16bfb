#pragma once

// The table of all settings of a server: name in the file, flag, variable and allowed values. The
// file, the environment, the command line, `--check-config` and the reference page all use it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "jobs/server/server_options.hpp"

namespace sluice::jobs {

struct config_key {
  enum class kind : std::uint8_t { text, path, flag, count, size, duration, list, custom };
  // A setting with its own parser.
  struct custom_value {
    void_result (*set)(server_options& o, std::string_view text);
    std::string (*get)(const server_options& o);
  };
  using member =
      std::variant<std::string& (*)(server_options&), bool& (*)(server_options&),
                   std::uint64_t& (*)(server_options&), milliseconds& (*)(server_options&),
                   std::vector<std::string>& (*)(server_options&), custom_value>;

  std::string_view name;     // "http.idle_time"
  std::string_view flag;     // "--idle-time"; empty: none
  std::string_view summary;  // for people
  kind type = kind::text;
  member of;
  std::uint64_t least = 0;  // for count, size and duration (in milliseconds)
  std::uint64_t most = 0;
  std::string_view words{};  // for custom: "full|interval|off"
  bool is_secret = false;    // never shown
  // Checks a text or each item of a list. The error contains no secret.
  void_result (*check)(std::string_view text) = nullptr;

  std::string variable() const;  // "SLUICE_HTTP_IDLE_TIME"
  std::string range() const;     // "1ms to 1h", or empty
};

std::span<const config_key> config_keys();
const config_key* find_config_key(std::string_view name);

// Sets a setting from text. The error continues the name of the setting: " must be from 1KB to
// 1GB", ": expected ...".
void_result set_from_text(server_options& o, const config_key& key, std::string_view text);
// Sets a list from its items. Errors as above.
void_result set_items(server_options& o, const config_key& key, std::vector<std::string> items);
// Returns the value as text; a secret as ***.
std::string text_of(const server_options& o, const config_key& key);
// Checks that the value is in the key's range. Errors as above.
void_result check_range(const server_options& o, const config_key& key);

}  // namespace sluice::jobs
