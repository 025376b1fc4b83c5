#include "native/translate.hpp"

#include <cstddef>
#include <cstdio>
#include <utility>

#include "native/analysis.hpp"
#include "native/flow.hpp"
#include "native/semantics.hpp"
#include "nes/console.hpp"
#include "nes/machine.hpp"
#include "nes/opcodes.hpp"

namespace wz::native {
namespace {

using opcodes::Mode;
using opcodes::Op;

constexpr int kAbiVersion = 2;
constexpr int kDots = timing::kDotsPerCycle;

template <typename... Args>
std::string text(const char* format, Args... args) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, format, args...);
  return buffer;
}

class Translator {
 public:
  explicit Translator(const Cartridge& cart) : cart_(cart), flow_(discover(cart)) {}

  std::string run() {
    header();
    for (const uint16_t pc : flow_.code) instruction(decode(cart_, pc));
    footer();
    return std::move(out_);
  }

 private:
  void header();
  void footer();
  void instruction(const Instruction& i);
  void data_instruction(const Instruction& i, Op op, Mode mode);
  void go(uint16_t target, uint16_t from);
  std::string address(const Instruction& i, Mode mode, bool penalty);

  bool known(uint16_t pc) const { return flow_.code.contains(pc); }

  const Cartridge& cart_;
  Flow flow_;
  std::string out_;
};

void Translator::header() {
  out_ += "#include <stdint.h>\n";
  out_ += text("const char wz_abi[] = \"%s\";\n", abi().c_str());
  out_ += text("const uint64_t wz_program = %lluu;\n",
               static_cast<unsigned long long>(program_id(cart_)));
  out_ += text("const int32_t wz_slack = %d;\n", slack(cart_, flow_));
  out_ += "const uint8_t wz_entry[0x8000] = {";
  for (const uint16_t pc : flow_.entries) {
    if (may_enter(cart_, flow_, pc)) out_ += text("[0x%X]=1,", pc - 0x8000u);
  }
  out_ += "};\n";
  out_ += R"(typedef struct {
  uint8_t (*read)(void *, const void *, uint16_t, int32_t, int32_t);
  int32_t (*write)(void *, const void *, uint16_t, uint8_t, int32_t, int32_t);
  int32_t (*skip_poll)(void *, const void *, uint8_t, int32_t, int32_t);
} Io;
#define PUSH(value) r[0x100 + s] = (uint8_t)(value); s = (s - 1) & 0xFF;
#define PULL(into) s = (s + 1) & 0xFF; into = r[0x100 + s];
#define FLAGS ((n & 0x80) | (v ? 0x40 : 0) | 0x20 | rest | (z ? 0 : 2) | c)
#define SET_FLAGS(p) n = p; v = p & 0x40; rest = p & 0x0C; z = ~p & 2; c = p & 1;
#define ADD(operand) { unsigned o = (operand), sum = a + o + c; \
  v = ~(a ^ o) & (a ^ sum) & 0x80; c = sum >> 8; a = n = z = sum & 0xFF; }
#define LEAVE(to) { pc = to; goto leave; }
#define CHECK(to) if (__builtin_expect(now > limit, 0)) LEAVE(to)
#define WORD(at) (r[at] | r[((at) + 1) & 0xFF] << 8)
)";
  out_ += text("#define CPU(type, at) (*(type *)(m + %zu + at))\n", offsetof(Machine, cpu));
  out_ += text("#define NOW (*(int32_t *)(m + %zu))\n", offsetof(Machine, now));
  out_ += text("#define NMI (m[%zu])\n", offsetof(Machine, nmi));
  out_ += text("#define RAM (m + %zu)\n", offsetof(Machine, ram));
  out_ += text("#define PRG (cart + %zu)\n", offsetof(Cartridge, prg));
  out_ += text("enum { PC = %zu, A = %zu, X = %zu, Y = %zu, S = %zu, P = %zu };\n",
               offsetof(Registers, pc), offsetof(Registers, a), offsetof(Registers, x),
               offsetof(Registers, y), offsetof(Registers, s), offsetof(Registers, p));
  out_ += R"(
static inline unsigned load(uint8_t *m, const uint8_t *cart, const Io *io, unsigned at,
                            int32_t start, int32_t end) {
  if (at < 0x2000) return RAM[at & 0x7FF];
  if (at >= 0x8000) return PRG[at - 0x8000];
  return io->read(m, cart, (uint16_t)at, start, end);
}
static inline int32_t store(uint8_t *m, const uint8_t *cart, const Io *io, unsigned at,
                            unsigned value, int32_t start, int32_t end) {
  if (at < 0x2000) RAM[at & 0x7FF] = (uint8_t)value;
  else if (at < 0x8000) return io->write(m, cart, (uint16_t)at, (uint8_t)value, start, end);
  return end;
}

void wz_run(uint8_t *m, const uint8_t *cart, const Io *io, int32_t limit) {
  uint8_t *const r = RAM;
  const uint8_t *const prg = PRG;
  int32_t now = NOW, start;
  unsigned a = CPU(uint8_t, A), x = CPU(uint8_t, X), y = CPU(uint8_t, Y), s = CPU(uint8_t, S);
  unsigned n, z, c, v, rest, t, value, at, pc = CPU(uint16_t, PC);
  t = CPU(uint8_t, P);
  SET_FLAGS(t)
  (void)prg; (void)start; (void)value; (void)at;
  static const int32_t target[0x8000] = {)";
  for (const uint16_t pc : flow_.entries) {
    if (known(pc)) out_ += text("[0x%X]=&&L%04X-&&leave,", pc - 0x8000u, static_cast<unsigned>(pc));
  }
  out_ += R"(};
dispatch:
  if (now > limit || pc < 0x8000) goto leave;
  goto *(&&leave + target[pc - 0x8000]);
)";
}

void Translator::footer() {
  out_ += R"(leave:
  NOW = now;
  CPU(uint16_t, PC) = (uint16_t)pc;
  CPU(uint8_t, A) = (uint8_t)a;
  CPU(uint8_t, X) = (uint8_t)x;
  CPU(uint8_t, Y) = (uint8_t)y;
  CPU(uint8_t, S) = (uint8_t)s;
  CPU(uint8_t, P) = (uint8_t)FLAGS;
}
)";
}

void Translator::go(uint16_t target, uint16_t from) {
  if (!known(target)) {
    out_ += text("LEAVE(0x%X)", static_cast<unsigned>(target));
    return;
  }
  if (target <= from) out_ += text("CHECK(0x%X) ", static_cast<unsigned>(target));
  out_ += text("goto L%04X;", static_cast<unsigned>(target));
}

/// Statements that compute an effective address into `at`, penalties included; for addresses known
/// now, nothing. Returns the expression to use.
std::string Translator::address(const Instruction& i, Mode mode, bool penalty) {
  const unsigned base = i.operand;
  const auto indexed = [&](const char* index) {
    if (penalty && (base & 0xFF)) out_ += text("now += (0x%X + %s >> 8) * 3; ", base & 0xFF, index);
    return text("(0x%X + %s & 0xFFFF)", base, index);
  };
  switch (mode) {
    case Mode::kZeroPageX:
      return text("(0x%X + x & 0xFF)", base);
    case Mode::kZeroPageY:
      return text("(0x%X + y & 0xFF)", base);
    case Mode::kAbsoluteX:
      return indexed("x");
    case Mode::kAbsoluteY:
      return indexed("y");
    case Mode::kIndirectX:
      out_ += text("t = 0x%X + x & 0xFF; at = WORD(t); ", base);
      return "at";
    case Mode::kIndirectY:
      out_ += text("t = WORD(0x%X); ", base);
      if (penalty) out_ += "now += ((t & 0xFF) + y >> 8) * 3; ";
      out_ += "at = t + y & 0xFFFF; ";
      return "at";
    default:
      return text("0x%X", base);
  }
}

void Translator::data_instruction(const Instruction& i, Op op, Mode mode) {
  const Access a = access(i);
  const std::string at = address(i, mode, a.reads && !a.writes);
  const unsigned base = i.operand;
  const std::string cell =
      a.zero_page || a.last < 0x800 ? text("r[%s]", at.c_str()) : text("r[%s & 0x7FF]", at.c_str());

  if (a.reads) {
    if (mode == Mode::kImmediate) {
      out_ += text("value = 0x%X; ", base);
    } else if (a.in_ram) {
      out_ += text("value = %s; ", cell.c_str());
    } else if (a.in_rom && !a.indexed) {
      out_ += text("value = 0x%X; ", static_cast<unsigned>(cart_.read(i.operand)));
    } else if (a.in_rom) {
      out_ += text("value = prg[%s - 0x8000]; ", at.c_str());
    } else {
      out_ += text("value = load(m, cart, io, %s, start, now); ", at.c_str());
    }
  }
  if (!is_store(op)) out_ += effect(op);
  if (!a.writes) return;
  const char* source = is_store(op) ? effect(op) : "value";
  if (a.in_ram) {
    out_ += text(" %s = (uint8_t)%s;", cell.c_str(), source);
  } else if (!a.in_rom) {
    out_ += text(" now = store(m, cart, io, %s, %s, start, now);", at.c_str(), source);
    if (a.leaves) {
      out_ += text(" if (NMI || now > limit) LEAVE(0x%X)", static_cast<unsigned>(i.next));
    }
  }
}

void Translator::instruction(const Instruction& i) {
  const auto& info = opcodes::kTable[i.opcode];
  const unsigned pc = i.pc;
  out_ += text("L%04X: ", pc);
  if (stops(i)) {
    out_ += text("LEAVE(0x%X)\n", pc);
    return;
  }
  out_ += text("start = now; now += %d; ", info.cycles * kDots);

  if (const char* taken = condition(info.op)) {
    const bool far = ((i.next ^ i.operand) & 0xFF00) != 0;
    out_ += text("if (%s) { now += %d; ", taken, (far ? 2 : 1) * kDots);
    if (polls(cart_, i)) {
      out_ += text("now = io->skip_poll(m, cart, 0x%X, now, limit); ",
                   static_cast<unsigned>(cart_.read(static_cast<uint16_t>(i.operand + 4))));
    }
    go(i.operand, i.pc);
    out_ += " }";
  } else {
    switch (info.op) {
      case Op::kJmp:
        if (info.mode == Mode::kAbsolute) {
          go(i.operand, i.pc);
        } else {
          const unsigned high = (i.operand & 0xFF00u) | ((i.operand + 1u) & 0xFF);
          out_ += text(
              "pc = load(m, cart, io, 0x%X, start, now); "
              "pc |= load(m, cart, io, 0x%X, start, now) << 8; goto dispatch;",
              static_cast<unsigned>(i.operand), high);
        }
        out_ += '\n';
        return;
      case Op::kJsr: {
        const unsigned back = i.next - 1u;
        out_ += text("PUSH(0x%X) PUSH(0x%X) CHECK(0x%X) ", back >> 8, back & 0xFF,
                     static_cast<unsigned>(i.operand));
        go(i.operand, i.pc);
        out_ += '\n';
        return;
      }
      case Op::kRts:
        out_ += "PULL(pc) PULL(t) pc = (pc | t << 8) + 1 & 0xFFFF; goto dispatch;\n";
        return;
      case Op::kRti:
        out_ += "PULL(t) SET_FLAGS(t) PULL(pc) PULL(t) pc |= t << 8; goto dispatch;\n";
        return;
      default:
        if (info.mode == Mode::kImplied) {
          out_ += effect(info.op);
        } else if (info.mode == Mode::kAccumulator) {
          out_ += text("value = a; %s a = value;", effect(info.op));
        } else {
          data_instruction(i, info.op, info.mode);
        }
    }
  }
  // The next label in the text is the next instruction only if no other one starts in between.
  const auto following = flow_.code.upper_bound(i.pc);
  if (following == flow_.code.end() || *following != i.next) {
    out_ += ' ';
    go(i.next, i.pc);
  }
  out_ += '\n';
}

}  // namespace

std::string abi() {
  return text("%d:%zu:%zu,%zu,%zu,%zu,%zu:%zu,%zu,%zu,%zu,%zu,%zu", kAbiVersion, sizeof(Machine),
              offsetof(Machine, cpu), offsetof(Machine, now), offsetof(Machine, nmi),
              offsetof(Machine, ram), offsetof(Cartridge, prg), offsetof(Registers, pc),
              offsetof(Registers, a), offsetof(Registers, x), offsetof(Registers, y),
              offsetof(Registers, s), offsetof(Registers, p));
}

uint64_t program_id(const Cartridge& cart) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const uint8_t byte : cart.prg) hash = (hash ^ byte) * 0x100000001B3u;
  return hash;
}

std::string translate(const Cartridge& cart) { return Translator(cart).run(); }

}  // namespace wz::native
