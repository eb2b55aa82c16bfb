#pragma once

// Replies that are determined while the engine's lock is held and sent after it was released: a
// continuation of a future may call the engine again.

#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "jobs/model/batch.hpp"
#include "jobs/model/cron.hpp"
#include "jobs/model/events.hpp"
#include "jobs/model/requests.hpp"
#include "sluice/base/unique_function.hpp"
#include "sluice/future/promise.hpp"

namespace sluice::jobs::detail {

class waiting;

inline error shutting_down() {
  return {error_code::shutting_down, "the server is shutting down"};
}

template <class T>
struct answer {
  promise<T> reply;
  T value;
};

class answers {
 public:
  answers() = default;
  answers(const answers&) = delete;
  answers& operator=(const answers&) = delete;
  ~answers();

  template <class T>
  void add(promise<T> reply, T value) {
    std::get<std::vector<answer<T>>>(all_).push_back({std::move(reply), std::move(value)});
  }
  // Destroys an ended wait together with the replies: its stop callbacks may be running and may
  // need the lock.
  void destroy_later(std::unique_ptr<waiting> ended);

  void deliver() noexcept;

  bool wake_committer = false;

 private:
  template <class T>
  using list = std::vector<answer<T>>;

  // Leases first: a worker can begin its job while the other replies are sent.
  std::tuple<list<result<std::vector<leased_job>>>, list<result<leased_job>>,
             list<result<push_receipt>>, list<std::vector<result<push_receipt>>>, list<void_result>,
             list<std::vector<void_result>>, list<result<fail_receipt>>, list<result<job>>,
             list<result<job_ptr>>, list<result<job_page>>, list<result<queue_info>>,
             list<result<std::uint64_t>>, list<result<batch_receipt>>, list<result<batch_info>>,
             list<result<cron_info>>, list<result<event_page>>, list<result<kicked_jobs>>,
             list<status>>
      all_;
  std::vector<std::unique_ptr<waiting>> ended_;
};

// Where one of possibly many results is put: into a promise of its own, or into the list for one
// promise, which is set when all results are there.
template <class T>
class reply {
 public:
  struct many {
    promise<std::vector<T>> reply;
    std::vector<std::optional<T>> results;
    std::size_t open = 0;
  };

  reply() = default;  // no caller
  explicit reply(promise<T> one) : one_(std::move(one)) {}
  reply(std::shared_ptr<many> list, std::size_t index) : many_(std::move(list)), index_(index) {}

  static std::shared_ptr<many> make_many(promise<std::vector<T>> reply, std::size_t count) {
    return std::make_shared<many>(
        many{std::move(reply), std::vector<std::optional<T>>(count), count});
  }

  void give(T value, answers& out) {
    if (one_) {
      out.add(std::move(*one_), std::move(value));
    } else if (many_ != nullptr) {
      many_->results[index_].emplace(std::move(value));
      if (--many_->open == 0) finish(*many_, out);
      many_.reset();
    }
  }

 private:
  static void finish(many& m, answers& out) {
    std::vector<T> all;
    all.reserve(m.results.size());
    for (std::optional<T>& r : m.results) all.push_back(std::move(*r));
    out.add(std::move(m.reply), std::move(all));
  }

  std::optional<promise<T>> one_;
  std::shared_ptr<many> many_;
  std::size_t index_ = 0;
};

using push_reply = reply<result<push_receipt>>;
using ack_reply = reply<void_result>;

}  // namespace sluice::jobs::detail
