#include "jobs/protocol/beanstalk/detail/tubes.hpp"

namespace sluice::jobs::beanstalk {

tube_ptr tube_table::get(std::string_view queue) {
  return tubes_.with([&](map& all) -> tube_ptr {
    if (const auto at = all.find(queue); at != all.end()) return at->second;
    if (all.size() >= most_) {
      // A use count of 1 cannot grow meanwhile: that needs the lock.
      std::erase_if(all, [](const auto& each) { return each.second.use_count() == 1; });
      if (all.size() >= most_) return nullptr;
    }
    auto made = std::make_shared<tube>(std::string(queue));
    all.emplace(made->name, made);
    return made;
  });
}

tube_ptr tube_table::find(std::string_view queue) const {
  return tubes_.with([&](const map& all) -> tube_ptr {
    const auto at = all.find(queue);
    return at == all.end() ? nullptr : at->second;
  });
}

std::vector<tube_ptr> tube_table::in_use() const {
  return tubes_.with([](const map& all) {
    std::vector<tube_ptr> used;
    for (const auto& [queue, each] : all) {
      if (each->using_now.load(relaxed) + each->watching.load(relaxed) > 0) used.push_back(each);
    }
    return used;
  });
}

std::size_t tube_table::size() const {
  return tubes_.with([](const map& all) { return all.size(); });
}

job_note& job_notes::note_of(kept& k, job_id id) {
  const auto [at, is_new] = k.notes.try_emplace(id);
  if (is_new) {
    k.order.push_back(id);
    if (k.order.size() > most_) {
      k.notes.erase(k.order.front());
      k.order.pop_front();
    }
  }
  return at->second;
}

void job_notes::released(job_id id, std::uint32_t delay_s) {
  kept_.with([&](kept& k) {
    job_note& n = note_of(k, id);
    ++n.releases;
    n.delay_s = delay_s;
  });
}

void job_notes::kicked(std::span<const job_id> ids) {
  kept_.with([&](kept& k) {
    for (const job_id id : ids) ++note_of(k, id).kicks;
  });
}

void job_notes::taken_buried(job_id id) {
  kept_.with([&](kept& k) { ++note_of(k, id).taken; });
}

std::optional<job_note> job_notes::find(job_id id) const {
  return kept_.with([&](const kept& k) -> std::optional<job_note> {
    const auto at = k.notes.find(id);
    if (at == k.notes.end()) return std::nullopt;
    return at->second;
  });
}

}  // namespace sluice::jobs::beanstalk
