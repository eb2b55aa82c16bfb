#pragma once

// The HTTP request for one leased job: URL, headers and body.

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

// Returns the request with the job itself, for a queue that is delivered to `url`.
parcel parcel_of_job(const leased_job& leased, const std::string& url);
// Returns the request with the end of another job, from args that the engine made: {"url": ...,
// "event": {...}}. Fails with `invalid` for other args.
result<parcel> parcel_of_webhook(const leased_job& leased);

// Adds User-Agent, and Sluice-Signature if there are secrets.
void sign_parcel(parcel& p, std::string_view version, const std::vector<std::string>& secrets,
                 unix_time now);

// Converts any bytes to the value of a header: % and all but printable ASCII are escaped with %.
std::string header_value(std::string_view text);

}  // namespace sluice::jobs::detail
