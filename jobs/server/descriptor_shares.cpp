#include "jobs/server/descriptor_shares.hpp"

#include <algorithm>

namespace sluice::jobs {

std::uint64_t descriptors_for(const descriptor_shares& asked) noexcept {
  return asked.connections() + asked.posts + descriptors_for_others;
}

descriptor_shares share_descriptors(std::uint64_t limit, const descriptor_shares& asked) noexcept {
  if (limit >= descriptors_for(asked)) return asked;
  const std::uint64_t room = limit > descriptors_for_others ? limit - descriptors_for_others : 0;
  const std::uint64_t wanted = asked.connections();
  const std::uint64_t kept_for_connections = std::min(wanted, room - room / 4);
  descriptor_shares shares;
  shares.posts = std::clamp<std::uint64_t>(room - kept_for_connections, 1, asked.posts);
  const std::uint64_t given = std::min(wanted, room > shares.posts ? room - shares.posts : 0);
  // One of each that is on, and of the rest its part.
  const std::uint64_t ones = std::uint64_t{asked.http > 0} + std::uint64_t{asked.beanstalk > 0} +
                             std::uint64_t{asked.faktory > 0};
  const std::uint64_t rest = given > ones ? given - ones : 0;
  const auto part = [&](std::uint64_t of) -> std::uint64_t {
    if (of == 0) return 0;
    return 1 + (rest == 0 ? 0 : rest * (of - 1) / (wanted - ones));
  };
  shares.http = part(asked.http);
  shares.beanstalk = part(asked.beanstalk);
  shares.faktory = part(asked.faktory);
  return shares;
}

}  // namespace sluice::jobs
