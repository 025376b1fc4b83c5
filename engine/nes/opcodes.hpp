#pragma once

#include <array>
#include <cstdint>

/// The official 6502 instruction set as a table: the translator reads it, and the
/// interpreter takes its cycle counts from it.
namespace wz::opcodes {

enum class Mode : uint8_t {
  kImplied,
  kAccumulator,
  kImmediate,
  kZeroPage,
  kZeroPageX,
  kZeroPageY,
  kAbsolute,
  kAbsoluteX,
  kAbsoluteY,
  kIndirect,
  kIndirectX,
  kIndirectY,
  kRelative
};

enum class Op : uint8_t {
  kIllegal,
  kAdc,
  kAnd,
  kAsl,
  kBcc,
  kBcs,
  kBeq,
  kBit,
  kBmi,
  kBne,
  kBpl,
  kBrk,
  kBvc,
  kBvs,
  kClc,
  kCld,
  kCli,
  kClv,
  kCmp,
  kCpx,
  kCpy,
  kDec,
  kDex,
  kDey,
  kEor,
  kInc,
  kInx,
  kIny,
  kJmp,
  kJsr,
  kLda,
  kLdx,
  kLdy,
  kLsr,
  kNop,
  kOra,
  kPha,
  kPhp,
  kPla,
  kPlp,
  kRol,
  kRor,
  kRti,
  kRts,
  kSbc,
  kSec,
  kSed,
  kSei,
  kSta,
  kStx,
  kSty,
  kTax,
  kTay,
  kTsx,
  kTxa,
  kTxs,
  kTya
};

struct Info {
  Op op = Op::kIllegal;
  Mode mode = Mode::kImplied;
  uint8_t cycles = 0;         ///< without penalties
  bool page_penalty = false;  ///< one more cycle when indexing crosses a page
};

constexpr int length(Mode mode) {
  switch (mode) {
    case Mode::kImplied:
    case Mode::kAccumulator:
      return 1;
    case Mode::kAbsolute:
    case Mode::kAbsoluteX:
    case Mode::kAbsoluteY:
    case Mode::kIndirect:
      return 3;
    default:
      return 2;
  }
}

// clang-format off
constexpr std::array<Info, 256> make_table() {
  using enum Mode;
  using enum Op;
  std::array<Info, 256> t{};
  t[0x00] = {kBrk, kImplied, 7, false};
  t[0x01] = {kOra, kIndirectX, 6, false};
  t[0x05] = {kOra, kZeroPage, 3, false};
  t[0x06] = {kAsl, kZeroPage, 5, false};
  t[0x08] = {kPhp, kImplied, 3, false};
  t[0x09] = {kOra, kImmediate, 2, false};
  t[0x0A] = {kAsl, kAccumulator, 2, false};
  t[0x0D] = {kOra, kAbsolute, 4, false};
  t[0x0E] = {kAsl, kAbsolute, 6, false};
  t[0x10] = {kBpl, kRelative, 2, false};
  t[0x11] = {kOra, kIndirectY, 5, true};
  t[0x15] = {kOra, kZeroPageX, 4, false};
  t[0x16] = {kAsl, kZeroPageX, 6, false};
  t[0x18] = {kClc, kImplied, 2, false};
  t[0x19] = {kOra, kAbsoluteY, 4, true};
  t[0x1D] = {kOra, kAbsoluteX, 4, true};
  t[0x1E] = {kAsl, kAbsoluteX, 7, false};
  t[0x20] = {kJsr, kAbsolute, 6, false};
  t[0x21] = {kAnd, kIndirectX, 6, false};
  t[0x24] = {kBit, kZeroPage, 3, false};
  t[0x25] = {kAnd, kZeroPage, 3, false};
  t[0x26] = {kRol, kZeroPage, 5, false};
  t[0x28] = {kPlp, kImplied, 4, false};
  t[0x29] = {kAnd, kImmediate, 2, false};
  t[0x2A] = {kRol, kAccumulator, 2, false};
  t[0x2C] = {kBit, kAbsolute, 4, false};
  t[0x2D] = {kAnd, kAbsolute, 4, false};
  t[0x2E] = {kRol, kAbsolute, 6, false};
  t[0x30] = {kBmi, kRelative, 2, false};
  t[0x31] = {kAnd, kIndirectY, 5, true};
  t[0x35] = {kAnd, kZeroPageX, 4, false};
  t[0x36] = {kRol, kZeroPageX, 6, false};
  t[0x38] = {kSec, kImplied, 2, false};
  t[0x39] = {kAnd, kAbsoluteY, 4, true};
  t[0x3D] = {kAnd, kAbsoluteX, 4, true};
  t[0x3E] = {kRol, kAbsoluteX, 7, false};
  t[0x40] = {kRti, kImplied, 6, false};
  t[0x41] = {kEor, kIndirectX, 6, false};
  t[0x45] = {kEor, kZeroPage, 3, false};
  t[0x46] = {kLsr, kZeroPage, 5, false};
  t[0x48] = {kPha, kImplied, 3, false};
  t[0x49] = {kEor, kImmediate, 2, false};
  t[0x4A] = {kLsr, kAccumulator, 2, false};
  t[0x4C] = {kJmp, kAbsolute, 3, false};
  t[0x4D] = {kEor, kAbsolute, 4, false};
  t[0x4E] = {kLsr, kAbsolute, 6, false};
  t[0x50] = {kBvc, kRelative, 2, false};
  t[0x51] = {kEor, kIndirectY, 5, true};
  t[0x55] = {kEor, kZeroPageX, 4, false};
  t[0x56] = {kLsr, kZeroPageX, 6, false};
  t[0x58] = {kCli, kImplied, 2, false};
  t[0x59] = {kEor, kAbsoluteY, 4, true};
  t[0x5D] = {kEor, kAbsoluteX, 4, true};
  t[0x5E] = {kLsr, kAbsoluteX, 7, false};
  t[0x60] = {kRts, kImplied, 6, false};
  t[0x61] = {kAdc, kIndirectX, 6, false};
  t[0x65] = {kAdc, kZeroPage, 3, false};
  t[0x66] = {kRor, kZeroPage, 5, false};
  t[0x68] = {kPla, kImplied, 4, false};
  t[0x69] = {kAdc, kImmediate, 2, false};
  t[0x6A] = {kRor, kAccumulator, 2, false};
  t[0x6C] = {kJmp, kIndirect, 5, false};
  t[0x6D] = {kAdc, kAbsolute, 4, false};
  t[0x6E] = {kRor, kAbsolute, 6, false};
  t[0x70] = {kBvs, kRelative, 2, false};
  t[0x71] = {kAdc, kIndirectY, 5, true};
  t[0x75] = {kAdc, kZeroPageX, 4, false};
  t[0x76] = {kRor, kZeroPageX, 6, false};
  t[0x78] = {kSei, kImplied, 2, false};
  t[0x79] = {kAdc, kAbsoluteY, 4, true};
  t[0x7D] = {kAdc, kAbsoluteX, 4, true};
  t[0x7E] = {kRor, kAbsoluteX, 7, false};
  t[0x81] = {kSta, kIndirectX, 6, false};
  t[0x84] = {kSty, kZeroPage, 3, false};
  t[0x85] = {kSta, kZeroPage, 3, false};
  t[0x86] = {kStx, kZeroPage, 3, false};
  t[0x88] = {kDey, kImplied, 2, false};
  t[0x8A] = {kTxa, kImplied, 2, false};
  t[0x8C] = {kSty, kAbsolute, 4, false};
  t[0x8D] = {kSta, kAbsolute, 4, false};
  t[0x8E] = {kStx, kAbsolute, 4, false};
  t[0x90] = {kBcc, kRelative, 2, false};
  t[0x91] = {kSta, kIndirectY, 6, false};
  t[0x94] = {kSty, kZeroPageX, 4, false};
  t[0x95] = {kSta, kZeroPageX, 4, false};
  t[0x96] = {kStx, kZeroPageY, 4, false};
  t[0x98] = {kTya, kImplied, 2, false};
  t[0x99] = {kSta, kAbsoluteY, 5, false};
  t[0x9A] = {kTxs, kImplied, 2, false};
  t[0x9D] = {kSta, kAbsoluteX, 5, false};
  t[0xA0] = {kLdy, kImmediate, 2, false};
  t[0xA1] = {kLda, kIndirectX, 6, false};
  t[0xA2] = {kLdx, kImmediate, 2, false};
  t[0xA4] = {kLdy, kZeroPage, 3, false};
  t[0xA5] = {kLda, kZeroPage, 3, false};
  t[0xA6] = {kLdx, kZeroPage, 3, false};
  t[0xA8] = {kTay, kImplied, 2, false};
  t[0xA9] = {kLda, kImmediate, 2, false};
  t[0xAA] = {kTax, kImplied, 2, false};
  t[0xAC] = {kLdy, kAbsolute, 4, false};
  t[0xAD] = {kLda, kAbsolute, 4, false};
  t[0xAE] = {kLdx, kAbsolute, 4, false};
  t[0xB0] = {kBcs, kRelative, 2, false};
  t[0xB1] = {kLda, kIndirectY, 5, true};
  t[0xB4] = {kLdy, kZeroPageX, 4, false};
  t[0xB5] = {kLda, kZeroPageX, 4, false};
  t[0xB6] = {kLdx, kZeroPageY, 4, false};
  t[0xB8] = {kClv, kImplied, 2, false};
  t[0xB9] = {kLda, kAbsoluteY, 4, true};
  t[0xBA] = {kTsx, kImplied, 2, false};
  t[0xBC] = {kLdy, kAbsoluteX, 4, true};
  t[0xBD] = {kLda, kAbsoluteX, 4, true};
  t[0xBE] = {kLdx, kAbsoluteY, 4, true};
  t[0xC0] = {kCpy, kImmediate, 2, false};
  t[0xC1] = {kCmp, kIndirectX, 6, false};
  t[0xC4] = {kCpy, kZeroPage, 3, false};
  t[0xC5] = {kCmp, kZeroPage, 3, false};
  t[0xC6] = {kDec, kZeroPage, 5, false};
  t[0xC8] = {kIny, kImplied, 2, false};
  t[0xC9] = {kCmp, kImmediate, 2, false};
  t[0xCA] = {kDex, kImplied, 2, false};
  t[0xCC] = {kCpy, kAbsolute, 4, false};
  t[0xCD] = {kCmp, kAbsolute, 4, false};
  t[0xCE] = {kDec, kAbsolute, 6, false};
  t[0xD0] = {kBne, kRelative, 2, false};
  t[0xD1] = {kCmp, kIndirectY, 5, true};
  t[0xD5] = {kCmp, kZeroPageX, 4, false};
  t[0xD6] = {kDec, kZeroPageX, 6, false};
  t[0xD8] = {kCld, kImplied, 2, false};
  t[0xD9] = {kCmp, kAbsoluteY, 4, true};
  t[0xDD] = {kCmp, kAbsoluteX, 4, true};
  t[0xDE] = {kDec, kAbsoluteX, 7, false};
  t[0xE0] = {kCpx, kImmediate, 2, false};
  t[0xE1] = {kSbc, kIndirectX, 6, false};
  t[0xE4] = {kCpx, kZeroPage, 3, false};
  t[0xE5] = {kSbc, kZeroPage, 3, false};
  t[0xE6] = {kInc, kZeroPage, 5, false};
  t[0xE8] = {kInx, kImplied, 2, false};
  t[0xE9] = {kSbc, kImmediate, 2, false};
  t[0xEA] = {kNop, kImplied, 2, false};
  t[0xEC] = {kCpx, kAbsolute, 4, false};
  t[0xED] = {kSbc, kAbsolute, 4, false};
  t[0xEE] = {kInc, kAbsolute, 6, false};
  t[0xF0] = {kBeq, kRelative, 2, false};
  t[0xF1] = {kSbc, kIndirectY, 5, true};
  t[0xF5] = {kSbc, kZeroPageX, 4, false};
  t[0xF6] = {kInc, kZeroPageX, 6, false};
  t[0xF8] = {kSed, kImplied, 2, false};
  t[0xF9] = {kSbc, kAbsoluteY, 4, true};
  t[0xFD] = {kSbc, kAbsoluteX, 4, true};
  t[0xFE] = {kInc, kAbsoluteX, 7, false};
  return t;
}
// clang-format on

inline constexpr std::array<Info, 256> kTable = make_table();

}  // namespace wz::opcodes
