// What happens, as it happens: a stream of server-sent events, or a page at a time.
#include <algorithm>

#include "jobs/http/detail/handlers.hpp"
#include "jobs/http/detail/server_state.hpp"
#include "jobs/json/codec.hpp"
#include "jobs/json/text.hpp"

namespace sluice::jobs::http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t events_in_a_part = 256;
constexpr milliseconds heartbeat_usual = 15s;
constexpr milliseconds heartbeat_least = 100ms;
constexpr milliseconds heartbeat_most = 10min;
constexpr std::string_view stream_type = "text/event-stream";

struct events_asked {
  event_request what{};
  bool as_page = false;
  milliseconds wait{0};  // of a page
  milliseconds heartbeat = heartbeat_usual;
};

std::string all_types() {
  std::string all;
  for (unsigned i = 0; i <= static_cast<unsigned>(event_type::cron_ran); ++i) {
    if (!all.empty()) all += ", ";
    all += to_string(static_cast<event_type>(i));
  }
  return all;
}

// "done,dead"
result<std::vector<event_type>> read_types(std::string_view text) {
  std::vector<event_type> types;
  while (!text.empty()) {
    const std::size_t end = std::min(text.size(), text.find(','));
    const auto type = event_type_from(text.substr(0, end));
    if (!type) {
      return bad_parameter("types", "there is no event '" + std::string(text.substr(0, end)) +
                                        "'; there are " + all_types());
    }
    if (std::ranges::find(types, *type) == types.end()) types.push_back(*type);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return types;
}

result<milliseconds> read_heartbeat(const std::string& text) {
  const auto parsed = parse_duration(text);
  if (!parsed) return bad_parameter("heartbeat", parsed.error().message);
  if (*parsed < heartbeat_least || *parsed > heartbeat_most) {
    return bad_parameter("heartbeat", "expected a duration from 100ms to 10m");
  }
  return *parsed;
}

// Where a client was: in the query, or as a browser says it when it comes back.
result<done> read_place(event_request& what, const std::optional<std::string>& after,
                        const std::string& last_event) {
  const std::string_view text = after ? std::string_view(*after) : std::string_view(last_event);
  if (text.empty()) return done{};
  const auto place = json::event_place_from(text);
  if (!place) {
    const std::string why = "expected the id of an event, like \"1767225600000-42\"";
    if (after) return bad_parameter("after", why);
    return error{error_code::invalid, "the header Last-Event-ID: " + why};
  }
  what.epoch = place->epoch;
  what.after = place->number;
  return done{};
}

result<events_asked> read_request(const call& c) {
  static constexpr std::array<std::string_view, 9> names = {
      "after", "queue", "job", "batch", "types", "limit", "format", "wait", "heartbeat"};
  auto values = read_query(c.head.query(), names);
  if (!values) return std::move(values.error());
  auto& [after, queue, job, batch, types, limit, format, wait, heartbeat] = *values;
  events_asked asked;
  event_request& what = asked.what;
  if (auto placed = read_place(what, after, c.head.last_event); !placed) return placed.error();
  what.queue = queue.value_or("");
  auto of_job = number_or("job", job, 0, 1, id_max);
  if (!of_job) return std::move(of_job.error());
  what.job = *of_job;
  auto of_batch = number_or("batch", batch, 0, 1, id_max);
  if (!of_batch) return std::move(of_batch.error());
  what.batch = *of_batch;
  auto of_types = read_types(types.value_or(""));
  if (!of_types) return std::move(of_types.error());
  what.types = *std::move(of_types);
  auto count = number_or("limit", limit, what.limit, 1, 1000);
  if (!count) return std::move(count.error());
  what.limit = static_cast<std::size_t>(*count);
  if (format && *format != "json" && *format != "sse") {
    return bad_parameter("format", "expected sse or json");
  }
  asked.as_page = format ? *format == "json" : wait.has_value();
  auto waits = wait_of(c, wait, 0ms);
  if (!waits) return std::move(waits.error());
  asked.wait = *waits;
  if (heartbeat) {
    auto beat = read_heartbeat(*heartbeat);
    if (!beat) return std::move(beat.error());
    asked.heartbeat = *beat;
  }
  return asked;
}

// To those who may see some queues only, nothing happens in the others.
void keep_own(event_page& page, const identity& who) {
  if (!who.is_scoped()) return;
  std::erase_if(page.events, [&](const job_event& e) { return !who.may(role::read, e.queue); });
}

void append_place(std::string& out, std::uint64_t epoch, std::uint64_t number) {
  out += "id: ";
  out += json::to_string(json::event_place{epoch, number});
  out += '\n';
}

// One client that listens. It asks for the next events when those before are on their way, so what
// it holds is one part; while the client does not read, it asks for none.
class event_stream final : public part_source, public std::enable_shared_from_this<event_stream> {
 public:
  event_stream(engine& jobs, ticket to, events_asked asked, identity who, grant may)
      : jobs_(jobs),
        to_(std::move(to)),
        what_(std::move(asked.what)),
        beat_(asked.heartbeat),
        who_(std::move(who)),
        may_(std::move(may)) {
    what_.limit = std::min(what_.limit, events_in_a_part);
  }
  virtual ~event_stream() = default;

  void begin() {
    to_.begin_parts({.status = 200,
                     .type = stream_type,
                     .headers = "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n"},
                    shared_from_this());
    to_.put_part("retry: 1000\n\n");
    go_on();
  }

  void go_on() override {
    when_done(to_, jobs_.events(what_, may_.limits(to_, beat_)),
              [me = shared_from_this()](const ticket&, result<event_page> page) {
                me->take(std::move(page));
              });
  }

 private:
  void take(result<event_page> page) {
    if (const auto why = may_.refusal()) return end(*why);
    if (!page) return end(page.error());
    keep_own(*page, who_);
    if (to_.who().is_gone()) return to_.end_parts();
    std::string text;
    if (page->missed) {
      text += "event: missed\ndata: {\"next\":\"";
      text += json::to_string(json::event_place{page->epoch, page->next});
      text += "\"}\n\n";
    }
    for (const job_event& e : page->events) {
      append_place(text, page->epoch, e.number);
      text += "event: ";
      text += to_string(e.type);
      text += "\ndata: ";
      json::write(text, e);
      text += "\n\n";
    }
    // Without data nobody is told, but a browser notes the place, and the connection is seen to
    // live.
    if (page->events.empty()) {
      text += ": still here\n";
      append_place(text, page->epoch, page->next);
      text += '\n';
    }
    what_.epoch = page->epoch;
    what_.after = page->next;
    if (to_.put_part(text)) go_on();
  }

  void end(const error& why) {
    if (why.code == error_code::shutting_down) {
      to_.put_part(": the server is shutting down\n\n");
    } else if (why.code != error_code::stopped) {
      const problem_parts p = make_problem(why);
      to_.put_part("event: error\ndata: " + p.body + "\n\n");
    }
    to_.end_parts();
  }

  engine& jobs_;
  const ticket to_;
  event_request what_;
  const milliseconds beat_;
  const identity who_;
  const grant may_;
};

// Waits for one event only, and then takes the page: one event may end many waits, and each page
// can be long.
void answer_page(engine& jobs, const ticket& asked, identity who, const grant& may,
                 event_request what, milliseconds wait) {
  event_request first = what;
  first.limit = std::min<std::size_t>(first.limit, 1);
  const auto answer = [who = std::move(who), may](const ticket& to, result<event_page> page) {
    if (const auto why = may.refusal()) return to.refuse(*why);
    if (page) keep_own(*page, who);
    answer_with<event_page>(to, page);
  };
  when_done(asked, jobs.events(std::move(first), may.limits(asked, wait)),
            [&jobs, answer, what = std::move(what)](const ticket& to,
                                                    const result<event_page>& page) mutable {
              if (!page || page->events.empty()) return answer(to, page);
              if (!what.after) {
                what.after = page->events.front().number - 1;
                what.epoch = page->epoch;
              }
              to.begin_load([&jobs, answer, what = std::move(what)](const ticket& back) mutable {
                when_done(back, jobs.events(std::move(what), deadline::after(milliseconds(0))),
                          answer);
              });
            });
}

}  // namespace

void get_events(call& c) {
  auto asked = read_request(c);
  if (!asked) return c.to.refuse(asked.error());
  if (!asked->what.queue.empty() && !may_use(c, role::read, asked->what.queue)) return;
  if (c.head.method == method::head) {
    return c.to.answer({.status = 200, .type = asked->as_page ? json_type : stream_type});
  }
  std::vector<std::string> queues;
  if (!asked->what.queue.empty()) queues.push_back(asked->what.queue);
  grant may(c.server, c.who, role::read, std::move(queues));
  if (asked->as_page) {
    return answer_page(c.jobs, c.to, std::move(c.who), may, std::move(asked->what), asked->wait);
  }
  std::make_shared<event_stream>(c.jobs, std::move(c.to), *std::move(asked), std::move(c.who),
                                 std::move(may))
      ->begin();
}

}  // namespace sluice::jobs::http
