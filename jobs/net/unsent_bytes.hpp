#pragma once

// The unsent bytes of a connection's replies.
//
// Guarantees: FIFO. `next` returns the same bytes until they are taken, as SSL_write requires for a
// retry. Offsets count from the beginning of the connection.
// Cost: a byte is moved about twice, for any sizes of `take`. Memory: a small multiple of the
// unsent bytes, or bytes_kept; bytes that were sent are freed.
//
//     out.append(reply);
//     out.take(write(out.next()));

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::jobs::net {

class unsent_bytes {
 public:
  // Memory that may be kept while nothing is unsent.
  static constexpr std::size_t bytes_kept = std::size_t{16} << 10;

  void append(std::string_view more) { bytes_ += more; }
  // Takes over the memory of a long reply instead of copying it, if there are no bytes before it.
  void adopt(std::string&& more) {
    if (!empty() || more.size() <= bytes_kept) return append(more);
    begin_ += taken_;
    taken_ = 0;
    bytes_ = std::move(more);
  }
  std::string_view next() const noexcept { return std::string_view(bytes_).substr(taken_); }
  // Removes the next `n` bytes, which were sent.
  void take(std::size_t n) {
    taken_ += n;
    if (taken_ < bytes_.size() && (taken_ <= bytes_kept || taken_ < size())) return;
    begin_ += taken_;
    if (bytes_.capacity() > bytes_kept) {
      std::string(next()).swap(bytes_);  // an assignment would keep the memory
    } else {
      bytes_.erase(0, taken_);
    }
    taken_ = 0;
  }

  bool empty() const noexcept { return taken_ == bytes_.size(); }
  std::size_t size() const noexcept { return bytes_.size() - taken_; }
  std::uint64_t begin_offset() const noexcept { return begin_ + taken_; }
  std::uint64_t end_offset() const noexcept { return begin_ + bytes_.size(); }
  std::size_t memory() const noexcept { return bytes_.capacity(); }

 private:
  std::string bytes_;
  std::size_t taken_ = 0;    // bytes of bytes_
  std::uint64_t begin_ = 0;  // the offset of bytes_
};

}  // namespace sluice::jobs::net
