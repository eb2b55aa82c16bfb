#include "jobs/server/descriptor_shares.hpp"

#include <algorithm>

namespace sluice::jobs {

std::uint64_t descriptors_for(const descriptor_shares& requested) noexcept {
  return requested.connections() + requested.posts + descriptors_for_others;
}

descriptor_shares share_descriptors(std::uint64_t limit,
                                    const descriptor_shares& requested) noexcept {
  if (limit >= descriptors_for(requested)) return requested;
  const std::uint64_t available =
      limit > descriptors_for_others ? limit - descriptors_for_others : 0;
  const std::uint64_t wanted = requested.connections();
  const std::uint64_t kept_for_connections = std::min(wanted, available - available / 4);
  descriptor_shares shares;
  shares.posts = std::clamp<std::uint64_t>(available - kept_for_connections, 1, requested.posts);
  const std::uint64_t given =
      std::min(wanted, available > shares.posts ? available - shares.posts : 0);
  // One for each protocol that is on, and a proportional part of the rest.
  const std::uint64_t ones = std::uint64_t{requested.http > 0} +
                             std::uint64_t{requested.beanstalk > 0} +
                             std::uint64_t{requested.faktory > 0};
  const std::uint64_t rest = given > ones ? given - ones : 0;
  const auto part = [&](std::uint64_t of) -> std::uint64_t {
    if (of == 0) return 0;
    return 1 + (rest == 0 ? 0 : rest * (of - 1) / (wanted - ones));
  };
  shares.http = part(requested.http);
  shares.beanstalk = part(requested.beanstalk);
  shares.faktory = part(requested.faktory);
  return shares;
}

}  // namespace sluice::jobs
