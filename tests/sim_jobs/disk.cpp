#include "tests/sim_jobs/disk.hpp"

#include <string>
#include <utility>
#include <vector>

#include "sluice/base/deadline.hpp"
#include "sluice/sync/event.hpp"

namespace sluice::sim_jobs {

using namespace std::chrono_literals;
using jobs::change;
using jobs::error;
using jobs::error_code;
using jobs::job_id;
using jobs::job_ptr;
using jobs::page_limit;
using jobs::position;
using jobs::queue_number;
using jobs::result;
using jobs::transaction;

namespace {

template <class T>
std::unique_ptr<T> copy(const std::unique_ptr<T>& from) {
  return from == nullptr ? nullptr : std::make_unique<T>(*from);
}

// A deep copy: after a failure the engine may change the jobs of its transaction.
transaction copy(const transaction& from) {
  transaction made{.now = from.now, .ids_up_to = from.ids_up_to, .changes = {}};
  for (const change& c : from.changes) {
    change& copied = made.changes.emplace_back();
    copied.type = c.type;
    copied.from = c.from;
    copied.new_state = c.new_state;
    copied.queue = c.queue;
    copied.id = c.id;
    copied.weight = c.weight;
    copied.group = c.group;
    if (c.job != nullptr) copied.job = std::make_shared<jobs::job>(*c.job);
    copied.fields = copy(c.fields);
    copied.settings = copy(c.settings);
    copied.lease = copy(c.lease);
    copied.batch = copy(c.batch);
    copied.cron = copy(c.cron);
    copied.logs = copy(c.logs);
  }
  return made;
}

bool adds(const transaction& b) {
  for (const change& c : b.changes) {
    if (c.type == change::op::add) return true;
  }
  return false;
}

error no_power() {
  return {error_code::io_error, "the power is off"};
}

const char* name_of(change::op type) {
  switch (type) {
    case change::op::add:
      return "add";
    case change::op::move:
      return "move";
    case change::op::drop:
      return "drop";
    default:
      return "other";
  }
}

}  // namespace

void pass(std::chrono::nanoseconds time) {
  event never_set;
  (void)never_set.wait(time);
}

void disk_counts::add(const disk_counts& more) {
  for (const auto count :
       {&disk_counts::commits, &disk_counts::failed, &disk_counts::slow, &disk_counts::refused_full,
        &disk_counts::reads, &disk_counts::reads_failed, &disk_counts::cut_before,
        &disk_counts::cut_after, &disk_counts::cut_reading, &disk_counts::doubts_done,
        &disk_counts::doubts_gone, &disk_counts::changes}) {
    this->*count += more.*count;
  }
}

class disk_reader final : public jobs::store_reader {
 public:
  disk_reader(disk& of, std::unique_ptr<jobs::store_reader> inner)
      : disk_(of), inner_(std::move(inner)) {}

  result<std::optional<jobs::job>> get(job_id id) override {
    if (auto why = disk_.before_read("reader get")) return *std::move(why);
    return inner_->get(id);
  }
  result<jobs::job_page> list(const jobs::job_filter& f, job_id after, std::size_t n) override {
    if (auto why = disk_.before_read("reader list")) return *std::move(why);
    return inner_->list(f, after, n);
  }
  result<std::optional<jobs::batch_info>> get_batch(job_id id) override {
    if (auto why = disk_.before_read("reader get_batch")) return *std::move(why);
    return inner_->get_batch(id);
  }
  result<jobs::batch_page> list_batches(job_id after, std::size_t n) override {
    if (auto why = disk_.before_read("reader list_batches")) return *std::move(why);
    return inner_->list_batches(after, n);
  }
  result<jobs::log_page> logs(job_id id, std::uint64_t after, std::size_t n) override {
    if (auto why = disk_.before_read("reader logs")) return *std::move(why);
    return inner_->logs(id, after, n);
  }

 private:
  disk& disk_;
  std::unique_ptr<jobs::store_reader> inner_;
};

class disk_store final : public jobs::store {
 public:
  disk_store(disk& of, std::unique_ptr<jobs::store> inner)
      : disk_(of), inner_(std::move(inner)), reader_(of, inner_->reader()) {}

  result<contents> load() override {
    if (auto why = disk_.before_read("load")) return *std::move(why);
    return inner_->load();
  }
  result<jobs::applied> apply(const transaction& b) override { return disk_.apply(*inner_, b); }
  jobs::void_result flush() override {
    if (disk_.is_off()) return no_power();
    return inner_->flush();
  }
  result<std::vector<job_ptr>> ready_after(queue_number q, position after, page_limit l) override {
    if (auto why = disk_.before_read("ready_after")) return *std::move(why);
    return inner_->ready_after(q, after, l);
  }
  result<jobs::due_page> due(unix_time now, std::size_t limit) override {
    if (auto why = disk_.before_read("due")) return *std::move(why);
    return inner_->due(now, limit);
  }
  result<jobs::timed_page> timed_after(queue_number q, jobs::due_place after,
                                       std::size_t limit) override {
    if (auto why = disk_.before_read("timed_after")) return *std::move(why);
    return inner_->timed_after(q, after, limit);
  }
  result<std::vector<job_ptr>> victims(queue_number q, jobs::victim which, std::size_t limit,
                                       const std::function<bool(job_id)>& skip) override {
    if (auto why = disk_.before_read("victims")) return *std::move(why);
    return inner_->victims(q, which, limit, skip);
  }
  result<std::optional<jobs::job>> get(job_id id) override { return reader_.get(id); }
  result<jobs::job_page> list(const jobs::job_filter& f, job_id after, std::size_t n) override {
    return reader_.list(f, after, n);
  }
  result<std::optional<jobs::batch_info>> get_batch(job_id id) override {
    return reader_.get_batch(id);
  }
  result<jobs::batch_page> list_batches(job_id after, std::size_t n) override {
    return reader_.list_batches(after, n);
  }
  result<jobs::log_page> logs(job_id id, std::uint64_t after, std::size_t n) override {
    return reader_.logs(id, after, n);
  }
  std::optional<std::uint64_t> free_bytes() override {
    return disk_.is_full() ? std::optional<std::uint64_t>(disk_.chance_.below(4096)) : std::nullopt;
  }
  std::unique_ptr<jobs::store_reader> reader() override {
    return std::make_unique<disk_reader>(disk_, inner_->reader());
  }
  std::string describe() const override { return "a simulated disk"; }

 private:
  disk& disk_;
  std::unique_ptr<jobs::store> inner_;
  disk_reader reader_;
};

std::unique_ptr<jobs::store> disk::open() {
  return std::make_unique<disk_store>(*this, jobs::make_memory_store({.contents = contents_}));
}

void disk::cut_after(std::uint32_t calls) {
  calls_left_ = calls;
  if (calls == 0) off_ = true;
}

bool disk::is_cut_by_this_call() {
  if (!calls_left_ || off_) return false;
  if (*calls_left_ > 0) --*calls_left_;
  return *calls_left_ == 0;
}

bool disk::is_full() const {
  return jobs::real_time().now() < full_until_;
}

std::optional<error> disk::before_read(const char* operation) {
  if (off_) return no_power();
  ++counts_.reads;
  off_ = is_cut_by_this_call();
  const bool fails = off_ || once_in(habits_.reads_fail);
  log_.add("disk %s%s", operation, off_ ? ": the power goes" : fails ? ": fails" : "");
  if (off_) {
    ++counts_.cut_reading;
    return no_power();
  }
  if (!fails) return std::nullopt;
  ++counts_.reads_failed;
  return error{error_code::io_error, "cannot be read"};
}

disk::fate disk::decide(const transaction& b) {
  if (off_) return fate::off;
  if (is_cut_by_this_call()) return chance_.below(2) == 0 ? fate::cut_before : fate::cut_after;
  if (once_in(habits_.full)) {
    full_until_ = jobs::real_time().now() + milliseconds(1 + chance_.below(200));
  }
  if (is_full() && adds(b)) return fate::full;
  if (once_in(habits_.fails)) return fate::fails;
  return fate::done;
}

result<jobs::applied> disk::apply(jobs::store& on, const transaction& b) {
  if (off_) return no_power();
  const bool is_slow = once_in(habits_.slow);
  if (is_slow) ++counts_.slow;
  pass(std::chrono::microseconds(20 + chance_.below(is_slow ? 300'000 : 2'000)));
  const fate outcome = decide(b);
  for (const change& c : b.changes) {
    log_.add("  %s %llu of queue %u: %d to %d", name_of(c.type),
             static_cast<unsigned long long>(c.job != nullptr && c.id == 0 ? c.job->id : c.id),
             c.queue, static_cast<int>(c.from), static_cast<int>(c.new_state));
  }
  static constexpr const char* names[] = {
      "done", "no power", "power cut before", "power cut after", "fails", "full"};
  log_.add("disk apply %zu: %s", b.changes.size(), names[static_cast<std::size_t>(outcome)]);
  if (outcome != fate::off && outcome != fate::cut_before && outcome != fate::cut_after)
    in_doubt_.reset();
  switch (outcome) {
    case fate::done:
      break;
    case fate::cut_after:
      ++counts_.cut_after;
      off_ = true;
      in_doubt_.reset();  // a later transaction was applied
      (void)on.apply(copy(b));
      return no_power();
    case fate::cut_before:
      ++counts_.cut_before;
      off_ = true;
      return no_power();
    case fate::off:
      return no_power();
    case fate::fails:
      ++counts_.failed;
      in_doubt_ = copy(b);
      if (calls_left_ && once_in(4)) calls_left_ = 1;  // a failure is often followed by a power cut
      return error{error_code::io_error, "cannot be written"};
    case fate::full:
      ++counts_.refused_full;
      return error{error_code::disk_full, "is full"};
  }
  ++counts_.commits;
  counts_.changes += b.changes.size();
  if (crimes_.revives > 0) {
    for (const change& c : b.changes) {
      if (c.type != change::op::drop || c.new_state != jobs::job_state::done) continue;
      if (const auto found = on.get(c.id); found && *found) {
        last_ended_ = std::make_shared<jobs::job>(**found);
      }
    }
  }
  return on.apply(b);
}

void disk::commit_crimes(jobs::store& on) {
  const auto now = jobs::real_time().now();
  const auto page = on.list({.state = jobs::job_state::ready}, 0, 1);
  if (once_in(crimes_.eats) && page && !page->jobs.empty()) {
    const jobs::job& victim = page->jobs.front();
    const auto contents = on.load();
    transaction b{.now = now, .ids_up_to = 0, .changes = {}};
    change& c = b.changes.emplace_back();
    c.type = change::op::drop;
    c.id = victim.id;
    c.new_state = jobs::job_state::done;
    c.weight = weight_of(victim.spec);
    c.job = std::make_shared<jobs::job>(victim);
    for (const auto& q : contents->queues) {
      if (q.name == victim.spec.queue) c.queue = q.number;
    }
    (void)on.apply(b);
  }
  if (once_in(crimes_.revives) && last_ended_ != nullptr) {
    auto contents = on.load();
    auto again = std::make_shared<jobs::job>(*last_ended_);
    again->id = contents->ids_up_to + 1;
    again->state = jobs::job_state::ready;
    again->spec.unique = {};
    transaction b{.now = now, .ids_up_to = again->id, .changes = {}};
    change& c = b.changes.emplace_back();
    c.type = change::op::add;
    c.id = again->id;
    for (const auto& q : contents->queues) {
      if (q.name == again->spec.queue) c.queue = q.number;
    }
    c.job = std::move(again);
    (void)on.apply(b);
    last_ended_.reset();
  }
}

void disk::power_on() {
  const auto store = jobs::make_memory_store({.contents = contents_});
  if (in_doubt_) {
    const bool is_there = chance_.below(2) == 0;
    ++(is_there ? counts_.doubts_done : counts_.doubts_gone);
    log_.add("disk: a failed transaction is %s", is_there ? "there nonetheless" : "not there");
    if (is_there) (void)store->apply(*in_doubt_);
  }
  commit_crimes(*store);
  in_doubt_.reset();
  calls_left_.reset();
  off_ = false;
  full_until_ = {};
}

}  // namespace sluice::sim_jobs
