#pragma once

// Every setting of a server, once: its name in the file, its flag, its variable, what it may be.
// The file, the environment, the command line, `--check-config` and the document all follow this
// table.

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
  // A value that is more than one of these.
  struct custom_value {
    void_result (*set)(server_options& o, std::string_view text);
    std::string (*get)(const server_options& o);
  };
  using member =
      std::variant<std::string& (*)(server_options&), bool& (*)(server_options&),
                   std::uint64_t& (*)(server_options&), milliseconds& (*)(server_options&),
                   std::vector<std::string>& (*)(server_options&), custom_value>;

  std::string_view name;   // "http.idle_time"
  std::string_view flag;   // "--idle-time"; empty: none
  std::string_view about;  // for people
  kind what = kind::text;
  member of;
  std::uint64_t least = 0;  // of count, size and duration (in milliseconds)
  std::uint64_t most = 0;
  std::string_view words{};  // of custom: "full|interval|off"
  bool is_secret = false;    // never shown
  // Of a text, or of each item of a list: whether it can be used. Shows no secret.
  void_result (*check)(std::string_view text) = nullptr;

  std::string variable() const;  // "SLUICE_HTTP_IDLE_TIME"
  std::string range() const;     // "1ms to 1h", or empty
};

std::span<const config_key> config_keys();
const config_key* find_config_key(std::string_view name);

// Sets one from text. The error is a sentence that goes on where the name of the setting stands:
// " is from 1KB to 1GB", ": expected ...".
void_result set_from_text(server_options& o, const config_key& key, std::string_view text);
// The same for a list whose items are known one by one.
void_result set_items(server_options& o, const config_key& key, std::vector<std::string> items);
// As it could be written; a secret as ***.
std::string text_of(const server_options& o, const config_key& key);
// Whether the value is in the key's range; the same sentence.
void_result check_range(const server_options& o, const config_key& key);

}  // namespace sluice::jobs
