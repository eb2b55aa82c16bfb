#include "jobs/protocol/faktory/detail/sweep.hpp"

#include <utility>

#include "jobs/protocol/faktory/detail/faktory_job.hpp"
#include "jobs/protocol/faktory/detail/outcome.hpp"

namespace sluice::jobs::faktory {
namespace {

constexpr std::size_t page_jobs = 500;
constexpr std::size_t searched_bytes_max = std::size_t{64} << 10;
// Bytes that are searched before others have their turn: about a millisecond.
constexpr std::size_t work_a_turn = std::size_t{256} << 10;

class sweep : public std::enable_shared_from_this<sweep> {
 public:
  sweep(engine& jobs, protocol::client& on, sweep_request what,
        std::function<void(void_result)> then)
      : jobs_(jobs), on_(on), what_(std::move(what)), then_(std::move(then)) {
    what_.which.limit = page_jobs;
    if (!what_.pattern.empty()) pattern_.emplace(what_.pattern);
  }

  void next_page() {
    if (on_.is_gone() || what_.until.stop_requested()) return then_(engine_is_over());
    on_.when_done(jobs_.list(what_.which),
                  [me = shared_from_this()](auto got) { me->on_page(outcome_of(std::move(got))); });
  }

 private:
  void on_page(result<job_page> page) {
    if (!page) return then_(page.error());
    cursor_ = page->cursor;
    jobs_of_page_ = std::move(page->jobs);
    looked_at_ = 0;
    open_ = 1;  // this
    look_on();
  }

  void look_on() {
    if (looked_at_ > 0 && what_.until.stop_requested()) {
      wrong_ = engine_is_over();
      looked_at_ = jobs_of_page_.size();
    }
    for (std::size_t work = 0; looked_at_ < jobs_of_page_.size(); ++looked_at_) {
      if (work > work_a_turn) {
        return what_.in_next_turn([me = shared_from_this()] { me->look_on(); });
      }
      const job& j = jobs_of_page_[looked_at_];
      if (!is_meant(j, work)) continue;
      ++open_;
      act_on(j.id);
    }
    jobs_of_page_.clear();
    one_done();
  }

  bool is_meant(const job& j, std::size_t& work) {
    if (is_servers_own(j.spec.queue)) return false;
    if (what_.jids.empty() && !pattern_) return true;
    const job_facts facts = facts_of(j);
    if (!what_.jids.empty() && !what_.jids.contains(facts.jid)) return false;
    if (!pattern_) return true;
    text_.clear();
    write_job(text_, j, facts);
    const std::string_view searched = std::string_view(text_).substr(0, searched_bytes_max);
    work += text_.size() + searched.size() * pattern_->cost();
    return pattern_->matches(searched);
  }

  void act_on(job_id id) {
    const auto done_one = [me = shared_from_this()](auto ended) {
      me->one_done(outcome_of(std::move(ended)));
    };
    switch (what_.what) {
      case sweep_request::act::discard:
        return on_.when_done(jobs_.remove(id), done_one);
      case sweep_request::act::requeue:
        return on_.when_done(jobs_.retry(id), done_one);
      case sweep_request::act::kill: {
        failure why;
        why.type = "Killed";
        why.message = "killed by MUTATE";
        return on_.when_done(jobs_.kill(id, std::move(why)), done_one);
      }
    }
  }

  template <class T>
  void one_done(const result<T>& got) {
    if (!got && !came_too_late(got.error()) && !wrong_) wrong_ = got.error();
    one_done();
  }

  void one_done() {
    if (--open_ > 0) return;
    if (wrong_) return then_(*wrong_);
    if (!cursor_) return then_(done{});
    what_.which.after = *cursor_;
    next_page();
  }

  engine& jobs_;
  protocol::client& on_;
  sweep_request what_;
  std::function<void(void_result)> then_;
  std::optional<pattern> pattern_;
  std::vector<job> jobs_of_page_;
  std::size_t looked_at_ = 0;  // of these
  std::optional<job_id> cursor_;
  std::size_t open_ = 0;        // jobs of this page that are not done
  std::optional<error> wrong_;  // the first of them: no further page
  std::string text_;
};

}  // namespace

void begin_sweep(engine& jobs, protocol::client& on, sweep_request what,
                 std::function<void(void_result)> then) {
  std::make_shared<sweep>(jobs, on, std::move(what), std::move(then))->next_page();
}

}  // namespace sluice::jobs::faktory
