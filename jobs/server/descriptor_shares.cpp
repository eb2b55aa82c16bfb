#include "jobs/server/descriptor_shares.hpp"

#include <algorithm>

namespace sluice::jobs {

std::uint64_t descriptors_for(const descriptor_shares& asked) noexcept {
  return asked.connections + asked.posts + descriptors_for_others;
}

descriptor_shares share_descriptors(std::uint64_t limit, const descriptor_shares& asked) noexcept {
  if (limit >= descriptors_for(asked)) return asked;
  const std::uint64_t room = limit > descriptors_for_others ? limit - descriptors_for_others : 0;
  const std::uint64_t kept_for_connections = std::min(asked.connections, room - room / 4);
  descriptor_shares shares;
  shares.posts = std::clamp<std::uint64_t>(room - kept_for_connections, 1, asked.posts);
  shares.connections = std::clamp<std::uint64_t>(room > shares.posts ? room - shares.posts : 1, 1,
                                                 asked.connections);
  return shares;
}

}  // namespace sluice::jobs
