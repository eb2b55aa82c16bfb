#include "jobs/server/config.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "jobs/json/json_reader.hpp"
#include "jobs/server/config_keys.hpp"
#include "jobs/server/detail/config_problems.hpp"
#include "jobs/server/detail/toml_tree.hpp"

namespace sluice::jobs {
namespace detail {

std::string_view nearest(std::string_view key, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t least = 3;  // edit distances from here on are not similar
  for (const std::string_view name : known) {
    const std::size_t d = json::json_reader::distance(key, name);
    if (d < least && d < name.size()) {
      least = d;
      best = name;
    }
  }
  return best;
}

void config_problems::add_unknown(const toml_value& at, std::string_view table,
                                  std::string_view key,
                                  const std::vector<std::string_view>& known) {
  std::string sentence = ": unknown key";
  if (const auto like = nearest(key, known); !like.empty()) {
    sentence += "; did you mean " + std::string(like) + "?";
  } else {
    sentence += "; known keys: ";
    for (const std::string_view name : known) {
      sentence += (name == known.front() ? "" : ", ") + std::string(name);
    }
  }
  add(at, table, key, sentence);
}

error config_problems::all() {
  std::ranges::stable_sort(found_, {}, &std::pair<std::size_t, std::string>::first);
  std::string text;
  for (std::size_t i = 0; i < std::min(found_.size(), most); ++i) {
    text += (i == 0 ? "" : "\n") + found_[i].second;
  }
  if (found_.size() > most) text += "\nand " + std::to_string(found_.size() - most) + " more";
  return {error_code::invalid, std::move(text)};
}

}  // namespace detail

namespace {

namespace fs = std::filesystem;
using detail::config_problems;
using detail::toml_value;
using kind = config_key::kind;
using type = toml_value::type;

constexpr std::size_t file_bytes_max = std::size_t{1} << 20;

std::string_view last_word(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? key : key.substr(dot + 1);
}

std::string_view table_of(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : key.substr(0, dot);
}

result<std::string> read_text(const std::string& file, std::string_view role) {
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const auto cannot = [&](int why) {
    return error{why == ENOENT ? error_code::not_found : error_code::io_error,
                 "cannot read the " + std::string(role) + " " + file + ": " + std::strerror(why)};
  };
  if (opened < 0) return cannot(errno);
  std::string text;
  std::array<char, 16384> part{};
  ssize_t n = 0;
  while ((n = ::read(opened, part.data(), part.size())) > 0 && text.size() <= file_bytes_max) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  const int why = n < 0 ? errno : text.size() > file_bytes_max ? EFBIG : 0;
  ::close(opened);
  if (why != 0) return cannot(why);
  return text;
}

// Reads a secret from a file, which must be private.
result<std::string> read_secret_file(const std::string& file, std::string_view role) {
  struct stat found {};
  if (::stat(file.c_str(), &found) == 0 && (found.st_mode & 077U) != 0) {
    return error{error_code::invalid,
                 "other users have access to " + file + "; run: chmod 600 " + file};
  }
  auto text = read_text(file, role);
  if (!text) return text.error();
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  return text;
}

// ---- the file

bool has_type(const config_key& key, const toml_value& value) {
  switch (key.type) {
    case kind::flag:
      return value.kind == type::boolean;
    case kind::count:
      return value.kind == type::whole;
    case kind::size:
    case kind::duration:
      return value.kind == type::string || value.kind == type::whole;
    case kind::list:
      return value.kind == type::array && std::ranges::all_of(value.items, [](const toml_value& i) {
               return i.kind == type::string;
             });
    case kind::text:
    case kind::path:
    case kind::custom:
      break;
  }
  return value.kind == type::string;
}

std::string_view type_wanted(const config_key& key) {
  switch (key.type) {
    case kind::flag:
      return "true or false";
    case kind::count:
      return "a whole number";
    case kind::size:
      return R"(a size such as "64MB", or a number of bytes)";
    case kind::duration:
      return R"(a duration such as "30s", or a number of seconds)";
    case kind::list:
      return R"(an array of strings, as in ["a", "b"])";
    case kind::text:
    case kind::path:
    case kind::custom:
      break;
  }
  return "a string";
}

class file_reader {
 public:
  file_reader(configuration& into, std::string_view name, const std::string& folder)
      : into_(into), name_(name), folder_(folder), problems_(name) {}

  void_result read(std::string_view text) {
    const auto root = detail::read_toml(text, name_);
    if (!root) return root.error();
    read_table(*root, "");
    if (problems_.empty()) return done{};
    return problems_.all();
  }

 private:
  void read_table(const toml_value& table, const std::string& path) {
    for (const auto& [name, value] : table.members) {
      const std::string key = path.empty() ? name : path + "." + name;
      if (key == "queues") {
        detail::read_queues(value, into_.options.queues, problems_);
      } else if (key == "cron") {
        detail::read_crons(value, into_.options.crons, problems_);
      } else if (const config_key* known = find_config_key(key)) {
        read_value(*known, value);
      } else if (key == "delivery.secret_file") {
        read_secret(value);
      } else if (path.empty() && is_table(name)) {
        if (value.kind == type::table) {
          read_table(value, key);
        } else {
          problems_.add(value, "", name, ": expected a table, as in [" + name + "]");
        }
      } else {
        problems_.add_unknown(value, path, name, known_in(path));
      }
    }
  }

  static bool is_table(std::string_view name) {
    return std::ranges::any_of(config_keys(),
                               [&](const config_key& k) { return table_of(k.name) == name; });
  }

  static std::vector<std::string_view> known_in(std::string_view path) {
    std::vector<std::string_view> known;
    for (const config_key& k : config_keys()) {
      if (table_of(k.name) == path) known.push_back(last_word(k.name));
      const std::string_view table = table_of(k.name);
      if (path.empty() && !table.empty() && (known.empty() || known.back() != table)) {
        known.push_back(table);
      }
    }
    if (path == "delivery") known.push_back("secret_file");
    if (path.empty()) known.insert(known.end(), {"queues", "cron"});
    return known;
  }

  void read_value(const config_key& key, const toml_value& value) {
    if (!has_type(key, value)) {
      return problems_.add(value, table_of(key.name), last_word(key.name),
                           ": expected " + std::string(type_wanted(key)) + ", found " +
                               std::string(value.type_name()));
    }
    if (key.type == kind::list) return read_items(key, value);
    std::string text = value.text;
    if (key.type == kind::path) text = from_folder(text);
    if (auto set = set_from_text(into_.options, key, text); !set) {
      return problems_.add(value, table_of(key.name), last_word(key.name), set.error().message);
    }
    note(key, value);
  }

  void read_items(const config_key& key, const toml_value& value) {
    std::vector<std::string> items;
    bool all_fine = true;
    for (const toml_value& item : value.items) {
      const auto fine = key.check != nullptr ? key.check(item.text) : void_result(done{});
      if (!fine) {
        problems_.add(item, table_of(key.name), last_word(key.name),
                      "[" + std::to_string(items.size()) + "]: " + fine.error().message);
        all_fine = false;
      }
      items.push_back(item.text);
    }
    if (!all_fine) return;
    if (auto set = set_items(into_.options, key, std::move(items)); !set) {
      return problems_.add(value, table_of(key.name), last_word(key.name), set.error().message);
    }
    note(key, value);
  }

  void read_secret(const toml_value& value) {
    if (value.kind != type::string) {
      return problems_.add(value, "delivery", "secret_file", ": expected a string");
    }
    const std::string file = from_folder(value.text);
    auto text = read_secret_file(file, "secret");
    if (!text) {
      return problems_.add(value, "delivery", "secret_file", ": " + text.error().message);
    }
    const config_key& key = *find_config_key("delivery.secret");
    if (!into_.options.delivery.secret.empty()) {
      return problems_.add(value, "delivery", "secret_file",
                           ": set either delivery.secret or delivery.secret_file, not both");
    }
    if (auto set = set_from_text(into_.options, key, *text); !set) {
      return problems_.add(value, "delivery", "secret_file", set.error().message);
    }
    note(key, value);
  }

  std::string from_folder(const std::string& path) const {
    if (path.empty() || folder_.empty() || fs::path(path).is_absolute()) return path;
    return (fs::path(folder_) / path).lexically_normal().string();
  }

  void note(const config_key& key, const toml_value& at) {
    const auto index = static_cast<std::size_t>(&key - config_keys().data());
    if (index < into_.settings.size()) {
      into_.settings[index].from = std::string(name_) + ":" + std::to_string(at.line);
    }
  }

  configuration& into_;
  const std::string_view name_;
  const std::string folder_;
  config_problems problems_;
};

// ---- the other sources

const char* variable_of(const config_sources& sources, const std::string& name) {
  const char* const value =
      sources.environment ? sources.environment(name.c_str()) : std::getenv(name.c_str());
  return value != nullptr && *value != '\0' ? value : nullptr;
}

const std::string* flag_of(const config_sources& sources, std::string_view key) {
  const std::string* last = nullptr;
  for (const auto& [name, text] : sources.flags) {
    if (name == key) last = &text;
  }
  return last;
}

// Returns the file to read; empty: none.
std::string file_of(const config_sources& sources) {
  if (!sources.file.empty()) return sources.file;
  if (const char* named = variable_of(sources, "SLUICE_CONFIG")) return named;
  std::string data = server_options{}.data;
  if (const char* set = variable_of(sources, "SLUICE_DATA")) data = set;
  if (const std::string* set = flag_of(sources, "data")) data = *set;
  std::string fallback = (fs::path(data) / "sluice.toml").string();
  return ::access(fallback.c_str(), F_OK) == 0 ? fallback : "";
}

void apply_others(configuration& c, const config_sources& sources, std::string& wrong) {
  const auto keys = config_keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto apply = [&](const std::string& from, std::string_view text) {
      if (auto set = set_from_text(c.options, keys[i], text); !set) {
        wrong += (wrong.empty() ? "" : "\n") + from + set.error().message;
      }
      c.settings[i].from = from;
    };
    const std::string variable = keys[i].variable();
    const std::string* const flag = flag_of(sources, keys[i].name);
    const char* const set = variable_of(sources, variable);
    if (flag != nullptr) {
      apply(std::string(keys[i].flag), *flag);
    } else if (set != nullptr) {
      apply(variable, set);
    }
  }
}

// The file may be set by a flag, the environment or the configuration.
void_result read_faktory_password(configuration& c) {
  faktory_settings& settings = c.options.faktory;
  if (settings.password_file.empty()) return done{};
  const auto index =
      static_cast<std::size_t>(find_config_key("faktory.password_file") - config_keys().data());
  const std::string& from = c.settings[index].from;
  const auto wrong = [&](const std::string& why) {
    return error{error_code::invalid, from + ": faktory.password_file: " + why};
  };
  if (!settings.password.empty()) {
    return wrong("set either faktory.password or faktory.password_file, not both");
  }
  auto text = read_secret_file(settings.password_file, "password");
  if (!text) return wrong(text.error().message);
  if (text->empty()) return wrong(settings.password_file + " is empty");
  settings.password = *std::move(text);
  return done{};
}

}  // namespace

void_result apply_config_text(configuration& into, std::string_view text, std::string_view name,
                              const std::string& folder) {
  return file_reader(into, name, folder).read(text);
}

result<configuration> load_configuration(const config_sources& sources) {
  configuration c;
  for (const config_key& key : config_keys()) {
    c.settings.push_back({.name = key.name, .text = {}, .from = "default"});
  }
  std::string wrong;
  c.file = file_of(sources);
  if (!c.file.empty()) {
    auto text = read_text(c.file, "configuration");
    if (!text) return text.error();
    const std::string folder = fs::path(c.file).parent_path().string();
    if (auto read = apply_config_text(c, *text, c.file, folder); !read) {
      wrong = read.error().message;
    }
  }
  apply_others(c, sources, wrong);
  if (!wrong.empty()) return error{error_code::invalid, std::move(wrong)};
  if (auto read = read_faktory_password(c); !read) return read.error();
  if (auto valid = validate(c.options); !valid) return valid.error();
  const auto keys = config_keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    c.settings[i].text = text_of(c.options, keys[i]);
  }
  return c;
}

std::string describe(const configuration& c) {
  std::size_t widest_name = 0;
  std::size_t widest_text = 0;
  for (const auto& s : c.settings) {
    widest_name = std::max(widest_name, s.name.size());
    widest_text = std::max(widest_text, std::min<std::size_t>(s.text.size(), 40));
  }
  std::string out = c.file.empty() ? "no configuration file\n" : "read " + c.file + "\n";
  for (const auto& s : c.settings) {
    std::string line = "  " + std::string(s.name);
    line.resize(std::max(line.size(), widest_name + 4), ' ');
    line += s.text.empty() ? "-" : s.text;
    line.resize(std::max(line.size() + 2, widest_name + widest_text + 6), ' ');
    out += line + s.from + "\n";
  }
  for (const auto& [name, patch] : c.options.queues) out += "  queue " + name + "\n";
  for (const auto& [spec, says_paused] : c.options.crons) {
    out += "  cron " + spec.name + ": " + spec.schedule + " " + spec.zone + "\n";
  }
  return out;
}

}  // namespace sluice::jobs
