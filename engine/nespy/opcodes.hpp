#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace wz::nespy {

enum class Op : uint8_t {
  // clang-format off
  kNone,
  kOra, kAnd, kEor, kAdc, kSta, kLda, kCmp, kSbc,
  kAsl, kRol, kLsr, kRor, kStx, kLdx, kDec, kInc,
  kBit, kSty, kLdy, kCpy, kCpx,
  kBranch, kBrk, kJsr, kRti, kRts, kJmp, kJmpIndirect,
  kPhp, kPlp, kPha, kPla,
  kClc, kSec, kCli, kSei, kClv, kCld, kSed,
  kDey, kTay, kIny, kInx, kTya, kTxa, kTxs, kTax, kTsx, kDex, kNop,
  // clang-format on
};

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
  kIndirectX,
  kIndirectY,
};

struct Instruction {
  Op op = Op::kNone;
  Mode mode = Mode::kImplied;
  uint8_t cycles = 0;  ///< without page crossings and taken branches
};

namespace detail {

/// One digit per opcode; 0 for the undocumented ones.
inline constexpr std::string_view kCycles =
    "7600035032200460"
    "2500046024000470"
    "6600335042204460"
    "2500046024000470"
    "6600035032203460"
    "2500046024000470"
    "6600035042205460"
    "2500046024000470"
    "0600333020204440"
    "2600444025200500"
    "2620333022204440"
    "2500444024204440"
    "2600335022204460"
    "2500046024000470"
    "2600335022204460"
    "2500046024000470";

struct Single {
  uint8_t opcode;
  Op op;
};

/// Opcodes outside the regular columns.
inline constexpr Single kSingles[] = {
    {0x00, Op::kBrk},         {0x08, Op::kPhp}, {0x18, Op::kClc}, {0x20, Op::kJsr},
    {0x28, Op::kPlp},         {0x38, Op::kSec}, {0x40, Op::kRti}, {0x48, Op::kPha},
    {0x4C, Op::kJmp},         {0x58, Op::kCli}, {0x60, Op::kRts}, {0x68, Op::kPla},
    {0x6C, Op::kJmpIndirect}, {0x78, Op::kSei}, {0x88, Op::kDey}, {0x8A, Op::kTxa},
    {0x98, Op::kTya},         {0x9A, Op::kTxs}, {0xA8, Op::kTay}, {0xAA, Op::kTax},
    {0xB8, Op::kClv},         {0xBA, Op::kTsx}, {0xC8, Op::kIny}, {0xCA, Op::kDex},
    {0xD8, Op::kCld},         {0xE8, Op::kInx}, {0xEA, Op::kNop}, {0xF8, Op::kSed},
};

/// Operations and addressing modes of the three columns (the lowest two bits of an opcode).
inline constexpr Op kOps[3][8] = {
    {Op::kNone, Op::kBit, Op::kNone, Op::kNone, Op::kSty, Op::kLdy, Op::kCpy, Op::kCpx},
    {Op::kOra, Op::kAnd, Op::kEor, Op::kAdc, Op::kSta, Op::kLda, Op::kCmp, Op::kSbc},
    {Op::kAsl, Op::kRol, Op::kLsr, Op::kRor, Op::kStx, Op::kLdx, Op::kDec, Op::kInc},
};
inline constexpr Mode kModes[3][8] = {
    {Mode::kImmediate, Mode::kZeroPage, Mode::kImplied, Mode::kAbsolute,  //
     Mode::kImplied, Mode::kZeroPageX, Mode::kImplied, Mode::kAbsoluteX},
    {Mode::kIndirectX, Mode::kZeroPage, Mode::kImmediate, Mode::kAbsolute,  //
     Mode::kIndirectY, Mode::kZeroPageX, Mode::kAbsoluteY, Mode::kAbsoluteX},
    {Mode::kImmediate, Mode::kZeroPage, Mode::kAccumulator, Mode::kAbsolute,  //
     Mode::kImplied, Mode::kZeroPageX, Mode::kImplied, Mode::kAbsoluteX},
};

constexpr Instruction decode(int opcode) {
  const auto cycles = static_cast<uint8_t>(kCycles[static_cast<size_t>(opcode)] - '0');
  for (const Single& single : kSingles) {
    if (single.opcode == opcode) return {single.op, Mode::kImplied, cycles};
  }
  if ((opcode & 0x1F) == 0x10) return {Op::kBranch, Mode::kImplied, cycles};
  const int column = opcode & 3;
  if (column == 3) return {};
  const Op op = kOps[column][opcode >> 5];
  Mode mode = kModes[column][(opcode >> 2) & 7];
  if (mode == Mode::kImplied) return {};
  if (op == Op::kLdx || op == Op::kStx) {
    if (mode == Mode::kZeroPageX) mode = Mode::kZeroPageY;
    if (mode == Mode::kAbsoluteX) mode = Mode::kAbsoluteY;
  }
  return {op, mode, cycles};
}

}  // namespace detail

/// How nes-py understands all 256 opcodes, the undocumented ones included: those follow the
/// columns where that gives an operation, and only skip their operand or nothing where it does not.
inline constexpr std::array<Instruction, 256> kInstructions = [] {
  std::array<Instruction, 256> table{};
  for (int opcode = 0; opcode < 256; ++opcode) {
    table[static_cast<size_t>(opcode)] = detail::decode(opcode);
  }
  return table;
}();

}  // namespace wz::nespy
