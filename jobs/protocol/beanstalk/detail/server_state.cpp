#include "jobs/protocol/beanstalk/detail/server_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sluice/base/check.hpp"

namespace sluice::jobs::beanstalk {
namespace {

std::string random_word() {
  std::uint64_t number = 0;
  check(::getentropy(&number, sizeof number) == 0, "sluice::jobs::beanstalk",
        "random numbers of the system");
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

server_state::server_state(engine& e, const beanstalk_options& o)
    : jobs(e),
      job_bytes_max(static_cast<std::uint32_t>(
          std::min<std::size_t>(o.job_bytes_max, limits::args_bytes_max))),
      version(o.version),
      binlog_max(o.binlog_max),
      put_wait(o.put_wait),
      time(o.time != nullptr ? *o.time : real_time()),
      id(random_word()),
      started(time.now()),
      retry{.attempts_max = 1'000'000,
            .first = milliseconds(0),
            .factor = 1.0,
            .longest = milliseconds(0),
            .jitter = 0.0} {}

}  // namespace sluice::jobs::beanstalk
