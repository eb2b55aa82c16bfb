// The commands of a session beside put and reserve.
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

constexpr std::size_t watched_max = 1000;  // as many as one lease may name
constexpr std::size_t queues_in_passing = 100;
constexpr std::size_t scratch_bytes_kept = std::size_t{64} << 10;

// How a call about one job ended, in a word.
template <class T>
std::string_view word_of(const settled<result<T>>& ended, std::string_view success) {
  if (!ended) return words::internal_error;
  const result<T>& how = ended.value();
  if (how) return success;
  switch (how.error().code) {
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

// One that has not ended, or is buried, and is none of the server's own.
bool is_for_clients(const job& j, unix_time now) {
  return !state_word(j, now).empty() && !is_servers_own(j.spec.queue);
}

template <class T>
bool is_done(const settled<result<T>>& ended) {
  return ended && ended.value();
}

}  // namespace

void beanstalk_session::run(const command& c, std::string_view line, std::string_view after) {
  switch (c.what) {
    case verb::put:
      break;  // has a body, and is done where that is cut
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
      return look_at_all(c);
    case verb::stats_job:
      return stats_job(c);
    case verb::stats_tube:
      return stats_tube(c);
    case verb::list_tube_used:
      return to_.say("USING " + used_->name + "\r\n");
    case verb::list_tubes_watched:
      return list_watched();
    case verb::pause_tube:
      return pause_tube(c);
    case verb::quit:
      leave();
      return to_.end();
  }
}

// Ends of reserved jobs.

void beanstalk_session::delete_job(const command& c) {
  reserved_job* const mine = reserved_.find(c.number);
  if (mine == nullptr) return delete_unreserved(to_.open(), c.number);
  if (mine->from != nullptr) mine->from->deletes.fetch_add(1, relaxed);
  deletes_.push_back({to_.open(), std::move(*mine)});
  reserved_.erase(mine);
}

void beanstalk_session::flush_deletes() {
  if (deletes_.empty()) return;
  ++delete_calls_;
  std::vector<pending_delete> batch = std::exchange(deletes_, {});
  deletes_.reserve(batch.size());  // the next ones are likely as many
  server_.reserved.fetch_sub(batch.size(), relaxed);
  std::vector<ack_item> items(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) items[i].lease = batch[i].it.lease;
  to_.when_done(server_.jobs.ack_many(std::move(items)),
                [this, batch = std::move(batch)](settled<std::vector<void_result>> ended) mutable {
                  --delete_calls_;
                  deletes_ended(std::move(batch), std::move(ended));
                });
}

void beanstalk_session::deletes_ended(std::vector<pending_delete> batch,
                                      settled<std::vector<void_result>> ended) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    pending_delete& each = batch[i];
    if (!ended) {
      to_.answer(each.to, words::internal_error);
    } else if (const void_result& how = ended.value()[i]; how) {
      to_.answer(each.to, words::deleted);
    } else if (how.error().code == error_code::lease_lost) {
      // Its time was over; but anybody may delete a job that nobody holds.
      delete_unreserved(each.to, each.it.lease.job);
    } else {
      to_.answer(each.to, how.error().code == error_code::overloaded ? words::out_of_memory
                                                                     : words::internal_error);
      keep_reserved(std::move(each.it));
    }
  }
  if (delete_calls_ == 0 && std::exchange(asks_after_deletes_, false)) ask_after_deletes();
}

// One that has ended stays as long as its queue says; here it is gone.
void beanstalk_session::delete_unreserved(reply to, job_id id) {
  call(server_.jobs.get(id), [this, to, id](settled<result<job>> found) {
    if (!is_done(found)) return to_.answer(to, word_of(found, {}));
    const job& it = found.value().value();
    if (it.state == job_state::running || !is_for_clients(it, server_.time.now())) {
      return to_.answer(to, words::not_found);
    }
    if (const tube_ptr from = server_.tubes.find(it.spec.queue))
      from->deletes.fetch_add(1, relaxed);
    call(server_.jobs.remove(id),
         [this, to](settled<void_result> gone) { to_.answer(to, word_of(gone, words::deleted)); });
  });
}

reserved_job beanstalk_session::take_reserved(job_id id) {
  reserved_job* const mine = reserved_.find(id);
  if (mine == nullptr) return {};
  reserved_job taken = std::move(*mine);
  reserved_.erase(mine);
  server_.reserved.fetch_sub(1, relaxed);
  return taken;
}

void beanstalk_session::keep_reserved(reserved_job it) {
  if (is_gone_) return give_back({it.lease});
  earliest_ = std::min(earliest_, it.until);
  if (reserved_.insert(std::move(it))) server_.reserved.fetch_add(1, relaxed);
}

void beanstalk_session::release_job(const command& c) {
  const reserved_job mine = take_reserved(c.number);
  if (mine.lease.job == 0) return to_.say(words::not_found);
  call(server_.jobs.release(mine.lease,
                            {.delay = duration_of(c.delay), .priority = priority_of(c.pri)}),
       [this, to = to_.open(), mine, delay = c.delay](settled<void_result> ended) {
         const std::string_view says = word_of(ended, words::released);
         to_.answer(to, says);
         if (says == words::released) return server_.notes.released(mine.lease.job, delay);
         if (says != words::not_found) keep_reserved(mine);
       });
}

void beanstalk_session::bury(const command& c) {
  const reserved_job mine = take_reserved(c.number);
  if (mine.lease.job == 0) return to_.say(words::not_found);
  failure why;
  why.type = "buried";
  why.message = "buried by " + address_;
  why.for_good = true;
  why.priority = priority_of(c.pri);
  call(server_.jobs.fail(mine.lease, std::move(why)),
       [this, to = to_.open(), mine](settled<result<fail_receipt>> ended) {
         const std::string_view says = word_of(ended, words::buried);
         to_.answer(to, says);
         if (says != words::buried && says != words::not_found) keep_reserved(mine);
       });
}

void beanstalk_session::touch(const command& c) {
  reserved_job* const mine = reserved_.find(c.number);
  if (mine == nullptr) return to_.say(words::not_found);
  const result<extension> longer = server_.jobs.extend(mine->lease);
  if (longer) {
    mine->until = longer->until;
    return to_.say(words::touched);
  }
  if (longer.error().code != error_code::lease_lost) return to_.say(words::internal_error);
  (void)take_reserved(c.number);
  to_.say(words::not_found);
}

void beanstalk_session::give_back(std::vector<lease_ref> leases) {
  if (leases.empty()) return;
  const auto dropped = server_.jobs.release_many(std::move(leases));
}

void beanstalk_session::reserve_job(const command& c) {
  if (!std::exchange(is_worker_, true)) server_.workers.fetch_add(1, relaxed);
  if (!reserved_.empty() && earliest_ <= server_.time.now()) earliest_ = first_end();
  call(server_.jobs.get(c.number), [this, to = to_.open()](settled<result<job>> found) {
    if (!is_done(found)) return to_.answer(to, word_of(found, {}));
    const job& it = found.value().value();
    if (is_gone_ || !is_for_clients(it, server_.time.now())) {
      return to_.answer(to, words::not_found);
    }
    reserve_found(to, it);
  });
}

void beanstalk_session::reserve_found(reply to, const job& it) {
  const bool was_buried = it.state == job_state::dead;
  call(server_.jobs.lease_job(it.id, address_),
       [this, to, was_buried](settled<result<leased_job>> ended) {
         if (!is_done(ended)) return to_.answer(to, word_of(ended, {}));
         leased_job mine = std::move(ended).value().value();
         if (was_buried) server_.notes.taken_buried(mine.it->id);
         is_gone_ ? give_back({mine.ref()}) : hand_over(to, std::move(mine));
       });
}

// Tubes.

void beanstalk_session::use(const command& c) {
  tube_ptr next = server_.tubes.get(c.tube);
  if (next == nullptr) return to_.say(words::out_of_memory);
  flush_puts();  // those are for the tube before
  used_->using_now.fetch_sub(1, relaxed);
  used_ = std::move(next);
  used_->using_now.fetch_add(1, relaxed);
  to_.say("USING " + used_->name + "\r\n");
}

void beanstalk_session::watch(const command& c) {
  if (std::ranges::find(watched_queues_, c.tube) == watched_queues_.end()) {
    tube_ptr next = watched_.size() < watched_max ? server_.tubes.get(c.tube) : nullptr;
    if (next == nullptr) return to_.say(words::out_of_memory);
    next->watching.fetch_add(1, relaxed);
    watched_.push_back(std::move(next));
    watched_queues_.emplace_back(c.tube);
  }
  answer_number(to_.open(), "WATCHING ", watched_.size());
}

void beanstalk_session::ignore(const command& c) {
  const auto at = std::ranges::find(watched_queues_, c.tube);
  if (at != watched_queues_.end()) {
    if (watched_.size() == 1) return to_.say(words::not_ignored);
    const auto place = at - watched_queues_.begin();
    watched_[static_cast<std::size_t>(place)]->watching.fetch_sub(1, relaxed);
    watched_.erase(watched_.begin() + place);
    watched_queues_.erase(at);
  }
  answer_number(to_.open(), "WATCHING ", watched_.size());
}

void beanstalk_session::list_watched() {
  std::string text = "---\n";
  for (const tube_ptr& each : watched_) text += "- " + each->name + "\n";
  say_text(text);
}

void beanstalk_session::pause_tube(const command& c) {
  if (is_servers_own(c.tube) || !has_tube(server_, c.tube)) return to_.say(words::not_found);
  const tube_ptr known = server_.tubes.get(c.tube);
  if (known == nullptr) return to_.say(words::out_of_memory);
  known->pauses.fetch_add(1, relaxed);
  known->pause_seconds.store(c.delay, relaxed);
  const milliseconds time = duration_of(c.delay);
  if (server_.jobs.pause_for(c.tube, time)) return to_.say(words::paused);
  // Nothing was ever put there: it becomes a queue now.
  call(server_.jobs.configure(known->name, {}),
       [this, to = to_.open(), known, time](settled<result<queue_info>> made) {
         const bool is_paused = is_done(made) && server_.jobs.pause_for(known->name, time);
         to_.answer(to, is_paused ? words::paused : words::internal_error);
       });
}

// What is looked at.

void beanstalk_session::peek(const command& c) {
  const auto seen = [this, to = to_.open()](settled<result<job>> ended) {
    if (!is_done(ended)) return to_.answer(to, word_of(ended, {}));
    const job& it = ended.value().value();
    if (!is_for_clients(it, server_.time.now())) return to_.answer(to, words::not_found);
    answer_job(to, "FOUND ", it);
  };
  if (c.what == verb::peek) return call(server_.jobs.get(c.number), seen);
  const job_state which = c.what == verb::peek_ready     ? job_state::ready
                          : c.what == verb::peek_delayed ? job_state::scheduled
                                                         : job_state::dead;
  call(server_.jobs.peek(used_->name, which), seen);
}

void beanstalk_session::kick(const command& c) {
  const reply to = to_.open();
  if (c.number == 0) return answer_number(to, "KICKED ", 0);
  call(server_.jobs.kick(used_->name, c.number), [this, to](settled<result<kicked_jobs>> ended) {
    const bool is_unknown =
        ended && !ended.value() && ended.value().error().code == error_code::not_found;
    if (!is_done(ended) && !is_unknown) return to_.answer(to, word_of(ended, {}));
    if (is_unknown) return answer_number(to, "KICKED ", 0);
    const kicked_jobs& which = ended.value().value();
    // Of those that were buried their errors tell.
    if (which.from != job_state::dead) server_.notes.kicked(which.ids);
    answer_number(to, "KICKED ", which.count);
  });
}

// Of what can be tried again only what is buried or delayed can be kicked.
void beanstalk_session::kick_job(const command& c) {
  call(server_.jobs.get(c.number),
       [this, to = to_.open(), id = c.number](settled<result<job>> found) {
         if (!is_done(found)) return to_.answer(to, word_of(found, {}));
         const job& it = found.value().value();
         const std::string_view state = state_word(it, server_.time.now());
         const bool may_be_kicked = state == "buried" || state == "delayed";
         if (!may_be_kicked || is_servers_own(it.spec.queue)) {
           return to_.answer(to, words::not_found);
         }
         // Of one that was buried its errors tell.
         const bool is_noted = state == "delayed";
         call(server_.jobs.retry(id), [this, to, id, is_noted](settled<result<job>> ended) {
           if (is_noted && is_done(ended)) server_.notes.kicked(id);
           to_.answer(to, word_of(ended, words::kicked));
         });
       });
}

void beanstalk_session::stats_job(const command& c) {
  call(server_.jobs.get(c.number), [this, to = to_.open()](settled<result<job>> found) {
    if (!is_done(found)) return to_.answer(to, word_of(found, {}));
    const job& it = found.value().value();
    if (state_word(it, server_.time.now()).empty()) return to_.answer(to, words::not_found);
    std::string text;
    write_stats_job(text, server_, it, server_.jobs.lease_of(it.id));
    to_.answer(to, "OK " + std::to_string(text.size()) + "\r\n" + text + "\r\n");
  });
}

// A client that asks for many of these at once lets others have their turn between them.
void beanstalk_session::look_at_all(const command& c) {
  std::string text;
  const std::size_t queues =
      c.what == verb::stats ? write_stats(text, server_) : write_tubes(text, server_);
  say_text(text);
  if (queues < queues_in_passing || no_more_input_) return;
  is_resting_ = true;
  to_.wake_at(seam::now());
}

void beanstalk_session::on_time() {
  is_resting_ = false;
  to_.resume();
}

void beanstalk_session::stats_tube(const command& c) {
  std::string text;
  if (!write_stats_tube(text, server_, c.tube)) return to_.say(words::not_found);
  say_text(text);
}

// Replies.

void beanstalk_session::say_text(std::string_view yaml) {
  scratch_ = "OK " + std::to_string(yaml.size()) + "\r\n";
  scratch_ += yaml;
  scratch_ += "\r\n";
  to_.say(scratch_);
}

void beanstalk_session::answer_job(reply to, std::string_view word, const job& j) {
  const std::string& body = j.spec.args.data;
  scratch_ = word;
  append_number(scratch_, j.id);
  scratch_ += ' ';
  append_number(scratch_, body.size());
  scratch_ += "\r\n";
  scratch_ += body;
  scratch_ += "\r\n";
  to_.answer(to, scratch_);
  if (scratch_.capacity() > scratch_bytes_kept) std::string().swap(scratch_);
}

void beanstalk_session::answer_number(reply to, std::string_view word, std::uint64_t number) {
  scratch_ = word;
  append_number(scratch_, number);
  scratch_ += "\r\n";
  to_.answer(to, scratch_);
}

}  // namespace sluice::jobs::beanstalk
