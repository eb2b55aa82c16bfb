#include "jobs/http/detail/loop.hpp"

namespace sluice::jobs::http {
namespace {

// A scratch buffer larger than this is freed after use.
constexpr std::size_t scratch_bytes_kept = std::size_t{256} << 10;

}  // namespace

loop::loop(server_state& server, engine& jobs, traffic& counts, std::size_t number)
    : net::loop("sluice-http-" + std::to_string(number)),
      server_(server),
      jobs_(jobs),
      counts_(counts) {}

void loop::remove(net::peer& c) {
  if (net::loop::remove(c)) counts_.open.fetch_sub(1, relaxed);
}

std::string& loop::scratch() {
  if (scratch_.capacity() > scratch_bytes_kept) {
    std::string().swap(scratch_);  // an assignment would keep the memory
  } else {
    scratch_.clear();
  }
  return scratch_;
}

std::string_view loop::date() {
  const unix_time now = server_.time.now();
  if (now.ms / 1000 != date_second_) {
    date_second_ = now.ms / 1000;
    date_ = "Date: " + format_http_date(now) + "\r\n";
  }
  return date_;
}

}  // namespace sluice::jobs::http
