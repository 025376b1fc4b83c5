#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wz {

/// A 64-bit hash for telling things apart and for noticing damage; not a defence against forgery.
class Hash {
 public:
  void bytes(const void* data, size_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    number(size);
    for (; size >= 8; p += 8, size -= 8) {
      uint64_t word = 0;
      for (int i = 0; i < 8; ++i) word |= static_cast<uint64_t>(p[i]) << (8 * i);
      mix(word);
    }
    uint64_t rest = 0;
    for (size_t i = 0; i < size; ++i) rest |= static_cast<uint64_t>(p[i]) << (8 * i);
    mix(rest);
  }
  void number(uint64_t value) { mix(value); }
  void real(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    mix(bits);
  }
  uint64_t value() const {
    uint64_t z = state_;
    z = (z ^ (z >> 33)) * 0xFF51AFD7ED558CCDu;
    z = (z ^ (z >> 33)) * 0xC4CEB9FE1A85EC53u;
    return z ^ (z >> 33);
  }

 private:
  void mix(uint64_t word) {
    state_ = (state_ ^ word) * 0x9FB21C651E98DF25u;
    state_ ^= state_ >> 32;
  }
  uint64_t state_ = 0x243F6A8885A308D3u;
};

}  // namespace wz
