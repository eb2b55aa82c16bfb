// Codec of the list of workers of Faktory's protocol.
#include <array>
#include <limits>

#include "jobs/json/detail/shapes.hpp"

namespace sluice::jobs::json {
namespace {

using detail::field;
using detail::field_rule;
using detail::read_answer;
using detail::read_object;

void read_label(json_reader& in, std::string& into) {
  into = in.string();
}

constexpr std::array<field<faktory_worker>, 9> worker_fields = {{
    {"wid", [](json_reader& in, faktory_worker& w) { w.wid = in.string(); }, field_rule::required},
    {"hostname", [](json_reader& in, faktory_worker& w) { w.hostname = in.string(); }},
    {"pid",
     [](json_reader& in, faktory_worker& w) {
       w.pid = in.whole(std::numeric_limits<std::int64_t>::min(),
                        std::numeric_limits<std::int64_t>::max());
     }},
    {"labels", [](json_reader& in,
                  faktory_worker& w) { detail::read_each<std::string, read_label>(in, w.labels); }},
    {"state",
     [](json_reader& in, faktory_worker& w) {
       w.state = detail::read_word(in, worker_state_from, "expected the state of a worker");
     },
     field_rule::required},
    {"rss_kb", [](json_reader& in, faktory_worker& w) { w.rss_kb = in.natural(); }},
    {"since", [](json_reader& in, faktory_worker& w) { w.since = in.time(); }},
    {"last_beat", [](json_reader& in, faktory_worker& w) { w.last_beat = in.time(); }},
    {"running", [](json_reader& in, faktory_worker& w) { w.running = in.natural(); }},
}};

void read_worker(json_reader& in, faktory_worker& into) {
  read_object(in, into, worker_fields);
}
constexpr auto worker_page_fields =
    detail::page_fields<faktory_worker_page, faktory_worker, &faktory_worker_page::workers,
                        read_worker>("workers");

void write_object(json_writer& w, const faktory_worker& worker) {
  w.begin_object().key("wid").value(worker.wid).key("hostname").value(worker.hostname);
  w.key("pid").value(worker.pid).key("labels").begin_array();
  for (const std::string& label : worker.labels) w.value(label);
  w.end_array().key("state").value(to_string(worker.state)).key("rss_kb").value(worker.rss_kb);
  w.key("since").value(worker.since).key("last_beat").value(worker.last_beat);
  w.key("running").value(worker.running).end_object();
}

}  // namespace

template <>
result<faktory_worker> read<faktory_worker>(std::string_view text, read_context context) {
  return read_answer<faktory_worker>(text, context, worker_fields);
}
template <>
result<faktory_worker_page> read<faktory_worker_page>(std::string_view text, read_context context) {
  return read_answer<faktory_worker_page>(text, context, worker_page_fields);
}

void write(std::string& out, const faktory_worker& worker) {
  json_writer w(out);
  write_object(w, worker);
}

void write(std::string& out, const faktory_worker_page& page) {
  json_writer w(out);
  w.begin_object().key("workers").begin_array();
  for (const faktory_worker& worker : page.workers) write_object(w, worker);
  w.end_array();
  detail::write_cursor(w, page.cursor);
  w.end_object();
}

}  // namespace sluice::jobs::json
