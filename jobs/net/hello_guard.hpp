#pragma once

// Bounds the memory of a TLS handshake: OpenSSL allocates the length that the head of a ClientHello
// claims, up to 128 KiB, before the bytes arrive, and has no option for it.
//
// Checks the bytes that OpenSSL reads during the handshake. Refuses a ClientHello that does not fit
// one record (16 KiB) or is split between records, also as the second ClientHello of TLS 1.3. A
// real ClientHello has about 500 to 2000 bytes. Cost: a few comparisons for each record of the
// handshake; one comparison for each read after it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::jobs::net {

class hello_guard {
 public:
  // Checks the next bytes from the client. `is_tls12`: TLS 1.2 was chosen, where records after a
  // change of the cipher are encrypted. Returns false if the handshake must end.
  bool allows(std::string_view bytes, bool is_tls12) noexcept {
    while (!is_done_ && !bytes.empty()) {
      if (skipped_ > 0) {
        const std::size_t some = std::min(bytes.size(), skipped_);
        skipped_ -= some;
        bytes.remove_prefix(some);
        continue;
      }
      head_[seen_++] = static_cast<std::uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      if (seen_ == record_head && !begin_record(is_tls12)) return false;
      if (seen_ == record_head + message_head && !begin_message()) return false;
    }
    return true;
  }
  // Called when the handshake is complete: all later bytes are allowed.
  void end() noexcept { is_done_ = true; }

 private:
  // A record begins with its type, version and length; a message with its type and length.
  static constexpr std::size_t record_head = 5;
  static constexpr std::size_t message_head = 4;
  static constexpr std::uint8_t change_of_cipher = 20;
  static constexpr std::uint8_t of_handshake = 22;
  static constexpr std::uint8_t client_hello = 1;

  std::size_t record_bytes() const noexcept { return std::size_t{head_[3]} << 8U | head_[4]; }
  bool begin_record(bool is_tls12) noexcept {
    if (head_[0] == change_of_cipher && is_tls12) is_done_ = true;
    if (head_[0] == of_handshake) return record_bytes() >= message_head;
    skipped_ = record_bytes();
    seen_ = 0;
    return true;
  }
  bool begin_message() noexcept {
    const std::size_t left = record_bytes() - message_head;
    const std::size_t claimed =
        std::size_t{head_[6]} << 16U | std::size_t{head_[7]} << 8U | head_[8];
    skipped_ = left;
    seen_ = 0;
    return head_[record_head] != client_hello || claimed <= left;
  }

  std::array<std::uint8_t, record_head + message_head> head_{};
  std::size_t seen_ = 0;     // valid bytes of head_
  std::size_t skipped_ = 0;  // remaining bytes of the record, which are not checked
  bool is_done_ = false;
};

}  // namespace sluice::jobs::net
