#include "jobs/worker/work_source.hpp"

#include <utility>

#include "jobs/client/client.hpp"
#include "jobs/engine/engine.hpp"
#include "sluice/future/promise.hpp"

namespace sluice::jobs {
namespace {

class engine_source final : public work_source {
 public:
  explicit engine_source(engine& e) : engine_(e) {}

  future<result<std::vector<leased_job>>> lease(lease_request request,
                                                wait_limits limits) override {
    return engine_.lease(std::move(request), std::move(limits));
  }
  future<result<extension>> extend(lease_ref lease, milliseconds by) override {
    return make_ready_future<result<extension>>(engine_.extend(lease, by));
  }
  future<void_result> report(lease_ref lease, progress update) override {
    return make_ready_future<void_result>(engine_.report(lease, std::move(update)));
  }
  future<void_result> log(lease_ref lease, std::vector<std::string> lines) override {
    return engine_.log(lease, std::move(lines));
  }
  future<std::vector<void_result>> ack_many(std::vector<ack_item> items) override {
    return engine_.ack_many(std::move(items));
  }
  future<result<fail_receipt>> fail(lease_ref lease, failure why) override {
    return engine_.fail(lease, std::move(why));
  }
  future<void_result> release(lease_ref lease, give_back options) override {
    return engine_.release(lease, options);
  }

 private:
  engine& engine_;
};

class client_source final : public work_source {
 public:
  explicit client_source(client& c) : client_(c) {}

  future<result<std::vector<leased_job>>> lease(lease_request request,
                                                wait_limits limits) override {
    return client_.async_lease(std::move(request), std::move(limits));
  }
  future<result<extension>> extend(lease_ref lease, milliseconds by) override {
    return client_.async_extend(lease, by);
  }
  future<void_result> report(lease_ref lease, progress update) override {
    return client_.async_report(lease, std::move(update));
  }
  future<void_result> log(lease_ref lease, std::vector<std::string> lines) override {
    return client_.async_log(lease, std::move(lines));
  }
  future<std::vector<void_result>> ack_many(std::vector<ack_item> items) override {
    return client_.async_ack_many(std::move(items));
  }
  future<result<fail_receipt>> fail(lease_ref lease, failure why) override {
    return client_.async_fail(lease, std::move(why));
  }
  future<void_result> release(lease_ref lease, give_back options) override {
    return client_.async_release(lease, options);
  }

 private:
  client& client_;
};

}  // namespace

std::unique_ptr<work_source> work_from(engine& e) {
  return std::make_unique<engine_source>(e);
}

std::unique_ptr<work_source> work_from(client& c) {
  return std::make_unique<client_source>(c);
}

}  // namespace sluice::jobs
