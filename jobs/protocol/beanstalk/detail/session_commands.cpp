// The commands of a session except put and reserve.
#include <algorithm>
#include <array>
#include <charconv>

#include "jobs/model/own_queue.hpp"
#include "jobs/protocol/beanstalk/detail/beanstalk_session.hpp"
#include "jobs/protocol/beanstalk/detail/session_words.hpp"
#include "jobs/protocol/beanstalk/detail/stats.hpp"
#include "sluice/base/seam.hpp"

namespace sluice::jobs::beanstalk {
namespace {

constexpr std::size_t watched_max = 1000;  // the limit of queues of a lease
constexpr std::size_t queues_without_yield = 100;
constexpr std::size_t scratch_bytes_kept = std::size_t{64} << 10;

// Returns the reply for the result of a call about one job.
template <class T>
std::string_view word_of(const settled<result<T>>& ended, std::string_view success) {
  if (!ended) return words::internal_error;
  const result<T>& outcome = ended.value();
  if (outcome) return success;
  switch (outcome.error().code) {
    case error_code::not_found:
    case error_code::wrong_state:
    case error_code::lease_lost:
      return words::not_found;
    case error_code::queue_full:
    case error_code::overloaded:
    case error_code::disk_full:
      return words::out_of_memory;
    default:
      return words::internal_error;
  }
}

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

// Returns whether clients can see the job: not ended, or buried; not in a server's own queue.
bool is_for_clients(const job& j, unix_time now) {
  return !state_word(j, now).empty() && !is_servers_own(j.spec.queue);
}

template <class T>
bool is_done(const settled<result<T>>& ended) {
  return ended && ended.value();
}

}  // namespace

void beanstalk_session::run(const command& c, std::string_view line, std::string_view after) {
  switch (c.action) {
    case verb::put:
      break;  // handled with its body, in `step`
    case verb::reserve:
    case verb::reserve_with_timeout:
      return reserve(c, line, after);
    case verb::reserve_job:
      return reserve_job(c);
    case verb::delete_:
      return delete_job(c);
    case verb::release:
      return release_job(c);
    case verb::bury:
      return bury(c);
    case verb::touch:
      return touch(c);
    case verb::use:
      return use(c);
    case verb::watch:
      return watch(c);
    case verb::ignore:
      return ignore(c);
    case verb::peek:
    case verb::peek_ready:
    case verb::peek_delayed:
    case verb::peek_buried:
      return peek(c);
    case verb::kick:
      return kick(c);
    case verb::kick_job:
      return kick_job(c);
    case verb::stats:
    case verb::list_tubes:
      return report_all(c);
    case verb::stats_job:
      return stats_job(c);
    case verb::stats_tube:
      return stats_tube(c);
    case verb::list_tube_used:
      return client_.respond("USING " + used_->name + "\r\n");
    case verb::list_tubes_watched:
      return list_watched();
    case verb::pause_tube:
      return pause_tube(c);
    case verb::quit:
      leave();
      return client_.end();
  }
}

// Ends of reserved jobs.

void beanstalk_session::delete_job(const command& c) {
  reserved_job* const held = reserved_.find(c.number);
  if (held == nullptr) return delete_unreserved(client_.open(), c.number);
  if (held->from != nullptr) held->from->deletes.fetch_add(1, relaxed);
  deletes_.push_back({client_.open(), std::move(*held)});
  reserved_.erase(held);
}

void beanstalk_session::flush_deletes() {
  if (deletes_.empty()) return;
  ++delete_calls_;
  std::vector<pending_delete> deletes = std::exchange(deletes_, {});
  deletes_.reserve(deletes.size());  // the next group likely has the same size
  server_.reserved.fetch_sub(deletes.size(), relaxed);
  std::vector<ack_item> items(deletes.size());
  for (std::size_t i = 0; i < deletes.size(); ++i) items[i].lease = deletes[i].job.lease;
  client_.when_done(
      server_.jobs.ack_many(std::move(items)),
      [this, deletes = std::move(deletes)](settled<std::vector<void_result>> ended) mutable {
        --delete_calls_;
        deletes_ended(std::move(deletes), std::move(ended));
      });
}

void beanstalk_session::deletes_ended(std::vector<pending_delete> deletes,
                                      settled<std::vector<void_result>> ended) {
  for (std::size_t i = 0; i < deletes.size(); ++i) {
    pending_delete& each = deletes[i];
    if (!ended) {
      client_.answer(each.number, words::internal_error);
    } else if (const void_result& outcome = ended.value()[i]; outcome) {
      client_.answer(each.number, words::deleted);
    } else if (outcome.error().code == error_code::lease_lost) {
      // The lease has expired; but any client may delete a job that is not reserved.
      delete_unreserved(each.number, each.job.lease.job);
    } else {
      client_.answer(each.number, outcome.error().code == error_code::overloaded
                                      ? words::out_of_memory
                                      : words::internal_error);
      keep_reserved(std::move(each.job));
    }
  }
  if (delete_calls_ == 0 && std::exchange(retries_after_deletes_, false)) retry_after_deletes();
}

// An ended job may be retained by its queue; in this protocol it no longer exists.
void beanstalk_session::delete_unreserved(reply number, job_id id) {
  call(server_.jobs.get(id), [this, number, id](settled<result<job>> found) {
    if (!is_done(found)) return client_.answer(number, word_of(found, {}));
    const job& j = found.value().value();
    if (j.state == job_state::running || !is_for_clients(j, server_.time.now())) {
      return client_.answer(number, words::not_found);
    }
    if (const tube_ptr from = server_.tubes.find(j.spec.queue)) from->deletes.fetch_add(1, relaxed);
    call(server_.jobs.remove(id), [this, number](settled<void_result> gone) {
      client_.answer(number, word_of(gone, words::deleted));
    });
  });
}

reserved_job beanstalk_session::take_reserved(job_id id) {
  reserved_job* const held = reserved_.find(id);
  if (held == nullptr) return {};
  reserved_job taken = std::move(*held);
  reserved_.erase(held);
  server_.reserved.fetch_sub(1, relaxed);
  return taken;
}

void beanstalk_session::keep_reserved(reserved_job job) {
  if (is_gone_) return release_leases({job.lease});
  earliest_ = std::min(earliest_, job.until);
  if (reserved_.insert(std::move(job))) server_.reserved.fetch_add(1, relaxed);
}

void beanstalk_session::release_job(const command& c) {
  const reserved_job held = take_reserved(c.number);
  if (held.lease.job == 0) return client_.respond(words::not_found);
  call(server_.jobs.release(held.lease,
                            {.delay = duration_of(c.delay), .priority = priority_of(c.pri)}),
       [this, number = client_.open(), held, delay = c.delay](settled<void_result> ended) {
         const std::string_view word = word_of(ended, words::released);
         client_.answer(number, word);
         if (word == words::released) return server_.notes.released(held.lease.job, delay);
         if (word != words::not_found) keep_reserved(held);
       });
}

void beanstalk_session::bury(const command& c) {
  const reserved_job held = take_reserved(c.number);
  if (held.lease.job == 0) return client_.respond(words::not_found);
  failure why;
  why.type = "buried";
  why.message = "buried by " + address_;
  why.for_good = true;
  why.priority = priority_of(c.pri);
  call(server_.jobs.fail(held.lease, std::move(why)),
       [this, number = client_.open(), held](settled<result<fail_receipt>> ended) {
         const std::string_view word = word_of(ended, words::buried);
         client_.answer(number, word);
         if (word != words::buried && word != words::not_found) keep_reserved(held);
       });
}

void beanstalk_session::touch(const command& c) {
  reserved_job* const held = reserved_.find(c.number);
  if (held == nullptr) return client_.respond(words::not_found);
  const result<extension> longer = server_.jobs.extend(held->lease);
  if (longer) {
    held->until = longer->until;
    return client_.respond(words::touched);
  }
  if (longer.error().code != error_code::lease_lost) return client_.respond(words::internal_error);
  (void)take_reserved(c.number);
  client_.respond(words::not_found);
}

void beanstalk_session::release_leases(std::vector<lease_ref> leases) {
  if (leases.empty()) return;
  const auto dropped = server_.jobs.release_many(std::move(leases));
}

void beanstalk_session::reserve_job(const command& c) {
  if (!std::exchange(is_worker_, true)) server_.workers.fetch_add(1, relaxed);
  if (!reserved_.empty() && earliest_ <= server_.time.now()) earliest_ = first_end();
  call(server_.jobs.get(c.number), [this, number = client_.open()](settled<result<job>> found) {
    if (!is_done(found)) return client_.answer(number, word_of(found, {}));
    const job& j = found.value().value();
    if (is_gone_ || !is_for_clients(j, server_.time.now())) {
      return client_.answer(number, words::not_found);
    }
    reserve_found(number, j);
  });
}

void beanstalk_session::reserve_found(reply number, const job& j) {
  const bool was_buried = j.state == job_state::dead;
  call(server_.jobs.lease_job(j.id, address_),
       [this, number, was_buried](settled<result<leased_job>> ended) {
         if (!is_done(ended)) return client_.answer(number, word_of(ended, {}));
         leased_job granted = std::move(ended).value().value();
         if (was_buried) server_.notes.taken_buried(granted.job->id);
         is_gone_ ? release_leases({granted.ref()}) : send_reserved(number, std::move(granted));
       });
}

// Tubes.

void beanstalk_session::use(const command& c) {
  tube_ptr next = server_.tubes.get(c.tube);
  if (next == nullptr) return client_.respond(words::out_of_memory);
  flush_puts();  // they belong to the previous tube
  used_->using_now.fetch_sub(1, relaxed);
  used_ = std::move(next);
  used_->using_now.fetch_add(1, relaxed);
  client_.respond("USING " + used_->name + "\r\n");
}

void beanstalk_session::watch(const command& c) {
  if (std::ranges::find(watched_queues_, c.tube) == watched_queues_.end()) {
    tube_ptr next = watched_.size() < watched_max ? server_.tubes.get(c.tube) : nullptr;
    if (next == nullptr) return client_.respond(words::out_of_memory);
    next->watching.fetch_add(1, relaxed);
    watched_.push_back(std::move(next));
    watched_queues_.emplace_back(c.tube);
  }
  answer_number(client_.open(), "WATCHING ", watched_.size());
}

void beanstalk_session::ignore(const command& c) {
  const auto at = std::ranges::find(watched_queues_, c.tube);
  if (at != watched_queues_.end()) {
    if (watched_.size() == 1) return client_.respond(words::not_ignored);
    const auto place = at - watched_queues_.begin();
    watched_[static_cast<std::size_t>(place)]->watching.fetch_sub(1, relaxed);
    watched_.erase(watched_.begin() + place);
    watched_queues_.erase(at);
  }
  answer_number(client_.open(), "WATCHING ", watched_.size());
}

void beanstalk_session::list_watched() {
  std::string text = "---\n";
  for (const tube_ptr& each : watched_) text += "- " + each->name + "\n";
  respond_text(text);
}

void beanstalk_session::pause_tube(const command& c) {
  if (is_servers_own(c.tube) || !has_tube(server_, c.tube))
    return client_.respond(words::not_found);
  const tube_ptr known = server_.tubes.get(c.tube);
  if (known == nullptr) return client_.respond(words::out_of_memory);
  known->pauses.fetch_add(1, relaxed);
  known->pause_seconds.store(c.delay, relaxed);
  const milliseconds time = duration_of(c.delay);
  if (server_.jobs.pause_for(c.tube, time)) return client_.respond(words::paused);
  // The tube has no queue yet: create it.
  call(server_.jobs.configure(known->name, {}),
       [this, number = client_.open(), known, time](settled<result<queue_info>> made) {
         const bool is_paused = is_done(made) && server_.jobs.pause_for(known->name, time);
         client_.answer(number, is_paused ? words::paused : words::internal_error);
       });
}

// Commands that only read.

void beanstalk_session::peek(const command& c) {
  const auto seen = [this, number = client_.open()](settled<result<job>> ended) {
    if (!is_done(ended)) return client_.answer(number, word_of(ended, {}));
    const job& j = ended.value().value();
    if (!is_for_clients(j, server_.time.now())) return client_.answer(number, words::not_found);
    answer_job(number, "FOUND ", j);
  };
  if (c.action == verb::peek) return call(server_.jobs.get(c.number), seen);
  const job_state state = c.action == verb::peek_ready     ? job_state::ready
                          : c.action == verb::peek_delayed ? job_state::scheduled
                                                           : job_state::dead;
  call(server_.jobs.peek(used_->name, state), seen);
}

void beanstalk_session::kick(const command& c) {
  const reply number = client_.open();
  if (c.number == 0) return answer_number(number, "KICKED ", 0);
  call(server_.jobs.kick(used_->name, c.number),
       [this, number](settled<result<kicked_jobs>> ended) {
         const bool is_unknown =
             ended && !ended.value() && ended.value().error().code == error_code::not_found;
         if (!is_done(ended) && !is_unknown) return client_.answer(number, word_of(ended, {}));
         if (is_unknown) return answer_number(number, "KICKED ", 0);
         const kicked_jobs& kicked = ended.value().value();
         // Kicks of buried jobs are counted by their errors.
         if (kicked.from != job_state::dead) server_.notes.kicked(kicked.ids);
         answer_number(number, "KICKED ", kicked.count);
       });
}

// Only buried and delayed jobs can be kicked; engine::retry would accept more states.
void beanstalk_session::kick_job(const command& c) {
  call(server_.jobs.get(c.number),
       [this, number = client_.open(), id = c.number](settled<result<job>> found) {
         if (!is_done(found)) return client_.answer(number, word_of(found, {}));
         const job& j = found.value().value();
         const std::string_view state = state_word(j, server_.time.now());
         const bool may_be_kicked = state == "buried" || state == "delayed";
         if (!may_be_kicked || is_servers_own(j.spec.queue)) {
           return client_.answer(number, words::not_found);
         }
         // A kick of a buried job is counted by its errors.
         const bool is_noted = state == "delayed";
         call(server_.jobs.retry(id), [this, number, id, is_noted](settled<result<job>> ended) {
           if (is_noted && is_done(ended)) server_.notes.kicked(id);
           client_.answer(number, word_of(ended, words::kicked));
         });
       });
}

void beanstalk_session::stats_job(const command& c) {
  call(server_.jobs.get(c.number), [this, number = client_.open()](settled<result<job>> found) {
    if (!is_done(found)) return client_.answer(number, word_of(found, {}));
    const job& j = found.value().value();
    if (state_word(j, server_.time.now()).empty()) return client_.answer(number, words::not_found);
    std::string text;
    write_stats_job(text, server_, j, server_.jobs.lease_of(j.id));
    client_.answer(number, "OK " + std::to_string(text.size()) + "\r\n" + text + "\r\n");
  });
}

// With many queues, yields to other connections after each command.
void beanstalk_session::report_all(const command& c) {
  std::string text;
  const std::size_t queues =
      c.action == verb::stats ? write_stats(text, server_) : write_tubes(text, server_);
  respond_text(text);
  if (queues < queues_without_yield || no_more_input_) return;
  has_yielded_ = true;
  client_.wake_at(seam::now());
}

void beanstalk_session::on_time() {
  has_yielded_ = false;
  client_.resume();
}

void beanstalk_session::stats_tube(const command& c) {
  std::string text;
  if (!write_stats_tube(text, server_, c.tube)) return client_.respond(words::not_found);
  respond_text(text);
}

// Replies.

void beanstalk_session::respond_text(std::string_view yaml) {
  scratch_ = "OK " + std::to_string(yaml.size()) + "\r\n";
  scratch_ += yaml;
  scratch_ += "\r\n";
  client_.respond(scratch_);
}

void beanstalk_session::answer_job(reply number, std::string_view word, const job& j) {
  const std::string& body = j.spec.args.data;
  scratch_ = word;
  append_number(scratch_, j.id);
  scratch_ += ' ';
  append_number(scratch_, body.size());
  scratch_ += "\r\n";
  scratch_ += body;
  scratch_ += "\r\n";
  client_.answer(number, scratch_);
  if (scratch_.capacity() > scratch_bytes_kept) std::string().swap(scratch_);
}

void beanstalk_session::answer_number(reply number, std::string_view word, std::uint64_t value) {
  scratch_ = word;
  append_number(scratch_, value);
  scratch_ += "\r\n";
  client_.answer(number, scratch_);
}

}  // namespace sluice::jobs::beanstalk
