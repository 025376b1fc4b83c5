#include "nespy/cpu.hpp"

#include "nespy/opcodes.hpp"

namespace wz::nespy {
namespace {

// The bit order in which nes-py keeps the flags.
constexpr int kN = 0x01, kV = 0x02, kD = 0x10, kI = 0x20, kZ = 0x40, kC = 0x80;
constexpr int kBreakMark = 0x10;
constexpr uint16_t kNmiVector = 0xFFFA, kIrqVector = 0xFFFE;
constexpr int kInterruptCycles = 7;

constexpr uint8_t u8(int value) { return static_cast<uint8_t>(value); }
constexpr uint16_t u16(int value) { return static_cast<uint16_t>(value); }

class Core {
 public:
  explicit Core(Bus& bus) : bus_(bus), cpu_(bus.m.cpu) {}

  void execute() {
    const uint8_t opcode = bus_.read(cpu_.pc++);
    const Instruction instruction = kInstructions[opcode];
    cpu_.wait = 0;
    const uint16_t address = operand(instruction);
    run(instruction, opcode, address);
    cpu_.wait += instruction.cycles;
  }

  void interrupt(uint16_t vector, int mark) {
    push(cpu_.pc >> 8);
    push(cpu_.pc);
    push(cpu_.p | kI | mark);
    set(kI, true);
    cpu_.pc = bus_.read16(vector);
    cpu_.wait += kInterruptCycles;
  }

 private:
  void set(int flag, bool on) { cpu_.p = u8(on ? cpu_.p | flag : cpu_.p & ~flag); }
  bool get(int flag) const { return (cpu_.p & flag) != 0; }

  uint8_t set_zn(uint8_t value) {
    cpu_.p = u8((cpu_.p & ~(kZ | kN)) | (value == 0 ? kZ : 0) | (value >> 7 != 0 ? kN : 0));
    return value;
  }

  void push(int value) { bus_.write(u16(0x100 | cpu_.s--), u8(value)); }
  uint8_t pull() { return bus_.read(u16(0x100 | ++cpu_.s)); }
  uint16_t pull16() {
    const int low = pull();
    return u16(low | pull() << 8);
  }

  uint16_t fetch16() {
    const uint16_t value = bus_.read16(cpu_.pc);
    cpu_.pc = u16(cpu_.pc + 2);
    return value;
  }

  uint16_t zero_page16(uint8_t at) {
    const int low = bus_.read(at);
    return u16(low | bus_.read(u8(at + 1)) << 8);
  }

  /// Every indexed access but STA pays for leaving the page.
  uint16_t indexed(Op op, uint16_t base, uint8_t index) {
    const uint16_t address = u16(base + index);
    if (op != Op::kSta && ((address ^ base) & 0xFF00) != 0) ++cpu_.wait;
    return address;
  }

  uint16_t operand(const Instruction& instruction) {
    switch (instruction.mode) {
      case Mode::kImplied:
      case Mode::kAccumulator:
        return 0;
      case Mode::kImmediate:
        return cpu_.pc++;
      case Mode::kZeroPage:
        return bus_.read(cpu_.pc++);
      case Mode::kZeroPageX:
        return u8(bus_.read(cpu_.pc++) + cpu_.x);
      case Mode::kZeroPageY:
        return u8(bus_.read(cpu_.pc++) + cpu_.y);
      case Mode::kAbsolute:
        return fetch16();
      case Mode::kAbsoluteX:
        return indexed(instruction.op, fetch16(), cpu_.x);
      case Mode::kAbsoluteY:
        return indexed(instruction.op, fetch16(), cpu_.y);
      case Mode::kIndirectX:
        return zero_page16(u8(bus_.read(cpu_.pc++) + cpu_.x));
      case Mode::kIndirectY:
        return indexed(instruction.op, zero_page16(bus_.read(cpu_.pc++)), cpu_.y);
    }
    return 0;
  }

  void compare(uint8_t reg, uint8_t value) {
    set(kC, reg >= value);
    set_zn(u8(reg - value));
  }

  void add(uint8_t value) {
    const int sum = cpu_.a + value + (get(kC) ? 1 : 0);
    set(kC, sum > 0xFF);
    set(kV, ((cpu_.a ^ sum) & (value ^ sum) & 0x80) != 0);
    cpu_.a = set_zn(u8(sum));
  }

  uint8_t shift(Op op, uint8_t value) {
    const bool left = op == Op::kAsl || op == Op::kRol;
    const bool rotate = op == Op::kRol || op == Op::kRor;
    const bool carry = rotate && get(kC);
    set(kC, (value & (left ? 0x80 : 0x01)) != 0);
    return set_zn(left ? u8(value << 1 | (carry ? 1 : 0)) : u8(value >> 1 | (carry ? 0x80 : 0)));
  }

  void branch(uint8_t opcode) {
    static constexpr int kFlags[4] = {kN, kV, kC, kZ};
    if (get(kFlags[opcode >> 6]) != ((opcode & 0x20) != 0)) {
      ++cpu_.pc;
      return;
    }
    const auto offset = static_cast<int8_t>(bus_.read(cpu_.pc++));
    const uint16_t target = u16(cpu_.pc + offset);
    cpu_.wait += ((target ^ cpu_.pc) & 0xFF00) != 0 ? 3 : 1;
    cpu_.pc = target;
  }

  void jump_indirect() {
    const uint16_t pointer = bus_.read16(cpu_.pc);
    const int low = bus_.read(pointer);
    cpu_.pc = u16(low | bus_.read(u16((pointer & 0xFF00) | u8(pointer + 1))) << 8);
  }

  void jump_subroutine() {
    push((cpu_.pc + 1) >> 8);
    push(cpu_.pc + 1);
    cpu_.pc = bus_.read16(cpu_.pc);
  }

  void run(const Instruction& instruction, uint8_t opcode, uint16_t address) {
    switch (instruction.op) {
      case Op::kNone:
      case Op::kNop:
        break;

      case Op::kOra:
        cpu_.a = set_zn(cpu_.a | bus_.read(address));
        break;
      case Op::kAnd:
        cpu_.a = set_zn(cpu_.a & bus_.read(address));
        break;
      case Op::kEor:
        cpu_.a = set_zn(cpu_.a ^ bus_.read(address));
        break;
      case Op::kAdc:
        add(bus_.read(address));
        break;
      case Op::kSbc:
        add(u8(~bus_.read(address)));
        break;
      case Op::kCmp:
        compare(cpu_.a, bus_.read(address));
        break;
      case Op::kCpx:
        compare(cpu_.x, bus_.read(address));
        break;
      case Op::kCpy:
        compare(cpu_.y, bus_.read(address));
        break;
      case Op::kBit: {
        const uint8_t value = bus_.read(address);
        set(kZ, (cpu_.a & value) == 0);
        set(kV, (value & 0x40) != 0);
        set(kN, (value & 0x80) != 0);
        break;
      }

      case Op::kLda:
        cpu_.a = set_zn(bus_.read(address));
        break;
      case Op::kLdx:
        cpu_.x = set_zn(bus_.read(address));
        break;
      case Op::kLdy:
        cpu_.y = set_zn(bus_.read(address));
        break;
      case Op::kSta:
        bus_.write(address, cpu_.a);
        break;
      case Op::kStx:
        bus_.write(address, cpu_.x);
        break;
      case Op::kSty:
        bus_.write(address, cpu_.y);
        break;

      case Op::kAsl:
      case Op::kRol:
      case Op::kLsr:
      case Op::kRor:
        if (instruction.mode == Mode::kAccumulator) {
          cpu_.a = shift(instruction.op, cpu_.a);
        } else {
          bus_.write(address, shift(instruction.op, bus_.read(address)));
        }
        break;
      case Op::kDec:
        bus_.write(address, set_zn(u8(bus_.read(address) - 1)));
        break;
      case Op::kInc:
        bus_.write(address, set_zn(u8(bus_.read(address) + 1)));
        break;

      case Op::kBranch:
        branch(opcode);
        break;
      case Op::kJmp:
        cpu_.pc = bus_.read16(cpu_.pc);
        break;
      case Op::kJmpIndirect:
        jump_indirect();
        break;
      case Op::kJsr:
        jump_subroutine();
        break;
      case Op::kRts:
        cpu_.pc = u16(pull16() + 1);
        break;
      case Op::kRti:
        cpu_.p = pull();
        cpu_.pc = pull16();
        break;
      case Op::kBrk:
        ++cpu_.pc;
        interrupt(kIrqVector, kBreakMark);
        break;

      case Op::kPhp:
        push(cpu_.p);
        break;
      case Op::kPlp:
        cpu_.p = pull();
        break;
      case Op::kPha:
        push(cpu_.a);
        break;
      case Op::kPla:
        cpu_.a = set_zn(pull());
        break;

      case Op::kClc:
        set(kC, false);
        break;
      case Op::kSec:
        set(kC, true);
        break;
      case Op::kCli:
        set(kI, false);
        break;
      case Op::kSei:
        set(kI, true);
        break;
      case Op::kClv:
        set(kV, false);
        break;
      case Op::kCld:
        set(kD, false);
        break;
      case Op::kSed:
        set(kD, true);
        break;

      case Op::kDey:
        set_zn(--cpu_.y);
        break;
      case Op::kIny:
        set_zn(++cpu_.y);
        break;
      case Op::kDex:
        set_zn(--cpu_.x);
        break;
      case Op::kInx:
        set_zn(++cpu_.x);
        break;
      case Op::kTay:
        cpu_.y = set_zn(cpu_.a);
        break;
      case Op::kTax:
        cpu_.x = set_zn(cpu_.a);
        break;
      case Op::kTya:
        cpu_.a = set_zn(cpu_.y);
        break;
      case Op::kTxa:
        cpu_.a = set_zn(cpu_.x);
        break;
      case Op::kTsx:
        cpu_.x = set_zn(cpu_.s);
        break;
      case Op::kTxs:
        cpu_.s = cpu_.x;
        break;
    }
  }

  Bus& bus_;
  Cpu& cpu_;
};

}  // namespace

void execute(Bus& bus) { Core(bus).execute(); }

void interrupt(Bus& bus) { Core(bus).interrupt(kNmiVector, 0); }

}  // namespace wz::nespy
