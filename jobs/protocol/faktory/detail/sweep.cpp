#include "jobs/protocol/faktory/detail/sweep.hpp"

#include <utility>

#include "jobs/protocol/faktory/detail/faktory_job.hpp"
#include "jobs/protocol/faktory/detail/outcome.hpp"

namespace sluice::jobs::faktory {
namespace {

constexpr std::size_t page_jobs = 500;
constexpr std::size_t searched_bytes_max = std::size_t{64} << 10;
// Bytes searched before the sweep yields: about a millisecond.
constexpr std::size_t work_per_turn = std::size_t{256} << 10;

class sweep : public std::enable_shared_from_this<sweep> {
 public:
  sweep(engine& jobs, protocol::client& client, sweep_request request,
        std::function<void(void_result)> then)
      : jobs_(jobs), client_(client), request_(std::move(request)), then_(std::move(then)) {
    request_.filter.limit = page_jobs;
    if (!request_.pattern.empty()) pattern_.emplace(request_.pattern);
  }

  void next_page() {
    if (client_.is_gone() || request_.stop.stop_requested()) return then_(shutdown_error());
    client_.when_done(jobs_.list(request_.filter), [me = shared_from_this()](auto got) {
      me->on_page(outcome_of(std::move(got)));
    });
  }

 private:
  void on_page(result<job_page> page) {
    if (!page) return then_(page.error());
    cursor_ = page->cursor;
    jobs_of_page_ = std::move(page->jobs);
    processed_ = 0;
    open_ = 1;  // the page itself
    process_page();
  }

  void process_page() {
    if (processed_ > 0 && request_.stop.stop_requested()) {
      first_error_ = shutdown_error();
      processed_ = jobs_of_page_.size();
    }
    for (std::size_t work = 0; processed_ < jobs_of_page_.size(); ++processed_) {
      if (work > work_per_turn) {
        return request_.defer([me = shared_from_this()] { me->process_page(); });
      }
      const job& j = jobs_of_page_[processed_];
      if (!is_selected(j, work)) continue;
      ++open_;
      act_on(j.id);
    }
    jobs_of_page_.clear();
    end_call();
  }

  bool is_selected(const job& j, std::size_t& work) {
    if (is_servers_own(j.spec.queue)) return false;
    if (request_.jids.empty() && !pattern_) return true;
    const job_facts facts = facts_of(j);
    if (!request_.jids.empty() && !request_.jids.contains(facts.jid)) return false;
    if (!pattern_) return true;
    text_.clear();
    write_job(text_, j, facts);
    const std::string_view searched = std::string_view(text_).substr(0, searched_bytes_max);
    work += text_.size() + searched.size() * pattern_->cost();
    return pattern_->matches(searched);
  }

  void act_on(job_id id) {
    const auto on_end = [me = shared_from_this()](auto ended) {
      me->end_call(outcome_of(std::move(ended)));
    };
    switch (request_.action) {
      case sweep_request::act::discard:
        return client_.when_done(jobs_.remove(id), on_end);
      case sweep_request::act::requeue:
        return client_.when_done(jobs_.retry(id), on_end);
      case sweep_request::act::kill: {
        failure why;
        why.type = "Killed";
        why.message = "killed by MUTATE";
        return client_.when_done(jobs_.kill(id, std::move(why)), on_end);
      }
    }
  }

  template <class T>
  void end_call(const result<T>& got) {
    if (!got && !is_too_late(got.error()) && !first_error_) first_error_ = got.error();
    end_call();
  }

  void end_call() {
    if (--open_ > 0) return;
    if (first_error_) return then_(*first_error_);
    if (!cursor_) return then_(done{});
    request_.filter.after = *cursor_;
    next_page();
  }

  engine& jobs_;
  protocol::client& client_;
  sweep_request request_;
  std::function<void(void_result)> then_;
  std::optional<pattern> pattern_;
  std::vector<job> jobs_of_page_;
  std::size_t processed_ = 0;  // of jobs_of_page_
  std::optional<job_id> cursor_;
  std::size_t open_ = 0;              // pending actions of this page
  std::optional<error> first_error_;  // ends the sweep after this page
  std::string text_;
};

}  // namespace

void begin_sweep(engine& jobs, protocol::client& client, sweep_request request,
                 std::function<void(void_result)> then) {
  std::make_shared<sweep>(jobs, client, std::move(request), std::move(then))->next_page();
}

}  // namespace sluice::jobs::faktory
