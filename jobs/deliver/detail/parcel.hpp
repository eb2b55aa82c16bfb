#pragma once

// What is posted for one leased job: where to, with which headers, which body.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobs/model/requests.hpp"
#include "jobs/model/result.hpp"
#include "jobs/model/time.hpp"

namespace sluice::jobs::detail {

struct parcel {
  std::string url{};
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

// The job itself, for a queue that is delivered to `url`.
parcel parcel_of_job(const leased_job& it, const std::string& url);
// The end of another job: what the engine put into the args of `it`, {"url": ..., "event": {...}}.
// invalid when they are something else.
result<parcel> parcel_of_webhook(const leased_job& it);

// What both have: User-Agent, and Sluice-Signature if there are secrets.
void sign_parcel(parcel& p, std::string_view version, const std::vector<std::string>& secrets,
                 unix_time now);

// Any bytes as the value of a header: what is not printable ASCII, and %, is escaped with %.
std::string header_value(std::string_view text);

}  // namespace sluice::jobs::detail
