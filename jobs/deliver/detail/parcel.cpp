#include "jobs/deliver/detail/parcel.hpp"

#include "jobs/deliver/signature.hpp"
#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"

namespace sluice::jobs::detail {
namespace {

struct described {
  std::string_view delivery;  // "job" or "webhook"
  job_id id = 0;
  std::string_view queue;
  std::string_view kind;
  std::uint32_t attempt = 0;
  job_id idempotency = 0;
};

std::vector<std::pair<std::string, std::string>> headers_of(const described& d) {
  return {{"Content-Type", "application/json"},
          {"Accept", "application/json"},
          {"Sluice-Delivery", std::string(d.delivery)},
          {"Sluice-Job-Id", std::to_string(d.id)},
          {"Sluice-Queue", header_value(d.queue)},
          {"Sluice-Kind", header_value(d.kind)},
          {"Sluice-Attempt", std::to_string(d.attempt)},
          {"Idempotency-Key", std::to_string(d.idempotency)}};
}

struct ended_job {
  job_id id = 0;
  std::string queue;
  std::string kind;
};

result<ended_job> read_event(std::string_view event) {
  ended_job read;
  json::json_reader in(event);
  std::string_view key;
  for (in.begin_object(); in.next_key(key);) {
    if (key == "id") {
      read.id = in.natural();
    } else if (key == "queue") {
      read.queue = in.string();
    } else if (key == "kind") {
      read.kind = in.string();
    } else {
      in.skip();
    }
  }
  if (auto finished = in.finish(); !finished) return finished.error();
  return read;
}

}  // namespace

std::string header_value(std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_edge = i == 0 || i + 1 == text.size();
    if (c > ' ' && c < 0x7F && c != '%') {
      out += c;
    } else if (c == ' ' && !is_edge) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += digits[byte >> 4U];
      out += digits[byte & 15U];
    }
  }
  return out;
}

parcel parcel_of_job(const leased_job& leased, const std::string& url) {
  const job_spec& spec = leased.job->spec;
  parcel p{.url = url, .body = {}, .headers = {}};
  json::json_writer w(p.body);
  w.begin_object().key("id").value(leased.job->id);
  w.key("queue")
      .value(spec.queue)
      .key("kind")
      .value(spec.kind)
      .key("attempt")
      .value(leased.attempt);
  if (spec.args.type == content_type::bytes) {
    w.key("args_base64").base64(spec.args.data);
  } else if (!spec.args.data.empty()) {
    w.key("args").raw(spec.args.data);
  }
  if (!spec.metadata.empty()) w.key("metadata").raw(spec.metadata);
  w.end_object();
  p.headers = headers_of({.delivery = "job",
                          .id = leased.job->id,
                          .queue = spec.queue,
                          .kind = spec.kind,
                          .attempt = leased.attempt,
                          .idempotency = leased.job->id});
  return p;
}

result<parcel> parcel_of_webhook(const leased_job& leased) {
  parcel p;
  std::string_view event;
  json::json_reader in(leased.job->spec.args.data);
  std::string_view key;
  for (in.begin_object(); in.next_key(key);) {
    if (key == "url") {
      p.url = in.string();
    } else if (key == "event") {
      event = in.raw_object();
    } else {
      in.skip();
    }
  }
  if (auto finished = in.finish(); !finished) return finished.error();
  if (p.url.empty() || event.empty()) {
    return error{error_code::invalid, R"(expected {"url": "...", "event": {...}})"};
  }
  const auto ended = read_event(event);
  if (!ended) return ended.error();
  p.body = event;
  p.headers = headers_of({.delivery = "webhook",
                          .id = ended->id,
                          .queue = ended->queue,
                          .kind = ended->kind,
                          .attempt = leased.attempt,
                          .idempotency = leased.job->id});
  return p;
}

void sign_parcel(parcel& p, std::string_view version, const std::vector<std::string>& secrets,
                 unix_time now) {
  std::string agent = "sluice";
  if (!version.empty()) agent.append("/").append(version);
  p.headers.emplace_back("User-Agent", std::move(agent));
  if (!secrets.empty()) p.headers.emplace_back("Sluice-Signature", sign(p.body, now, secrets));
}

}  // namespace sluice::jobs::detail
