#include "native/semantics.hpp"

namespace wz::native {

using opcodes::Op;

// clang-format off
const char* condition(Op op) {
  switch (op) {
    case Op::kBpl: return "!(n & 0x80)";
    case Op::kBmi: return "(n & 0x80)";
    case Op::kBvc: return "!v";
    case Op::kBvs: return "v";
    case Op::kBcc: return "!c";
    case Op::kBcs: return "c";
    case Op::kBne: return "z";
    case Op::kBeq: return "!z";
    default: return nullptr;
  }
}

const char* effect(Op op) {
  switch (op) {
    case Op::kLda: return "a = n = z = value;";
    case Op::kLdx: return "x = n = z = value;";
    case Op::kLdy: return "y = n = z = value;";
    case Op::kOra: return "a = n = z = a | value;";
    case Op::kAnd: return "a = n = z = a & value;";
    case Op::kEor: return "a = n = z = a ^ value;";
    case Op::kAdc: return "ADD(value)";
    case Op::kSbc: return "ADD(value ^ 0xFF)";
    case Op::kCmp: return "c = a >= value; n = z = (a - value) & 0xFF;";
    case Op::kCpx: return "c = x >= value; n = z = (x - value) & 0xFF;";
    case Op::kCpy: return "c = y >= value; n = z = (y - value) & 0xFF;";
    case Op::kBit: return "n = value; v = value & 0x40; z = a & value;";
    case Op::kAsl: return "c = value >> 7; value = n = z = value << 1 & 0xFF;";
    case Op::kLsr: return "c = value & 1; value = n = z = value >> 1;";
    case Op::kRol: return "value = value << 1 | c; c = value >> 8; value = n = z = value & 0xFF;";
    case Op::kRor: return "value |= c << 8; c = value & 1; value = n = z = value >> 1;";
    case Op::kInc: return "value = n = z = (value + 1) & 0xFF;";
    case Op::kDec: return "value = n = z = (value - 1) & 0xFF;";
    case Op::kTax: return "x = n = z = a;";
    case Op::kTay: return "y = n = z = a;";
    case Op::kTxa: return "a = n = z = x;";
    case Op::kTya: return "a = n = z = y;";
    case Op::kTsx: return "x = n = z = s;";
    case Op::kTxs: return "s = x;";
    case Op::kInx: return "x = n = z = (x + 1) & 0xFF;";
    case Op::kIny: return "y = n = z = (y + 1) & 0xFF;";
    case Op::kDex: return "x = n = z = (x - 1) & 0xFF;";
    case Op::kDey: return "y = n = z = (y - 1) & 0xFF;";
    case Op::kClc: return "c = 0;";
    case Op::kSec: return "c = 1;";
    case Op::kClv: return "v = 0;";
    case Op::kCli: return "rest &= ~4u;";
    case Op::kSei: return "rest |= 4;";
    case Op::kCld: return "rest &= ~8u;";
    case Op::kSed: return "rest |= 8;";
    case Op::kPha: return "PUSH(a)";
    case Op::kPla: return "PULL(a) n = z = a;";
    case Op::kPhp: return "PUSH(FLAGS | 0x10)";
    case Op::kPlp: return "PULL(t) SET_FLAGS(t)";
    case Op::kSta: return "a";
    case Op::kStx: return "x";
    case Op::kSty: return "y";
    default: return "";
  }
}
// clang-format on

}  // namespace wz::native
