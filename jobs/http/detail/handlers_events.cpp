// Events of jobs, as a stream of server-sent events or page by page.
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
  event_request request{};
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

// Reads the position to continue from: `after` of the query, or Last-Event-ID, which a browser
// sends when it reconnects.
result<done> read_place(event_request& request, const std::optional<std::string>& after,
                        const std::string& last_event) {
  const std::string_view text = after ? std::string_view(*after) : std::string_view(last_event);
  if (text.empty()) return done{};
  const auto place = json::event_place_from(text);
  if (!place) {
    const std::string why = "expected the id of an event, like \"1767225600000-42\"";
    if (after) return bad_parameter("after", why);
    return error{error_code::invalid, "the header Last-Event-ID: " + why};
  }
  request.epoch = place->epoch;
  request.after = place->number;
  return done{};
}

result<events_asked> read_request(const call& c) {
  static constexpr std::array<std::string_view, 9> names = {
      "after", "queue", "job", "batch", "types", "limit", "format", "wait", "heartbeat"};
  auto values = read_query(c.head.query(), names);
  if (!values) return std::move(values.error());
  auto& [after, queue, job, batch, types, limit, format, wait, heartbeat] = *values;
  events_asked asked;
  event_request& request = asked.request;
  if (auto placed = read_place(request, after, c.head.last_event); !placed) return placed.error();
  request.queue = queue.value_or("");
  auto of_job = number_or("job", job, 0, 1, id_max);
  if (!of_job) return std::move(of_job.error());
  request.job = *of_job;
  auto of_batch = number_or("batch", batch, 0, 1, id_max);
  if (!of_batch) return std::move(of_batch.error());
  request.batch = *of_batch;
  auto of_types = read_types(types.value_or(""));
  if (!of_types) return std::move(of_types.error());
  request.types = *std::move(of_types);
  auto count = number_or("limit", limit, request.limit, 1, 1000);
  if (!count) return std::move(count.error());
  request.limit = static_cast<std::size_t>(*count);
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

// Drops events of queues that the token does not cover.
void keep_own(event_page& page, const identity& caller) {
  if (!caller.is_scoped()) return;
  std::erase_if(page.events, [&](const job_event& e) { return !caller.may(role::read, e.queue); });
}

void append_place(std::string& out, std::uint64_t epoch, std::uint64_t number) {
  out += "id: ";
  out += json::to_string(json::event_place{epoch, number});
  out += '\n';
}

// The event stream of one client. Requests the next events after the previous part was put, so it
// holds one part at most; requests none while the client does not read.
class event_stream final : public part_source, public std::enable_shared_from_this<event_stream> {
 public:
  event_stream(engine& jobs, ticket reply, events_asked asked, identity caller, grant may)
      : jobs_(jobs),
        reply_(std::move(reply)),
        request_(std::move(asked.request)),
        heartbeat_(asked.heartbeat),
        caller_(std::move(caller)),
        may_(std::move(may)) {
    request_.limit = std::min(request_.limit, events_in_a_part);
  }
  virtual ~event_stream() = default;

  void begin() {
    reply_.begin_parts({.status = 200,
                        .type = stream_type,
                        .headers = "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n"},
                       shared_from_this());
    reply_.put_part("retry: 1000\n\n");
    put_more();
  }

  void put_more() override {
    when_done(reply_, jobs_.events(request_, may_.limits(reply_, heartbeat_)),
              [me = shared_from_this()](const ticket&, result<event_page> page) {
                me->take(std::move(page));
              });
  }

 private:
  void take(result<event_page> page) {
    if (const auto why = may_.refusal()) return end(*why);
    if (!page) return end(page.error());
    keep_own(*page, caller_);
    if (reply_.client().is_gone()) return reply_.end_parts();
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
    // Without data no listener is called, but a browser stores the id, and the connection shows
    // that it is alive.
    if (page->events.empty()) {
      text += ": still here\n";
      append_place(text, page->epoch, page->next);
      text += '\n';
    }
    request_.epoch = page->epoch;
    request_.after = page->next;
    if (reply_.put_part(text)) put_more();
  }

  void end(const error& why) {
    if (why.code == error_code::shutting_down) {
      reply_.put_part(": the server is shutting down\n\n");
    } else if (why.code != error_code::stopped) {
      const problem_parts p = make_problem(why);
      reply_.put_part("event: error\ndata: " + p.body + "\n\n");
    }
    reply_.end_parts();
  }

  engine& jobs_;
  const ticket reply_;
  event_request request_;
  const milliseconds heartbeat_;
  const identity caller_;
  const grant may_;
};

// Waits for one event only, and reads the page when the budget allows it: one event may end many
// waits, and each page can be long.
void answer_page(engine& jobs, const ticket& asked, identity caller, const grant& may,
                 event_request request, milliseconds wait) {
  event_request first = request;
  first.limit = std::min<std::size_t>(first.limit, 1);
  const auto answer = [caller = std::move(caller), may](const ticket& reply,
                                                        result<event_page> page) {
    if (const auto why = may.refusal()) return reply.refuse(*why);
    if (page) keep_own(*page, caller);
    answer_with<event_page>(reply, page);
  };
  when_done(
      asked, jobs.events(std::move(first), may.limits(asked, wait)),
      [&jobs, answer, request = std::move(request)](const ticket& reply,
                                                    const result<event_page>& page) mutable {
        if (!page || page->events.empty()) return answer(reply, page);
        if (!request.after) {
          request.after = page->events.front().number - 1;
          request.epoch = page->epoch;
        }
        reply.begin_load([&jobs, answer, request = std::move(request)](const ticket& back) mutable {
          when_done(back, jobs.events(std::move(request), deadline::after(milliseconds(0))),
                    answer);
        });
      });
}

}  // namespace

void get_events(call& c) {
  auto asked = read_request(c);
  if (!asked) return c.reply.refuse(asked.error());
  if (!asked->request.queue.empty() && !may_use(c, role::read, asked->request.queue)) return;
  if (c.head.method == method::head) {
    return c.reply.answer({.status = 200, .type = asked->as_page ? json_type : stream_type});
  }
  std::vector<std::string> queues;
  if (!asked->request.queue.empty()) queues.push_back(asked->request.queue);
  grant may(c.server, c.caller, role::read, std::move(queues));
  if (asked->as_page) {
    return answer_page(c.jobs, c.reply, std::move(c.caller), may, std::move(asked->request),
                       asked->wait);
  }
  std::make_shared<event_stream>(c.jobs, std::move(c.reply), *std::move(asked), std::move(c.caller),
                                 std::move(may))
      ->begin();
}

}  // namespace sluice::jobs::http
