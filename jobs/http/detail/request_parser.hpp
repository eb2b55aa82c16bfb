#pragma once

// Beast's incremental parser without a map of headers: keeps a few of them, and does not copy a
// body that arrives in one piece.

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/http/detail/request.hpp"

namespace sluice::jobs::http {

class request_parser final : public boost::beast::http::basic_parser<true> {
 public:
  enum class body_use : std::uint8_t { keep, stream, discard };

  explicit request_parser(std::uint32_t head_bytes_max) : head_bytes_max_(head_bytes_max) {
    header_limit(head_bytes_max);
    body_limit(boost::none);  // enforced by `take`: it depends on the route
  }

  // Parses like Beast's put, with two differences. The end of a chunked body is not passed in
  // pieces shorter than five bytes, its shortest form: Beast asserts otherwise. And a chunk-size
  // line with extensions, or the trailers, longer than a head fail with header_limit: Beast has no
  // limit for them.
  std::size_t put(boost::asio::const_buffer bytes, boost::beast::error_code& ec) {
    const bool is_in_chunks = is_header_done() && !is_done() && chunked();
    if (is_in_chunks && bytes.size() < last_chunk_bytes_min) {
      ec = boost::beast::http::error::need_more;
      return 0;
    }
    took_body_ = false;
    const std::size_t used = basic_parser::put(bytes, ec);
    if (!is_in_chunks || took_body_) return used;
    const bool is_unended = ec == boost::beast::http::error::need_more;
    if ((is_unended ? bytes.size() : used) > head_bytes_max_ && (is_unended || !ec)) {
      ec = boost::beast::http::error::header_limit;
    }
    return used;
  }

  const request_head& head() const noexcept { return head_; }
  // Sets the treatment of the body and its limit. Must be called when the head is complete.
  void use_body(body_use use, std::uint64_t bytes_max) noexcept {
    use_ = use;
    bytes_max_ = bytes_max;
  }
  std::uint64_t bytes_max() const noexcept { return bytes_max_; }
  bool is_too_long() const noexcept { return too_long_; }
  std::uint64_t body_bytes() const noexcept { return received_; }
  // Returns the kept body. Valid as long as the parser and the bytes passed to `put` are.
  std::string_view body() const noexcept { return kept_.empty() ? piece_ : kept_; }
  std::size_t kept_bytes() const noexcept { return kept_.size(); }
  // Makes the body independent of the bytes given to `put`.
  void keep_body() {
    if (kept_.empty()) kept_ = std::exchange(piece_, {});
  }
  // Allocates memory for a body of this length.
  void reserve_body(std::size_t bytes) { kept_.reserve(bytes); }
  std::size_t memory() const noexcept {
    const auto size = [](const std::optional<std::string>& s) { return s ? s->size() : 0; };
    return kept_.capacity() + head_.target.size() + head_.bearer.size() + head_.last_event.size() +
           size(head_.host) + size(head_.origin);
  }
  // Returns the bytes of a streamed body that the last `put` parsed.
  std::string_view piece() noexcept { return std::exchange(piece_, {}); }

 private:
  using error_code = boost::beast::error_code;
  using string_view = boost::beast::string_view;
  using verb = boost::beast::http::verb;
  using field = boost::beast::http::field;

  static constexpr std::size_t last_chunk_bytes_min = std::string_view("0\r\n\r\n").size();

  static std::string_view plain(string_view s) noexcept { return {s.data(), s.size()}; }

  void on_request_impl(verb method, string_view, string_view target, int version,
                       error_code&) override {
    head_.is_old = version < 11;
    head_.method = method_of(method);
    head_.target = plain(target);
  }
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(field name, string_view, string_view value, error_code&) override;
  void on_header_impl(error_code&) override {
    head_.has_length = chunked() || content_length() != boost::none;
    if (!head_.is_old && !head_.host) head_.ambiguity = "an HTTP/1.1 request needs a Host header";
    if (head_.is_old && has_coding_) {
      head_.ambiguity = "HTTP/1.0 has no Transfer-Encoding: send a Content-Length";
    }
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code& ec) override {
    take(plain(body), ec);
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code& ec) override {
    took_body_ = true;
    take(plain(body), ec);
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  static method method_of(verb v) noexcept {
    switch (v) {
      case verb::get:
        return method::get;
      case verb::head:
        return method::head;
      case verb::post:
        return method::post;
      case verb::put:
        return method::put;
      case verb::patch:
        return method::patch;
      case verb::delete_:
        return method::remove;
      case verb::options:
        return method::options;
      default:
        return method::other;
    }
  }

  void take(std::string_view part, error_code& ec) {
    received_ += part.size();
    if (received_ > bytes_max_) {
      too_long_ = true;
      ec = boost::beast::http::error::body_limit;
      return;
    }
    if (use_ == body_use::discard) return;
    if (use_ == body_use::stream || (kept_.empty() && content_length() == part.size())) {
      piece_ = part;
    } else {
      kept_ += part;
    }
  }

  // Stores the value of a header that may occur once.
  void take_once(std::optional<std::string>& header, string_view value, std::string_view refusal) {
    if (header) head_.ambiguity = refusal;
    header = plain(value);
  }

  const std::size_t head_bytes_max_;
  request_head head_;
  bool took_body_ = false;   // the last `put` parsed bytes of a chunk
  bool has_coding_ = false;  // Transfer-Encoding
  bool has_content_length_ = false;
  body_use use_ = body_use::discard;
  std::uint64_t bytes_max_ = 0;
  std::uint64_t received_ = 0;
  bool too_long_ = false;
  std::string kept_;
  std::string_view piece_;
};

inline void request_parser::on_field_impl(field name, string_view text, string_view value,
                                          error_code&) {
  if (is_header_done()) return;  // a trailer: the head was processed already
  switch (name) {
    case field::content_type:
      head_.media = media_of(plain(value));
      return;
    case field::prefer:
      head_.prefer_wait = prefer_wait(plain(value));
      return;
    case field::host:
      return take_once(head_.host, value, "there are two Host headers: send one");
    case field::origin:
      return take_once(head_.origin, value, "there are two Origin headers: send one");
    case field::transfer_encoding:
      // Beast treats a body whose last coding is not chunked as no body (RFC 9112, 6.3).
      has_coding_ = true;
      if (!boost::beast::iequals(value, "chunked")) {
        head_.ambiguity = "the only Transfer-Encoding that this server reads is chunked";
      }
      return;
    case field::content_length:
      if (std::exchange(has_content_length_, true) || value.find(',') != string_view::npos) {
        head_.ambiguity = "there are two lengths in Content-Length: send one";
      }
      return;
    case field::authorization:
      // Two Authorization headers are ambiguous: use neither.
      head_.bearer = std::exchange(head_.has_authorization, true) ? std::string_view()
                                                                  : bearer_of(plain(value));
      return;
    case field::expect:
      (boost::beast::iequals(value, "100-continue") ? head_.expects_continue
                                                    : head_.expects_other) = true;
      return;
    default:
      if (boost::beast::iequals(text, "last-event-id")) {
        head_.last_event = plain(value);
      } else if (boost::beast::iequals(text, "sec-fetch-site")) {
        const bool is_first = head_.site == fetch_site::unknown;
        head_.site =
            is_first && value == "same-origin" ? fetch_site::same_origin : fetch_site::other;
      }
      return;
  }
}

}  // namespace sluice::jobs::http
