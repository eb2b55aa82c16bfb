#pragma once

// A body type for Beast's parser that keeps the first bytes and stops the parser when there are
// more.

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::jobs::detail {

struct kept_body {
  struct value_type {
    std::string text;
    std::size_t most = 0;
  };

  class reader {
   public:
    template <bool IsRequest, class Fields>
    reader(boost::beast::http::header<IsRequest, Fields>&, value_type& into) : into_(into) {}

    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& failed) {
      failed = {};
    }
    template <class Buffers>
    std::size_t put(const Buffers& parts, boost::system::error_code& failed) {
      failed = {};
      std::size_t taken = 0;
      for (const auto part : boost::beast::buffers_range_ref(parts)) {
        const std::size_t free = into_.most - into_.text.size();
        into_.text.append(static_cast<const char*>(part.data()), std::min(free, part.size()));
        taken += part.size();
        if (part.size() > free) failed = boost::beast::http::error::body_limit;
      }
      return taken;
    }
    void finish(boost::system::error_code& failed) { failed = {}; }

   private:
    value_type& into_;
  };
};

}  // namespace sluice::jobs::detail
