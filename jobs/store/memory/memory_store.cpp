#include "jobs/store/memory/memory_store.hpp"

#include <utility>

#include "jobs/store/memory/detail/memory_state.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs {

using detail::memory_state;

class memory_contents {
 public:
  guarded<memory_state> all;
};

namespace {

class memory_reader final : public store_reader {
 public:
  explicit memory_reader(std::shared_ptr<memory_contents> from) : from_(std::move(from)) {}

  result<std::optional<job>> get(job_id id) override {
    return from_->all.with([&](memory_state& s) { return s.get(id); });
  }
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit) override {
    return from_->all.with([&](memory_state& s) { return s.list(filter, after, limit); });
  }
  result<std::optional<batch_info>> get_batch(job_id id) override {
    return from_->all.with([&](memory_state& s) { return s.get_batch(id); });
  }
  result<batch_page> list_batches(job_id after, std::size_t limit) override {
    return from_->all.with([&](memory_state& s) { return s.list_batches(after, limit); });
  }
  result<log_page> logs(job_id id, std::uint64_t after, std::size_t limit) override {
    return from_->all.with([&](memory_state& s) { return s.logs(id, after, limit); });
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
    return contents_->all.with([](memory_state& s) { return s.load(); });
  }
  result<applied> apply(const transaction& t) override {
    if (options_.before_apply) {
      if (auto failure = options_.before_apply(t)) return std::move(*failure);
    }
    return contents_->all.with([&](memory_state& s) { return s.apply(t); });
  }
  void_result flush() override {
    if (options_.before_flush) {
      if (auto failure = options_.before_flush()) return std::move(*failure);
    }
    return done{};
  }
  result<std::vector<job_ptr>> ready_after(queue_number queue, position after,
                                           page_limit limit) override {
    return contents_->all.with([&](memory_state& s) { return s.ready_after(queue, after, limit); });
  }
  result<due_page> due(unix_time now, std::size_t limit) override {
    return contents_->all.with([&](memory_state& s) { return s.due(now, limit); });
  }
  result<timed_page> timed_after(queue_number queue, due_place after, std::size_t limit) override {
    return contents_->all.with([&](memory_state& s) { return s.timed_after(queue, after, limit); });
  }
  result<std::vector<job_ptr>> victims(queue_number queue, victim which, std::size_t limit,
                                       const std::function<bool(job_id)>& skip) override {
    return contents_->all.with(
        [&](memory_state& s) { return s.victims(queue, which, limit, skip); });
  }
  result<std::optional<job>> get(job_id id) override { return looking_.get(id); }
  result<job_page> list(const job_filter& filter, job_id after, std::size_t limit) override {
    return looking_.list(filter, after, limit);
  }
  result<std::optional<batch_info>> get_batch(job_id id) override { return looking_.get_batch(id); }
  result<batch_page> list_batches(job_id after, std::size_t limit) override {
    return looking_.list_batches(after, limit);
  }
  result<log_page> logs(job_id id, std::uint64_t after, std::size_t limit) override {
    return looking_.logs(id, after, limit);
  }
  std::optional<std::uint64_t> free_bytes() override {
    return options_.free_bytes ? options_.free_bytes() : std::nullopt;
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
