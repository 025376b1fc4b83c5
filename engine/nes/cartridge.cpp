#include "nes/cartridge.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace wz {
namespace {

constexpr size_t kHeader = 16;
constexpr size_t kTrainer = 512;

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

void decode_tiles(Cartridge& cart) {
  for (size_t tile = 0; tile < 512; ++tile) {
    for (size_t row = 0; row < 8; ++row) {
      const unsigned low = cart.chr[tile * 16 + row];
      const unsigned high = cart.chr[tile * 16 + row + 8];
      uint64_t pixels = 0;
      uint64_t flipped = 0;
      for (unsigned x = 0; x < 8; ++x) {
        const uint64_t value = (low >> (7 - x) & 1) | (high >> (7 - x) & 1) << 1;
        pixels |= value << (8 * x);
        flipped |= value << (8 * (7 - x));
      }
      cart.tiles[tile * 8 + row] = pixels;
      cart.tiles_flipped[tile * 8 + row] = flipped;
    }
  }
}

}  // namespace

CartridgePtr parse_ines(std::span<const uint8_t> file) {
  static constexpr uint8_t kMagic[4] = {'N', 'E', 'S', 0x1A};
  if (file.size() < kHeader || !std::equal(std::begin(kMagic), std::end(kMagic), file.begin())) {
    refuse("this is not an iNES file (the header NES\\x1A is missing)");
  }
  const unsigned mapper = static_cast<unsigned>(file[6] >> 4 | (file[7] & 0xF0));
  if (mapper != 0) {
    refuse("this cartridge uses mapper " + std::to_string(mapper) +
           "; only NROM (mapper 0) is supported");
  }
  if (file[4] != 2 || file[5] != 1) {
    refuse("this cartridge has " + std::to_string(file[4] * 16) + " KiB of program and " +
           std::to_string(file[5] * 8) + " KiB of graphics; 32 and 8 are needed");
  }
  if (file[6] & 0x08) refuse("four-screen cartridges are not supported");
  const size_t offset = kHeader + (file[6] & 0x04 ? kTrainer : 0);

  auto cart = std::make_shared<Cartridge>();
  const size_t needed = offset + cart->prg.size() + cart->chr.size();
  if (file.size() < needed) {
    refuse("the file is cut short: " + std::to_string(file.size()) + " bytes, " +
           std::to_string(needed) + " are needed");
  }
  const auto prg = file.begin() + static_cast<std::ptrdiff_t>(offset);
  const auto chr = prg + static_cast<std::ptrdiff_t>(cart->prg.size());
  std::copy_n(prg, cart->prg.size(), cart->prg.begin());
  std::copy_n(chr, cart->chr.size(), cart->chr.begin());
  cart->vertical_mirroring = (file[6] & 0x01) != 0;
  decode_tiles(*cart);
  return cart;
}

}  // namespace wz
