// Queues and cron entries of a configuration. They are decoded as by the HTTP API, so that there is
// one list of fields.
#include <set>

#include "jobs/json/codec.hpp"
#include "jobs/model/cron_schedule.hpp"
#include "jobs/model/job.hpp"
#include "jobs/server/detail/config_problems.hpp"
#include "jobs/server/size_text.hpp"

namespace sluice::jobs::detail {
namespace {

using type = toml_value::type;

// Converts a size with a unit to bytes, as for all sizes in the file.
toml_value with_bytes(std::string_view key, toml_value v) {
  if (!key.ends_with("_bytes") || v.kind != type::string) return v;
  const auto size = parse_size(v.text);
  if (!size) return v;
  v.kind = type::whole;
  v.text = std::to_string(*size);
  return v;
}

// Removes the position in the one member that was decoded: the file's own position is used.
std::string without_place(std::string message) {
  const std::size_t at = message.rfind(" (line ");
  if (at != std::string::npos) message.erase(at);
  return message;
}

// Decodes T's members one by one, so that each error has its own line, and then the whole.
template <class T>
std::optional<T> read_members(const toml_value& table, const std::string& name,
                              const std::set<std::string_view>& others, std::string_view always,
                              config_problems& problems) {
  toml_value good;
  bool is_whole = true;
  for (const auto& [key, value] : table.members) {
    if (others.contains(key)) continue;
    toml_value one;
    one.members.emplace_back(key, with_bytes(key, value));
    std::string text = to_json(one);
    if (!always.empty() && key != always) {
      text.insert(1, "\"" + std::string(always) + "\":\"x\",");
    }
    if (const auto read = json::read<T>(text); !read) {
      problems.add(value, name, "", without_place(read.error().message));
      is_whole = false;
    }
    good.members.push_back(std::move(one.members.front()));
  }
  if (!is_whole) return std::nullopt;
  auto read = json::read<T>(to_json(good));
  if (read) return *std::move(read);
  problems.add(table, name, "", without_place(read.error().message));
  return std::nullopt;
}

std::string text_member(const toml_value& of, const std::string& table, std::string_view key,
                        config_problems& problems, std::string otherwise = {}) {
  for (const auto& [name, value] : of.members) {
    if (name != key) continue;
    if (value.kind == type::string) return value.text;
    problems.add(value, table, key, ": expected a string, found " + std::string(value.type_name()));
  }
  return otherwise;
}

const toml_value& place_of(const toml_value& table, std::string_view key) {
  for (const auto& [name, value] : table.members) {
    if (name == key) return value;
  }
  return table;
}

void read_cron(const toml_value& entry, std::vector<cron_setting>& into,
               config_problems& problems) {
  static const std::set<std::string_view> own = {"name", "schedule", "zone", "missed", "paused"};
  cron_spec spec;
  bool says_paused = false;
  spec.name = text_member(entry, "cron", "name", problems);
  const std::string place = spec.name.empty() ? "cron" : "cron " + spec.name;
  spec.schedule = text_member(entry, place, "schedule", problems);
  spec.zone = text_member(entry, place, "zone", problems, spec.zone);
  const std::string missed =
      text_member(entry, place, "missed", problems, std::string(to_string(spec.missed)));
  if (const auto known = missed_runs_from(missed)) {
    spec.missed = *known;
  } else {
    problems.add(place_of(entry, "missed"), place, "missed", ": expected skip, one or all");
  }
  if (const toml_value& paused = place_of(entry, "paused"); &paused != &entry) {
    if (paused.kind != type::boolean)
      problems.add(paused, place, "paused", ": expected true or false");
    spec.paused = paused.boolean;
    says_paused = true;
  }
  if (const auto parsed = cron_schedule::parse(spec.schedule, spec.zone); !parsed) {
    problems.add(place_of(entry, "schedule"), place, "schedule", ": " + parsed.error().message);
  }
  auto job = read_members<job_spec>(entry, place, own, "kind", problems);
  if (!job) return;
  spec.job = *std::move(job);
  for (const cron_setting& other : into) {
    if (other.spec.name == spec.name) {
      return problems.add(place_of(entry, "name"), place, "name", ": another entry has this name");
    }
  }
  if (const auto valid = validate(spec); !valid) {
    return problems.add(entry, place, "", valid.error().message);
  }
  into.push_back({std::move(spec), says_paused});
}

}  // namespace

void read_queues(const toml_value& tables, std::vector<std::pair<std::string, queue_patch>>& into,
                 config_problems& problems) {
  if (tables.kind != type::table) {
    return problems.add(tables, "", "queues", ": expected tables, as in [queues.mail]");
  }
  for (const auto& [name, table] : tables.members) {
    const std::string place = "queues." + name;
    if (table.kind != type::table) {
      problems.add(table, place, "",
                   "expected a table with settings, found " + std::string(table.type_name()));
      continue;
    }
    if (const auto valid = validate_queue_name(name); !valid) {
      problems.add(table, place, "", valid.error().message);
    }
    if (auto patch = read_members<queue_patch>(table, place, {}, "", problems)) {
      into.emplace_back(name, *std::move(patch));
    }
  }
}

void read_crons(const toml_value& entries, std::vector<cron_setting>& into,
                config_problems& problems) {
  if (entries.kind != type::array) {
    return problems.add(entries, "", "cron", ": expected entries, each under [[cron]]");
  }
  for (const toml_value& entry : entries.items) {
    if (entry.kind == type::table) {
      read_cron(entry, into, problems);
    } else {
      problems.add(entry, "", "cron", ": expected entries, each under [[cron]]");
    }
  }
}

}  // namespace sluice::jobs::detail
