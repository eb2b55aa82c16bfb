#pragma once

// The names of tubes and the names of queues, one for the other.
//
// A queue's name has letters, digits and . _ - / : up to 128 bytes; a tube's name may also have
// + ; $ ( ). Those five are written as a colon and two hexadecimal digits (`a+b` is the queue
// `a:2Bb`); all else is the same in both, so `default` is `default`. Beyond what beanstalkd allows,
// a tube's name may have a colon: so every queue has a name here.
//
// Guarantees: tube_of(queue_of(t)) is t for every tube without a colon, and queue_of(tube_of(q)) is
// q for every queue.

#include <optional>
#include <string>
#include <string_view>

namespace sluice::jobs::beanstalk {

inline constexpr std::size_t tube_bytes_max = 200;

// None: it is no name of a tube, or it is longer than a queue's can be.
std::optional<std::string> queue_of(std::string_view tube);
std::string tube_of(std::string_view queue);

// What a tube may be called, whatever a queue may be.
bool is_tube_name(std::string_view tube) noexcept;

}  // namespace sluice::jobs::beanstalk
