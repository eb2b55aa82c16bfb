#include "jobs/server/config_keys.hpp"

#include <algorithm>
#include <charconv>

#include "jobs/deliver/signature.hpp"
#include "jobs/deliver/url_rules.hpp"
#include "jobs/json/text.hpp"
#include "jobs/server/size_text.hpp"

namespace sluice::jobs {
namespace {

using k = config_key::kind;
using o = server_options;

constexpr std::uint64_t second = 1000;
constexpr std::uint64_t hour = 3600 * second;
constexpr std::uint64_t day = 24 * hour;
constexpr std::uint64_t kb = std::uint64_t{1} << 10;
constexpr std::uint64_t gb = std::uint64_t{1} << 30;
constexpr std::uint64_t tb = std::uint64_t{1} << 40;
constexpr std::uint64_t many = 10'000'000;

error sentence_error(std::string sentence) {
  return {error_code::invalid, std::move(sentence)};
}

std::string_view word_of(sync_mode mode) {
  switch (mode) {
    case sync_mode::full:
      return "full";
    case sync_mode::interval:
      return "interval";
    case sync_mode::off:
      break;
  }
  return "off";
}

std::string_view word_of(log_level level) {
  switch (level) {
    case log_level::debug:
      return "debug";
    case log_level::info:
      return "info";
    case log_level::warn:
      return "warn";
    case log_level::error:
      return "error";
    case log_level::off:
      break;
  }
  return "off";
}

template <class T>
void_result set_word(T& into, std::optional<T> value, std::string_view words,
                     std::string_view text) {
  if (!value) {
    return sentence_error(": expected " + std::string(words) + ", found '" + std::string(text) +
                          "'");
  }
  into = *value;
  return done{};
}

void_result set_listen(o& x, std::string_view text) {
  auto address = parse_listen_address(text);
  if (!address) return sentence_error(": " + address.error().message);
  x.listen = *std::move(address);
  return done{};
}

// Sets the address of an optional protocol; an empty text turns it off.
void_result set_place(std::optional<listen_address>& into, std::string_view text,
                      std::uint16_t default_port) {
  into.reset();
  if (text.empty()) return done{};
  auto address = parse_listen_address(text, {.port = default_port});
  if (!address) return sentence_error(": " + address.error().message);
  into = *std::move(address);
  return done{};
}

void_result set_beanstalk(o& x, std::string_view text) {
  return set_place(x.beanstalk.listen, text, 11300);
}

void_result set_faktory(o& x, std::string_view text) {
  return set_place(x.faktory.listen, text, 7419);
}

std::string text_of(const std::optional<listen_address>& place) {
  return place ? to_string(*place) : "";
}

constexpr std::string_view sync_words = "full|interval|off";
constexpr std::string_view level_words = "debug|info|warn|error|off";

void_result set_sync(o& x, std::string_view text) {
  return set_word(x.sync, sync_mode_from(text), sync_words, text);
}

void_result set_level(o& x, std::string_view text) {
  return set_word(x.log.level, log_level_from(text), level_words, text);
}

void_result check_secrets(std::string_view text) {
  return validate_secrets(split_secrets(text));
}

std::vector<config_key> make_keys() {
  using text = std::string&;
  using number = std::uint64_t&;
  using time = milliseconds&;
  using custom = config_key::custom_value;
  return {
      {"data", "--data", "the data folder", k::path, [](o& x) -> text { return x.data; }},
      {"memory", "--memory",
       "store nothing: all jobs are lost at the end, and use memory until then; limit a queue with "
       "'sluice queues set --capacity-bytes'",
       k::flag, [](o& x) -> bool& { return x.memory; }},
      {"listen", "--listen", "HOST:PORT to listen on; beyond loopback with a token and TLS",
       k::custom, custom{set_listen, [](const o& x) { return to_string(x.listen); }}, 0, 0,
       "HOST:PORT"},
      {"sync", "--sync",
       "when a job is acknowledged: full: when it is on disk; interval and off: before that, so a "
       "power cut may lose jobs",
       k::custom, custom{set_sync, [](const o& x) { return std::string(word_of(x.sync)); }}, 0, 0,
       sync_words},
      {"sync_interval", "--sync-interval", "sync interval for sync = interval", k::duration,
       [](o& x) -> time { return x.sync_interval; }, 1, hour},
      {"client_memory", "--client-memory",
       "memory of all connections together: input, bodies, unsent responses, TLS sessions", k::size,
       [](o& x) -> number { return x.client_memory; }, 1024 * kb, tb},
      {"shutdown_grace", "--shutdown-grace",
       "at a stop: time limit for running posts and for jobs held by beanstalkd and "
       "Faktory clients",
       k::duration, [](o& x) -> time { return x.shutdown_grace; }, 0, day},

      {"http.max_connections", "--max-connections", "connections at a time", k::count,
       [](o& x) -> number { return x.http.connections_max; }, 1, 1'000'000},
      {"http.threads", "--http-threads", "threads for connections", k::count,
       [](o& x) -> number { return x.http.threads; }, 1, 256},
      {"http.max_pipelined", "--max-pipelined", "pipelined requests per connection", k::count,
       [](o& x) -> number { return x.http.pipelined_max; }, 1, 10'000},
      {"http.max_head", "--max-head", "size of request line and headers", k::size,
       [](o& x) -> number { return x.http.head_bytes_max; }, kb, kb* kb},
      {"http.max_body", "--max-body", "size of a request body", k::size,
       [](o& x) -> number { return x.http.body_bytes_max; }, kb, gb},
      {"http.max_stream", "--max-stream", "size of an NDJSON request with many jobs", k::size,
       [](o& x) -> number { return x.http.stream_bytes_max; }, kb, tb},
      {"http.max_stream_jobs", "--max-stream-jobs", "jobs in an NDJSON request", k::count,
       [](o& x) -> number { return x.http.stream_jobs_max; }, 1, many},
      {"http.max_unsent", "--max-unsent", "responses that a client has not read", k::size,
       [](o& x) -> number { return x.http.unsent_bytes_max; }, kb, gb},
      {"http.idle_time", "--idle-time", "idle time of a connection between requests", k::duration,
       [](o& x) -> time { return x.http.idle_time; }, 1, day},
      {"http.head_time", "--head-time",
       "time for the headers of a request, and for the TLS handshake", k::duration,
       [](o& x) -> time { return x.http.head_time; }, 1, hour},
      {"http.body_time", "--body-time",
       "time for a body to arrive or a response to be read, extended at body_rate", k::duration,
       [](o& x) -> time { return x.http.body_time; }, 1, day},
      {"http.body_rate", "--body-rate", "minimum bytes per second of a body", k::size,
       [](o& x) -> number { return x.http.body_bytes_per_second; }, 1, gb},
      {"http.linger_time", "--linger-time", "time for a client to read the last response",
       k::duration, [](o& x) -> time { return x.http.linger_time; }, 0, hour},
      {"http.push_wait", "--push-wait", "default wait for capacity in a queue that blocks",
       k::duration, [](o& x) -> time { return x.http.push_wait; }, 0, day},
      {"http.max_wait", "--max-wait", "longest wait that a client may request", k::duration,
       [](o& x) -> time { return x.http.wait_max; }, 1, day},
      {"http.hosts", "--hosts", "host names that requests may use for this server", k::list,
       [](o& x) -> std::vector<std::string>& { return x.http.hosts; }},
      {"http.insecure", "--insecure-http", "permit addresses beyond loopback without TLS", k::flag,
       [](o& x) -> bool& { return x.http.insecure_http; }},

      {"beanstalk.listen", "--beanstalk", "HOST:PORT for clients of beanstalkd; off without it",
       k::custom, custom{set_beanstalk, [](const o& x) { return text_of(x.beanstalk.listen); }}, 0,
       0, "HOST:PORT"},
      {"beanstalk.socket", "--beanstalk-socket", "unix socket for clients of beanstalkd", k::path,
       [](o& x) -> text { return x.beanstalk.socket; }},
      {"beanstalk.job_max", "--beanstalk-job-max", "largest job of a put", k::size,
       [](o& x) -> number { return x.beanstalk.job_bytes_max; }, 0, limits::args_bytes_max},
      {"beanstalk.max_connections", "--beanstalk-max-connections", "connections at a time",
       k::count, [](o& x) -> number { return x.beanstalk.connections_max; }, 1, 1'000'000},
      {"beanstalk.threads", "--beanstalk-threads", "threads for connections", k::count,
       [](o& x) -> number { return x.beanstalk.threads; }, 1, 256},
      {"beanstalk.tls", "--beanstalk-tls", "TLS on the port, with tls.cert", k::flag,
       [](o& x) -> bool& { return x.beanstalk.tls; }},
      {"beanstalk.open", "--beanstalk-open",
       "permit addresses beyond loopback, although the protocol has no authentication", k::flag,
       [](o& x) -> bool& { return x.beanstalk.open; }},

      {"faktory.listen", "--faktory", "HOST:PORT for clients of Faktory; off without it", k::custom,
       custom{set_faktory, [](const o& x) { return text_of(x.faktory.listen); }}, 0, 0,
       "HOST:PORT"},
      {"faktory.password", "", "password of the clients", k::text,
       [](o& x) -> text { return x.faktory.password; }, 0, 0, "", true},
      {"faktory.password_file", "--faktory-password-file",
       "private file with the password of the clients", k::path,
       [](o& x) -> text { return x.faktory.password_file; }},
      {"faktory.max_connections", "--faktory-max-connections", "connections at a time", k::count,
       [](o& x) -> number { return x.faktory.connections_max; }, 1, 1'000'000},
      {"faktory.threads", "--faktory-threads", "threads for connections", k::count,
       [](o& x) -> number { return x.faktory.threads; }, 1, 256},
      {"faktory.open", "--faktory-open",
       "permit addresses beyond loopback without a password or TLS", k::flag,
       [](o& x) -> bool& { return x.faktory.open; }},

      {"tls.cert", "--tls-cert", "certificate with its chain, in PEM; with tls.key", k::path,
       [](o& x) -> text { return x.tls.certificate; }},
      {"tls.key", "--tls-key", "private key of the certificate, in PEM", k::path,
       [](o& x) -> text { return x.tls.key; }},

      {"auth.required", "--auth-required", "require tokens even if there are none", k::flag,
       [](o& x) -> bool& { return x.auth_required; }},
      {"auth.tokens", "--tokens", "token file; default: tokens.json in the data folder", k::path,
       [](o& x) -> text { return x.token_file; }},
      {"auth.wrong_token_delay", "--wrong-token-delay", "delay of the response to an unknown token",
       k::duration, [](o& x) -> time { return x.http.wrong_token_delay; }, 0, 60 * second},

      {"log.level", "--log-level", "lowest level that is logged", k::custom,
       custom{set_level, [](const o& x) { return std::string(word_of(x.log.level)); }}, 0, 0,
       level_words},
      {"log.json", "--log-json", "log lines as JSON", k::flag,
       [](o& x) -> bool& { return x.log.json; }},
      {"log.audit", "--audit-log", "file for audit lines; default: the log", k::path,
       [](o& x) -> text { return x.audit_file; }},

      {"engine.window", "--window", "memory for waiting jobs", k::size,
       [](o& x) -> number { return x.engine.window_bytes_max; }, 64 * kb, tb},
      {"engine.window_jobs", "--window-jobs", "waiting jobs of a queue in memory", k::count,
       [](o& x) -> number { return x.engine.window_jobs_max; }, 1, many},
      {"engine.max_queues", "--max-queues", "number of queues", k::count,
       [](o& x) -> number { return x.engine.queues_max; }, 1, many},
      {"engine.max_leases", "--max-leases", "running jobs at a time", k::count,
       [](o& x) -> number { return x.engine.running_max; }, 1, many},
      {"engine.max_lease", "--max-lease", "jobs in one lease call", k::count,
       [](o& x) -> number { return x.engine.lease_max; }, 1, 100'000},
      {"engine.max_waiting", "--max-waiting",
       "waiting calls at a time: for jobs, for capacity, for an end", k::count,
       [](o& x) -> number { return x.engine.waiting_max; }, 1, many},
      {"engine.waiting_memory", "--waiting-memory", "memory for jobs of waiting pushes", k::size,
       [](o& x) -> number { return x.engine.waiting_bytes_max; }, kb, tb},
      {"engine.max_bulk", "--max-bulk", "jobs in one push call", k::count,
       [](o& x) -> number { return x.engine.bulk_max; }, 1, 1'000'000},
      {"engine.staged_memory", "--staged-memory", "memory for uncommitted jobs", k::size,
       [](o& x) -> number { return x.engine.staged_bytes_max; }, kb, tb},

      {"delivery.allow", "--delivery-allow", "URLs, or beginnings of URLs, that may be posted to",
       k::list, [](o& x) -> std::vector<std::string>& { return x.delivery.allow; }, 0, 0, "", false,
       url_rules::check_rule},
      {"delivery.secret", "", "secret that signs posts", k::text,
       [](o& x) -> text { return x.delivery.secret; }, 0, 0, "", true, check_secrets},
      {"delivery.ca_file", "--delivery-ca-file",
       "certificate authorities of https receivers, in PEM; default: the system's authorities",
       k::path, [](o& x) -> text { return x.delivery.ca_file; }},
      {"delivery.timeout", "--delivery-timeout",
       "timeout of a webhook; a queue has its own, deliver.timeout", k::duration,
       [](o& x) -> time { return x.delivery.timeout; }, 1, hour},
      {"delivery.concurrency", "--delivery-concurrency", "posts at a time, of all queues", k::count,
       [](o& x) -> number { return x.delivery.concurrency; }, 1, 100'000},
  };
}

result<bool> boolean_of(std::string_view text) {
  for (const std::string_view yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "0", "no", "off"}) {
    if (text == no) return false;
  }
  return sentence_error(": expected true or false, found '" + std::string(text.substr(0, 64)) +
                        "'");
}

std::vector<std::string> list_of(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.size(), text.find(','));
    std::string_view one = text.substr(0, comma);
    text.remove_prefix(std::min(text.size(), comma + 1));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (!one.empty()) items.emplace_back(one);
  }
  return items;
}

result<std::uint64_t> number_of(const config_key& key, std::string_view text) {
  if (key.type == k::size) {
    auto size = parse_size(text);
    if (!size) return sentence_error(": " + size.error().message);
    return size;
  }
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) {
    return sentence_error(": expected a whole number, found '" + std::string(text.substr(0, 64)) +
                          "'");
  }
  return value;
}

struct setter {
  server_options& x;
  const config_key& key;
  std::string_view text;

  void_result operator()(std::string& (*of)(o&)) const {
    if (key.check != nullptr) {
      if (auto valid = key.check(text); !valid) return sentence_error(": " + valid.error().message);
    }
    of(x) = text;
    return done{};
  }
  void_result operator()(bool& (*of)(o&)) const {
    const auto value = boolean_of(text);
    if (!value) return value.error();
    of(x) = *value;
    return done{};
  }
  void_result operator()(std::uint64_t& (*of)(o&)) const {
    const auto value = number_of(key, text);
    if (!value) return value.error();
    of(x) = *value;
    return check_range(x, key);
  }
  void_result operator()(milliseconds& (*of)(o&)) const {
    const auto value = parse_duration(text);
    if (!value) return sentence_error(": " + value.error().message);
    of(x) = *value;
    return check_range(x, key);
  }
  void_result operator()(std::vector<std::string>& (*)(o&)) const {
    return set_items(x, key, list_of(text));
  }
  void_result operator()(const config_key::custom_value& value) const { return value.set(x, text); }
};

struct getter {
  server_options& x;
  const config_key& key;

  std::string operator()(std::string& (*of)(o&)) const { return of(x); }
  std::string operator()(bool& (*of)(o&)) const { return of(x) ? "true" : "false"; }
  std::string operator()(std::uint64_t& (*of)(o&)) const {
    return key.type == k::size ? format_size(of(x)) : std::to_string(of(x));
  }
  std::string operator()(milliseconds& (*of)(o&)) const { return format_duration(of(x)); }
  std::string operator()(std::vector<std::string>& (*of)(o&)) const {
    std::string all;
    for (const std::string& one : of(x)) all += (all.empty() ? "" : ",") + one;
    return all;
  }
  std::string operator()(const config_key::custom_value& value) const { return value.get(x); }
};

}  // namespace

std::span<const config_key> config_keys() {
  static const std::vector<config_key> all = make_keys();
  return all;
}

const config_key* find_config_key(std::string_view name) {
  const auto all = config_keys();
  const auto found = std::ranges::find(all, name, &config_key::name);
  return found == all.end() ? nullptr : &*found;
}

std::string config_key::variable() const {
  std::string out = "SLUICE_";
  for (const char c : name) {
    out += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return out;
}

std::string config_key::range() const {
  const auto text = [&](std::uint64_t bound) {
    if (type == kind::size) return format_size(bound);
    if (type == kind::count) return std::to_string(bound);
    return format_duration(milliseconds(static_cast<std::int64_t>(bound)));
  };
  const bool has_range = type == kind::size || type == kind::count || type == kind::duration;
  return has_range ? text(least) + " to " + text(most) : "";
}

void_result check_range(const server_options& x, const config_key& key) {
  // The accessor needs a non-const reference; the value is not changed.
  auto& of = const_cast<server_options&>(x);
  std::uint64_t value = key.least;
  if (const auto* number = std::get_if<std::uint64_t& (*)(o&)>(&key.of)) value = (*number)(of);
  if (const auto* time = std::get_if<milliseconds& (*)(o&)>(&key.of)) {
    value = static_cast<std::uint64_t>((*time)(of).count());  // a negative value becomes huge
  }
  if (value >= key.least && value <= std::max(key.least, key.most)) return done{};
  return sentence_error(" must be from " + key.range());
}

void_result set_from_text(server_options& x, const config_key& key, std::string_view text) {
  return std::visit(setter{x, key, text}, key.of);
}

void_result set_items(server_options& x, const config_key& key, std::vector<std::string> items) {
  for (std::size_t i = 0; key.check != nullptr && i < items.size(); ++i) {
    if (auto valid = key.check(items[i]); !valid) {
      return sentence_error("[" + std::to_string(i) + "]: " + valid.error().message);
    }
  }
  const auto* of = std::get_if<std::vector<std::string>& (*)(o&)>(&key.of);
  (*of)(x) = std::move(items);
  return done{};
}

std::string text_of(const server_options& x, const config_key& key) {
  std::string text = std::visit(getter{const_cast<server_options&>(x), key}, key.of);
  return key.is_secret && !text.empty() ? "***" : text;
}

}  // namespace sluice::jobs
