#include "sluice/actor/detail/actor_names.hpp"

namespace sluice::detail {

std::string_view short_type(std::string_view type) noexcept {
  const std::string_view plain = type.substr(0, type.find('<'));
  const std::size_t last = plain.rfind("::");
  return last == std::string_view::npos ? type : type.substr(last + 2);
}

void actor_names::spawned(actor_id who, std::string_view name, std::string_view type) {
  // Without a name of its own it is called by its type.
  const bool is_own = !name.starts_with(type);
  names_.with(who, [&](std::string& n) { n = is_own ? name : short_type(name); });
}

void actor_names::ended(actor_id who) {
  actor_id oldest = 0;
  ended_.with([&](auto& all) {
    all.push_back(who);
    if (all.size() <= ended_max_) return;
    oldest = all.front();
    all.pop_front();
  });
  if (oldest != 0) names_.erase(oldest);
}

std::string actor_names::of(actor_id who) const {
  if (who == 0) return "outside";
  std::string name;
  if (names_.with_existing(who, [&](std::string& n) { name = n; })) return name;
  return "actor-" + std::to_string(who);
}

}  // namespace sluice::detail
