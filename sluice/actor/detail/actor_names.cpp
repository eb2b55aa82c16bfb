#include "sluice/actor/detail/actor_names.hpp"

namespace sluice::detail {

std::string_view short_type(std::string_view type) noexcept {
  const std::string_view plain = type.substr(0, type.find('<'));
  const std::size_t last = plain.rfind("::");
  return last == std::string_view::npos ? type : type.substr(last + 2);
}

void actor_names::spawned(actor_id id, std::string_view name, std::string_view type) {
  // The default name of an actor is its type and number: only the short type is shown.
  const bool is_own = !name.starts_with(type);
  names_.with(id, [&](std::string& n) { n = is_own ? name : short_type(name); });
}

void actor_names::ended(actor_id id) {
  actor_id oldest = 0;
  ended_.with([&](auto& all) {
    all.push_back(id);
    if (all.size() <= ended_max_) return;
    oldest = all.front();
    all.pop_front();
  });
  if (oldest != 0) names_.erase(oldest);
}

std::string actor_names::of(actor_id id) const {
  if (id == 0) return "outside";
  std::string name;
  if (names_.with_existing(id, [&](std::string& n) { name = n; })) return name;
  return "actor-" + std::to_string(id);
}

}  // namespace sluice::detail
