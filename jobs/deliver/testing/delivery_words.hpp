#pragma once

// Test vocabulary for the deliverer: an engine on a disk that can fail, a manual clock, delivered
// queues, and the ends of their jobs.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/deliver/deliverer.hpp"
#include "jobs/deliver/testing/receiver.hpp"
#include "jobs/engine/testing/engine_words.hpp"
#include "sluice/sync/guarded.hpp"

namespace sluice::jobs::testing {

using sluice::testing::eventually;

class delivery_words : public engine_words {
 protected:
  delivery_words() {
    options.check_url = [](std::string_view) -> void_result { return done{}; };
    posting.time = &time;
    posting.version = "1.2.3";
    posting.rules = url_rules::parse({"http://127.0.0.1:1"}).value();
    posting.on_event = [this](const delivery_event& e) { events.lock()->push_back(e); };
  }
  void TearDown() override {
    drive.works();
    posts.reset();
    engine_words::TearDown();
  }

  // Creates the deliverer at first use.
  deliverer& d() {
    if (posts == nullptr) {
      auto opened = deliverer::open(e(), posting);
      check(opened.has_value(), "test", "a deliverer");
      posts = *std::move(opened);
    }
    return *posts;
  }
  void allow(const std::vector<const receiver*>& all) {
    std::vector<std::string> rules;
    for (const receiver* const endpoint : all) {
      rules.push_back(endpoint->url("/in"));
      rules.push_back(endpoint->url("/in", "localhost"));
    }
    posting.rules = url_rules::parse(rules).value();
  }
  // An empty URL ends the delivery.
  void deliver(const std::string& queue, const delivery_target& endpoint) {
    configure({.deliver_url = endpoint.url,
               .deliver_concurrency = endpoint.concurrency,
               .deliver_timeout = endpoint.timeout},
              queue);
    d().refresh();
  }
  // Delivers the queue "default" to a receiver, which is allowed.
  void deliver_to(const receiver& endpoint, std::uint32_t concurrency = 8,
                  milliseconds timeout = 30s) {
    if (posts == nullptr) allow({&endpoint});
    deliver("default", {.url = endpoint.url(), .concurrency = concurrency, .timeout = timeout});
  }

  job_id push_kept(job_spec spec = {}) {
    spec.keep_for = 1h;
    return push(std::move(spec));
  }
  job ended(job_id id) {
    auto found = e().wait(id, deadline::after(1min)).get();
    EXPECT_TRUE(found) << "job " << id << ": " << (found ? "" : found.error().message);
    return found ? *std::move(found) : job{};
  }
  // Waits until its attempt has failed and a retry is scheduled.
  job retrying(job_id id) {
    eventually([&] { return state(id) == job_state::retrying; }, "a job that is to be retried");
    return get(id);
  }
  job_id push_webhook(const std::string& url, const std::string& event) {
    return push_kept({.queue = std::string(webhook_queue),
                      .kind = "sluice.webhook",
                      .args = {R"({"url":")" + url + R"(","event":)" + event + "}"}});
  }
  // Advances the clock while no request of the queue is in progress, so that none times out, and at
  // most to the next due job, whose request could start before the clock stops.
  void advance_idle(const std::string& queue, milliseconds by) {
    milliseconds step{};
    eventually([&] {
      const unix_time now = time.now();
      unix_time next = now + by;
      for (const job& j : list_all({.queue = queue})) {
        if (has_ended(j.state)) continue;
        if (j.state != job_state::scheduled && j.state != job_state::retrying) return false;
        next = std::min(next, j.due_at);
      }
      step = next - now;
      return step.count() > 0 && stats_of(queue).in_flight == 0;
    });
    advance(step);
  }
  delivery_stats stats_of(const std::string& queue = "default") {
    for (const delivery_stats& s : d().stats()) {
      if (s.queue == queue) return s;
    }
    return {};
  }
  std::vector<delivery_event> events_of(delivery_event::event_kind kind) {
    std::vector<delivery_event> found;
    const auto held = events.lock();
    for (const delivery_event& e : *held) {
      if (e.kind == kind) found.push_back(e);
    }
    return found;
  }

  guarded<std::vector<delivery_event>> events;
  deliverer_options posting;
  std::unique_ptr<deliverer> posts;
};

}  // namespace sluice::jobs::testing
