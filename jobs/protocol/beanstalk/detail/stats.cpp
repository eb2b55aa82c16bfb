#include "jobs/protocol/beanstalk/detail/stats.hpp"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "jobs/protocol/beanstalk/detail/session_words.hpp"

namespace sluice::jobs::beanstalk {
namespace {

constexpr std::int64_t pri_max = 0xFFFF'FFFF;

void field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += '\n';
}

void field(std::string& out, std::string_view name, std::uint64_t value) {
  field(out, name, std::to_string(value));
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out += '"';
}

std::string seconds(const timeval& t) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%lld.%06lld", static_cast<long long>(t.tv_sec),
                static_cast<long long>(t.tv_usec));
  return text.data();
}

std::uint64_t whole_seconds(milliseconds d) {
  return d.count() <= 0 ? 0 : static_cast<std::uint64_t>(d.count()) / 1000;
}

std::uint64_t delayed(const queue_counts& c) {
  return c.scheduled + c.retrying + c.held;
}

bool holds_jobs(const queue_counts& c) {
  return c.unfinished() + c.dead > 0;
}

// Returns the number of ready jobs with a pri of 0 to 1023.
std::uint64_t urgent(const server_state& s, std::string_view queue) {
  return s.jobs.ready_above(queue, priority_of(1024));
}

void write_jobs(std::string& out, const queue_counts& c, std::uint64_t urgent) {
  field(out, "current-jobs-urgent", urgent);
  field(out, "current-jobs-ready", c.ready);
  field(out, "current-jobs-reserved", c.running);
  field(out, "current-jobs-delayed", delayed(c));
  field(out, "current-jobs-buried", c.dead);
}

constexpr std::array<verb, 22> counted = {verb::put,
                                          verb::peek,
                                          verb::peek_ready,
                                          verb::peek_delayed,
                                          verb::peek_buried,
                                          verb::reserve,
                                          verb::reserve_with_timeout,
                                          verb::delete_,
                                          verb::release,
                                          verb::use,
                                          verb::watch,
                                          verb::ignore,
                                          verb::bury,
                                          verb::kick,
                                          verb::touch,
                                          verb::stats,
                                          verb::stats_job,
                                          verb::stats_tube,
                                          verb::list_tubes,
                                          verb::list_tube_used,
                                          verb::list_tubes_watched,
                                          verb::pause_tube};

void write_process(std::string& out, const server_state& s) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  field(out, "pid", static_cast<std::uint64_t>(::getpid()));
  field(out, "version", quoted(s.version));
  field(out, "rusage-utime", seconds(used.ru_utime));
  field(out, "rusage-stime", seconds(used.ru_stime));
  field(out, "uptime", whole_seconds(s.time.now() - s.started));
}

void write_machine(std::string& out) {
  utsname machine{};
  ::uname(&machine);
  field(out, "hostname", machine.nodename);
  field(out, "os", quoted(machine.version));  // it begins with a #
  field(out, "platform", machine.machine);
}

// Returns the existing tubes: queues that hold jobs, and tubes that a client uses or watches.
std::vector<std::string> tube_names(const server_state& s, const std::vector<queue_info>& queues) {
  std::vector<std::string> names = {"default"};
  for (const queue_info& q : queues) {
    if (holds_jobs(q.counts)) names.push_back(q.name);
  }
  for (const tube_ptr& t : s.tubes.in_use()) names.push_back(t->name);
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

// Counts of a job's events, from its stored errors.
struct history {
  std::uint64_t reserves = 0, timeouts = 0, buries = 0;
};

// A job of another protocol may have no lease time: uses that of its queue.
milliseconds ttr_of(const server_state& s, const job& j) {
  if (j.spec.lease_for > milliseconds(0)) return j.spec.lease_for;
  const auto queue = s.jobs.queue(j.spec.queue);
  return queue ? queue->options.lease_for : queue_options{}.lease_for;
}

history history_of(const job& j) {
  history h;
  for (const attempt_error& e : j.errors) {
    h.timeouts += e.type == "lease_expired" ? 1U : 0U;
    h.buries += e.type == "buried" ? 1U : 0U;
  }
  h.reserves = std::max<std::uint64_t>(j.errors.size(), j.attempts);
  return h;
}

}  // namespace

std::string_view state_word(const job& j, unix_time now) noexcept {
  switch (j.state) {
    case job_state::ready:
      return "ready";
    case job_state::running:
      return "reserved";
    case job_state::scheduled:
    case job_state::held:
      return "delayed";
    case job_state::retrying:
      return j.due_at <= now ? "ready" : "delayed";
    case job_state::dead:
      return "buried";
    case job_state::done:
    case job_state::cancelled:
      break;
  }
  return {};
}

std::uint32_t pri_of(const job& j) noexcept {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(-j.spec.priority, 0, pri_max));
}

std::size_t write_stats(std::string& out, const server_state& s) {
  queue_counts sum;
  std::uint64_t all_urgent = 0;
  const std::vector<queue_info> queues = s.jobs.queues();
  for (const queue_info& q : queues) {
    sum.ready += q.counts.ready;
    sum.running += q.counts.running;
    sum.scheduled += delayed(q.counts);
    sum.dead += q.counts.dead;
    if (q.counts.ready > 0) all_urgent += urgent(s, q.name);
  }
  const engine_stats engine = s.jobs.stats();
  out += "---\n";
  write_jobs(out, sum, all_urgent);
  for (const verb v : counted) {
    out += "cmd-";
    field(out, to_string(v), s.count_of(v));
  }
  field(out, "job-timeouts", engine.expired);
  field(out, "total-jobs", engine.pushed);
  field(out, "max-job-size", s.job_bytes_max);
  field(out, "current-tubes", tube_names(s, queues).size());
  field(out, "current-connections", s.connections.load(relaxed));
  field(out, "current-producers", s.producers.load(relaxed));
  field(out, "current-workers", s.workers.load(relaxed));
  field(out, "current-waiting", s.waiting.load(relaxed));
  field(out, "total-connections", s.connections_total.load(relaxed));
  write_process(out, s);
  field(out, "binlog-oldest-index", std::uint64_t{0});
  field(out, "binlog-current-index", std::uint64_t{0});
  field(out, "binlog-records-migrated", std::uint64_t{0});
  field(out, "binlog-records-written", engine.committed_changes);
  field(out, "binlog-max-size", s.binlog_max);
  field(out, "draining", s.is_draining.load(relaxed) ? "true" : "false");
  field(out, "id", s.id);
  write_machine(out);
  return queues.size();
}

bool has_tube(const server_state& s, std::string_view queue) {
  if (queue == "default") return true;
  const tube_ptr known = s.tubes.find(queue);
  if (known != nullptr && known->using_now.load(relaxed) + known->watching.load(relaxed) > 0) {
    return true;
  }
  const auto info = s.jobs.queue(queue);
  return info && holds_jobs(info->counts);
}

bool write_stats_tube(std::string& out, const server_state& s, std::string_view queue) {
  if (!has_tube(s, queue)) return false;
  const auto info = s.jobs.queue(queue);
  const tube_ptr known = s.tubes.find(queue);
  const auto of = [&](auto member) {
    return known == nullptr ? 0 : ((*known).*member).load(relaxed);
  };
  const milliseconds left = s.jobs.pause_left(queue);
  out += "---\n";
  field(out, "name", queue);
  write_jobs(out, info ? info->counts : queue_counts{}, urgent(s, queue));
  field(out, "total-jobs", of(&tube::total_jobs));
  field(out, "current-using", of(&tube::using_now));
  field(out, "current-watching", of(&tube::watching));
  field(out, "current-waiting", of(&tube::waiting));
  field(out, "cmd-delete", of(&tube::deletes));
  field(out, "cmd-pause-tube", of(&tube::pauses));
  field(out, "pause", left > milliseconds(0) ? of(&tube::pause_seconds) : 0);
  field(out, "pause-time-left", whole_seconds(left));
  return true;
}

void write_stats_job(std::string& out, const server_state& s, const job& j,
                     const std::optional<lease_info>& lease) {
  const unix_time now = s.time.now();
  const std::string_view state = state_word(j, now);
  const history h = history_of(j);
  const std::optional<job_note> note = s.notes.find(j.id);
  const std::uint64_t releases = note ? note->releases : 0;
  // A job stops being buried by a kick or by reserve-job.
  const std::uint64_t not_kicked = (j.state == job_state::dead ? 1 : 0) + (note ? note->taken : 0);
  const std::uint64_t kicks_of_buried = h.buries - std::min(h.buries, not_kicked);
  // The delay of the put, to the nearest second: the job was created shortly after the put arrived.
  const milliseconds put_delay = std::max(j.spec.run_at - j.created_at, milliseconds(0));
  milliseconds left{0};
  if (state == "delayed" && j.state != job_state::held) left = j.due_at - now;
  if (lease) left = lease->until - now;

  out += "---\n";
  field(out, "id", j.id);
  field(out, "tube", j.spec.queue);
  field(out, "state", lease ? "reserved" : state);
  field(out, "pri", pri_of(j));
  field(out, "age", whole_seconds(now - j.created_at));
  field(out, "delay",
        note && note->releases > 0 ? note->delay_s : whole_seconds(put_delay + milliseconds(500)));
  field(out, "ttr", whole_seconds(ttr_of(s, j)));
  field(out, "time-left", whole_seconds(left));
  field(out, "file", std::uint64_t{0});
  field(out, "reserves", h.reserves + releases + (lease ? 1 : 0));
  field(out, "timeouts", h.timeouts);
  field(out, "releases", releases);
  field(out, "buries", h.buries);
  field(out, "kicks", kicks_of_buried + (note ? note->kicks : 0));
}

std::size_t write_tubes(std::string& out, const server_state& s) {
  const std::vector<queue_info> queues = s.jobs.queues();
  out += "---\n";
  for (const std::string& name : tube_names(s, queues)) {
    out += "- ";
    out += name;
    out += '\n';
  }
  return queues.size();
}

void write_metrics(std::string& out, const server_state& s, const protocol::wire_counts& wire) {
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help) {
    for (const std::string_view part : {std::string_view("# HELP "), name, std::string_view(" "),
                                        help, std::string_view("\n# TYPE "), name,
                                        std::string_view(" "), type, std::string_view("\n")}) {
      out += part;
    }
  };
  const auto one = [&](std::string_view name, std::string_view type, std::string_view help,
                       std::uint64_t value) {
    family(name, type, help);
    out += name;
    out += ' ';
    out += std::to_string(value);
    out += '\n';
  };
  family("sluice_beanstalk_commands_total", "counter", "Commands of beanstalk clients, by name.");
  for (std::size_t i = 0; i < verb_count; ++i) {
    out += "sluice_beanstalk_commands_total{command=\"";
    out += to_string(static_cast<verb>(i));
    out += "\"} ";
    out += std::to_string(s.commands[i].load(relaxed));
    out += '\n';
  }
  one("sluice_beanstalk_bad_commands_total", "counter",
      "Lines that were answered BAD_FORMAT or UNKNOWN_COMMAND.", s.bad_commands.load(relaxed));
  one("sluice_beanstalk_refused_total", "counter",
      "Puts that were answered OUT_OF_MEMORY, DRAINING, JOB_TOO_BIG or INTERNAL_ERROR.",
      s.refused.load(relaxed));
  one("sluice_beanstalk_timed_out_total", "counter", "Reserves that were answered TIMED_OUT.",
      s.timed_out.load(relaxed));
  one("sluice_beanstalk_deadline_soon_total", "counter",
      "Reserves that were answered DEADLINE_SOON.", s.deadline_soon.load(relaxed));
  one("sluice_beanstalk_reserved", "gauge", "Jobs that beanstalk clients have reserved.",
      s.reserved.load(relaxed));
  one("sluice_beanstalk_waiting", "gauge", "Beanstalk clients that wait in a reserve.",
      s.waiting.load(relaxed));
  one("sluice_beanstalk_connections", "gauge", "Beanstalk connections that are open.", wire.open);
  one("sluice_beanstalk_connections_total", "counter", "Beanstalk connections that were accepted.",
      wire.accepted);
  one("sluice_beanstalk_connections_refused_total", "counter",
      "Beanstalk connections refused beyond the limit.", wire.refused);
  one("sluice_beanstalk_connection_timeouts_total", "counter",
      "Beanstalk connections that were closed because of a time limit.", wire.timeouts);
  one("sluice_beanstalk_received_bytes_total", "counter", "Bytes from beanstalk clients.",
      wire.bytes_in);
  one("sluice_beanstalk_sent_bytes_total", "counter", "Bytes to beanstalk clients.",
      wire.bytes_out);
}

}  // namespace sluice::jobs::beanstalk
