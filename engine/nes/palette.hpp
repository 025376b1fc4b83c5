#pragma once

#include <array>
#include <cstdint>

namespace wz {

struct Rgb {
  uint8_t r, g, b;
};

/// OpenCV's 8-bit RGB2GRAY.
constexpr uint8_t gray(Rgb c) {
  return static_cast<uint8_t>((c.r * 9798u + c.g * 19235u + c.b * 3735u + 16384u) >> 15);
}

namespace palette_detail {

/// The colours of nes-py as 0xRRGGBB, one pair of rows for each brightness.
inline constexpr uint32_t kPacked[64] = {
    0x7C7C7C, 0x0000FC, 0x0000BC, 0x4428BC, 0x940084, 0xA80020, 0xA81000, 0x881400,  //
    0x503000, 0x007800, 0x006800, 0x005800, 0x004058, 0x000000, 0x000000, 0x000000,  //
    0xBCBCBC, 0x0078F8, 0x0058F8, 0x6844FC, 0xD800CC, 0xE40058, 0xF83800, 0xE45C10,  //
    0xAC7C00, 0x00B800, 0x00A800, 0x00A844, 0x008888, 0x000000, 0x000000, 0x000000,  //
    0xF8F8F8, 0x3CBCFC, 0x6888FC, 0x9878F8, 0xF878F8, 0xF85898, 0xF87858, 0xFCA044,  //
    0xF8B800, 0xB8F818, 0x58D854, 0x58F898, 0x00E8D8, 0x787878, 0x000000, 0x000000,  //
    0xFCFCFC, 0xA4E4FC, 0xB8B8F8, 0xD8B8F8, 0xF8B8F8, 0xF8A4C0, 0xF0D0B0, 0xFCE0A8,  //
    0xF8D878, 0xD8F878, 0xB8F8B8, 0xB8F8D8, 0x00FCFC, 0xF8D8F8, 0x000000, 0x000000,  //
};

constexpr Rgb unpack(uint32_t c) {
  return {static_cast<uint8_t>(c >> 16 & 0xFF), static_cast<uint8_t>(c >> 8 & 0xFF),
          static_cast<uint8_t>(c & 0xFF)};
}

template <class T, class F>
constexpr std::array<T, 64> table(F f) {
  std::array<T, 64> result{};
  for (size_t i = 0; i < 64; ++i) result[i] = f(unpack(kPacked[i]));
  return result;
}

}  // namespace palette_detail

/// The RGB colour of each NES colour.
inline constexpr std::array<Rgb, 64> kPalette = palette_detail::table<Rgb>([](Rgb c) { return c; });

/// The same in gray.
inline constexpr std::array<uint8_t, 64> kGrayPalette = palette_detail::table<uint8_t>(gray);

/// A NES colour that is black.
inline constexpr uint8_t kBlack = 0x0F;

}  // namespace wz
