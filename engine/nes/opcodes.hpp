#pragma once

#include <array>
#include <cstdint>

/// The official 6502 instruction set as a table: the translator and the disassembler read it, and
/// the interpreter takes its cycle counts from it.
namespace wz::opcodes {

enum class Mode : uint8_t {
  kImplied, kAccumulator, kImmediate, kZeroPage, kZeroPageX, kZeroPageY, kAbsolute, kAbsoluteX,
  kAbsoluteY, kIndirect, kIndirectX, kIndirectY, kRelative
};

enum class Op : uint8_t {
  kIllegal,
  kAdc, kAnd, kAsl, kBcc, kBcs, kBeq, kBit, kBmi, kBne, kBpl, kBrk, kBvc, kBvs, kClc, kCld, kCli,
  kClv, kCmp, kCpx, kCpy, kDec, kDex, kDey, kEor, kInc, kInx, kIny, kJmp, kJsr, kLda, kLdx, kLdy,
  kLsr, kNop, kOra, kPha, kPhp, kPla, kPlp, kRol, kRor, kRti, kRts, kSbc, kSec, kSed, kSei, kSta,
  kStx, kSty, kTax, kTay, kTsx, kTxa, kTxs, kTya
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

extern const std::array<Info, 256> kTable;

}  // namespace wz::opcodes
