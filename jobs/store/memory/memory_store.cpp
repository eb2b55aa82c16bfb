#include "jobs/store/memory/memory_store.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "jobs/store/count_deltas.hpp"
#include "jobs/store/groups.hpp"
#include "sluice/base/check.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs {
namespace {

constexpr const char* object = "sluice::jobs::memory_store";
// A page of a list looks at no more jobs than this many for each that was asked for.
constexpr std::size_t looked_at_for_each = 10;
constexpr std::size_t looked_at_least = 1000;

struct kept_job {
  job_ptr it;
  queue_number queue = 0;
};

struct kept_queue {
  std::string name;
  queue_options options;
  queue_counts counts;
  std::map<position, job_id> ready;
};

struct kept_key {
  job_id holder = 0;
  std::optional<unix_time> expires;  // of `elapsed` only
};

using key_name = std::pair<queue_number, std::string>;

position position_of(const job& j) {
  return {j.spec.priority, j.turn};
}

// Everything, with the indexes that the calls of a store need. Not thread-safe.
class state {
 public:
  std::vector<conflict> apply(const batch& b);
  store::contents load() const;
  std::vector<job_ptr> ready_after(queue_number queue, position after, page_limit limit) const;
  due_page due(unix_time now, std::size_t limit) const;
  std::vector<job_ptr> victims(queue_number queue, victim which, std::size_t limit,
                               const std::function<bool(job_id)>& skip) const;
  std::optional<job> get(job_id id) const;
  job_page list(const job_filter& filter, job_id after, std::size_t limit) const;

 private:
  kept_queue& queue_of(queue_number number);
  kept_job& job_of(const change& c);

  // The holder of the key that `c` wants, or zero.
  job_id holder_for(const change& c, unix_time now) const;
  std::size_t add_group(const batch& b, std::size_t first, std::vector<conflict>& conflicts);
  void count(const change& c);
  void add(const change& c);
  void move(const change& c);
  void drop(const change& c);
  void free_key(const change& c);
  void forget_expired_keys(unix_time now);

  void enlist(const kept_job& k);  // into the indexes of its state
  void delist(const kept_job& k);

  std::map<job_id, kept_job> jobs_;
  std::map<queue_number, kept_queue> queues_;
  std::set<std::pair<unix_time, job_id>> due_;
  std::map<key_name, kept_key> keys_;
  std::set<std::pair<unix_time, key_name>> expiring_;
  std::map<job_id, std::pair<queue_number, change::lease_record>> leases_;
  std::uint64_t ids_up_to_ = 0;
};

kept_queue& state::queue_of(queue_number number) {
  const auto at = queues_.find(number);
  check(at != queues_.end(), object, "a queue that was set before it was used");
  return at->second;
}

kept_job& state::job_of(const change& c) {
  const auto at = jobs_.find(c.id);
  check(at != jobs_.end() && at->second.queue == c.queue && at->second.it->state == c.from, object,
        "a job that is there, in the queue and the state that the change says");
  return at->second;
}

void state::enlist(const kept_job& k) {
  if (k.it->state == job_state::ready) {
    const bool is_new = queue_of(k.queue).ready.emplace(position_of(*k.it), k.it->id).second;
    check(is_new, object, "a turn of its own for every ready job of a priority");
  }
  if (k.it->due_at != unix_time{}) due_.emplace(k.it->due_at, k.it->id);
}

void state::delist(const kept_job& k) {
  if (k.it->state == job_state::ready) queue_of(k.queue).ready.erase(position_of(*k.it));
  due_.erase({k.it->due_at, k.it->id});
}

job_id state::holder_for(const change& c, unix_time now) const {
  const auto at = keys_.find({c.queue, c.it->spec.unique.key});
  if (at == keys_.end()) return 0;
  return at->second.expires && *at->second.expires <= now ? 0 : at->second.holder;
}

// Adds the group that begins at `first`, or none of it; where it ends.
std::size_t state::add_group(const batch& b, std::size_t first, std::vector<conflict>& conflicts) {
  const std::size_t end = end_of_group(b, first);
  const auto found = conflicts_of_group(
      b, first, end, [&](const change& c) { return std::optional(holder_for(c, b.now)); });
  conflicts.insert(conflicts.end(), found->begin(), found->end());
  for (std::size_t i = first; found->empty() && i < end; ++i) add(b.changes[i]);
  return end;
}

void state::count(const change& c) {
  count_deltas deltas;
  deltas.add(c);
  jobs::apply(deltas.touched().front(), queue_of(c.queue).counts);
}

void state::add(const change& c) {
  check(c.it->id != 0, object, "a job with an id");
  const auto [at, is_new] = jobs_.try_emplace(c.it->id, kept_job{c.it, c.queue});
  check(is_new, object, "an id that was never used");
  enlist(at->second);
  count(c);

  const unique_key& unique = c.it->spec.unique;
  if (unique.key.empty()) return;
  const key_name name{c.queue, unique.key};
  kept_key& key = keys_[name];
  if (key.expires) expiring_.erase({*key.expires, name});
  key = {c.it->id, std::nullopt};
  if (unique.until == unique_until::elapsed) {
    key.expires = c.it->created_at + unique.lasts;
    expiring_.emplace(*key.expires, name);
  }
}

void state::move(const change& c) {
  check(c.how != nullptr, object, "a move that says how");
  kept_job& kept = job_of(c);
  delist(kept);
  job next = *kept.it;
  const change::moved& how = *c.how;
  next.state = c.to;
  next.due_at = how.due_at;
  if (how.turn != 0) next.turn = how.turn;
  if (how.attempts) next.attempts = *how.attempts;
  if (how.ended_at) next.ended_at = *how.ended_at;
  if (how.error) {
    next.errors.push_back(*how.error);
    if (next.errors.size() > limits::errors_max) next.errors.erase(next.errors.begin());
  }
  if (how.result) next.result = *how.result;
  if (how.priority) next.spec.priority = *how.priority;
  kept.it = std::make_shared<const job>(std::move(next));
  enlist(kept);
  count(c);
  if (how.free_key) free_key(c);
}

void state::drop(const change& c) {
  delist(job_of(c));
  jobs_.erase(c.id);
  leases_.erase(c.id);
  count(c);
  if (c.it) free_key(c);
}

void state::free_key(const change& c) {
  check(c.it != nullptr, object, "the job whose key is to be freed");
  if (c.it->spec.unique.key.empty()) return;
  const auto at = keys_.find({c.queue, c.it->spec.unique.key});
  if (at != keys_.end() && at->second.holder == c.it->id && !at->second.expires) keys_.erase(at);
}

void state::forget_expired_keys(unix_time now) {
  while (!expiring_.empty() && expiring_.begin()->first <= now) {
    keys_.erase(expiring_.begin()->second);
    expiring_.erase(expiring_.begin());
  }
}

std::vector<conflict> state::apply(const batch& b) {
  std::vector<conflict> conflicts;
  forget_expired_keys(b.now);
  for (std::size_t i = 0; i < b.changes.size();) {
    const change& c = b.changes[i];
    if (c.what == change::op::add) {
      i = add_group(b, i, conflicts);
      continue;
    }
    ++i;
    switch (c.what) {
      case change::op::add:
        break;  // above
      case change::op::move:
        move(c);
        break;
      case change::op::drop:
        drop(c);
        break;
      case change::op::free_key:
        free_key(c);
        break;
      case change::op::set_queue: {
        kept_queue& q = queues_[c.queue];
        q.name = c.settings->name;
        q.options = c.settings->options;
        break;
      }
      case change::op::save_lease:
        leases_[c.id] = {c.queue, *c.lease};
        break;
      case change::op::drop_leases:
        leases_.clear();
        break;
    }
  }
  ids_up_to_ = std::max(ids_up_to_, b.ids_up_to);
  return conflicts;
}

store::contents state::load() const {
  store::contents all;
  all.ids_up_to = ids_up_to_;
  for (const auto& [number, q] : queues_) {
    all.queues.push_back({number, q.name, q.options, q.counts});
  }
  for (const auto& [id, saved] : leases_) {
    const auto at = jobs_.find(id);
    if (at == jobs_.end() || at->second.it->state != job_state::ready) continue;
    all.leases.push_back({at->second.it, saved.first, saved.second});
  }
  return all;
}

std::vector<job_ptr> state::ready_after(queue_number queue, position after,
                                        page_limit limit) const {
  std::vector<job_ptr> page;
  const auto q = queues_.find(queue);
  if (q == queues_.end()) return page;
  std::uint64_t bytes = 0;
  for (auto at = q->second.ready.upper_bound(after); at != q->second.ready.end(); ++at) {
    if (page.size() >= limit.jobs || bytes >= limit.bytes) break;
    page.push_back(jobs_.at(at->second).it);
    bytes += weight_of(page.back()->spec);
  }
  return page;
}

due_page state::due(unix_time now, std::size_t limit) const {
  due_page page;
  std::uint64_t bytes = 0;
  for (const auto& [when, id] : due_) {
    if (when > now || page.jobs.size() >= limit || bytes >= page_limit{}.bytes) {
      page.next = when;
      break;
    }
    page.jobs.push_back(jobs_.at(id).it);
    bytes += weight_of(page.jobs.back()->spec);
  }
  return page;
}

std::vector<job_ptr> state::victims(queue_number queue, victim which, std::size_t limit,
                                    const std::function<bool(job_id)>& skip) const {
  std::vector<job_ptr> found;
  const auto q = queues_.find(queue);
  if (q == queues_.end()) return found;
  const auto& ready = q->second.ready;
  std::uint64_t bytes = 0;
  const auto wants_more = [&] { return found.size() < limit && bytes < page_limit{}.bytes; };
  const auto take = [&](job_id id) {
    if (skip(id)) return true;
    found.push_back(jobs_.at(id).it);
    bytes += weight_of(found.back()->spec);
    return wants_more();
  };
  // One priority after the other from the back, in each by arrival.
  for (auto end = ready.end(); end != ready.begin() && wants_more();) {
    const auto first = ready.lower_bound({std::prev(end)->first.priority, 0});
    if (which == victim::oldest) {
      for (auto at = first; at != end && take(at->second);) ++at;
    } else {
      for (auto at = end; at != first && take(std::prev(at)->second);) --at;
    }
    end = first;
  }
  return found;
}

std::optional<job> state::get(job_id id) const {
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return std::nullopt;
  return *at->second.it;
}

job_page state::list(const job_filter& filter, job_id after, std::size_t limit) const {
  job_page page;
  std::size_t looked_at = 0;
  for (auto at = jobs_.upper_bound(after); at != jobs_.end(); ++at) {
    if (page.jobs.size() >= limit || looked_at >= looked_at_least + looked_at_for_each * limit) {
      page.cursor = std::prev(at)->first;
      break;
    }
    ++looked_at;
    const auto& [it, queue] = at->second;
    if (filter.queue && *filter.queue != queue) continue;
    if (filter.state && *filter.state != it->state) continue;
    if (!filter.kind.empty() && filter.kind != it->spec.kind) continue;
    page.jobs.push_back(*it);
  }
  return page;
}

}  // namespace

class memory_contents {
 public:
  guarded<state> all;
};

namespace {

class memory_reader final : public store_reader {
 public:
  explicit memory_reader(std::shared_ptr<memory_contents> from) : from_(std::move(from)) {}

  result<std::optional<job>> get(job_id id) override {
    return from_->all.with([&](state& s) { return s.get(id); });
  }
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit) override {
    return from_->all.with([&](state& s) { return s.list(filter, after, limit); });
  }

 private:
  std::shared_ptr<memory_contents> from_;
};

class memory_store final : public store {
 public:
  explicit memory_store(memory_options o)
      : options_(std::move(o)),
        contents_(options_.contents ? options_.contents : make_memory_contents()),
        looking_(contents_) {}

  result<contents> load() override {
    return contents_->all.with([](state& s) { return s.load(); });
  }
  result<std::vector<conflict>> apply(const batch& b) override {
    if (options_.before_apply) {
      if (auto why = options_.before_apply(b)) return std::move(*why);
    }
    return contents_->all.with([&](state& s) { return s.apply(b); });
  }
  void_result flush() override {
    if (options_.before_flush) {
      if (auto why = options_.before_flush()) return std::move(*why);
    }
    return done{};
  }
  result<std::vector<job_ptr>> ready_after(queue_number queue, position after,
                                           page_limit limit) override {
    return contents_->all.with([&](state& s) { return s.ready_after(queue, after, limit); });
  }
  result<due_page> due(unix_time now, std::size_t limit) override {
    return contents_->all.with([&](state& s) { return s.due(now, limit); });
  }
  result<std::vector<job_ptr>> victims(queue_number queue, victim which, std::size_t limit,
                                       const std::function<bool(job_id)>& skip) override {
    return contents_->all.with([&](state& s) { return s.victims(queue, which, limit, skip); });
  }
  result<std::optional<job>> get(job_id id) override { return looking_.get(id); }
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit) override {
    return looking_.list(filter, after, limit);
  }
  std::optional<std::uint64_t> room() override {
    return options_.room ? options_.room() : std::nullopt;
  }
  std::unique_ptr<store_reader> reader() override {
    return std::make_unique<memory_reader>(contents_);
  }
  std::string describe() const override { return "memory, gone when the process ends"; }

 private:
  memory_options options_;
  std::shared_ptr<memory_contents> contents_;
  memory_reader looking_;
};

}  // namespace

std::shared_ptr<memory_contents> make_memory_contents() {
  return std::make_shared<memory_contents>();
}

std::unique_ptr<store> make_memory_store(memory_options options) {
  return std::make_unique<memory_store>(std::move(options));
}

}  // namespace sluice::jobs
