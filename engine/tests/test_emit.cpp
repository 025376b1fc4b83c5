#include <array>
#include <cstring>

#include "check.hpp"
#include "native/emit.hpp"
#include "native/executable.hpp"
#include "nes/bus.hpp"
#include "nes/console.hpp"
#include "nes/cpu.hpp"
#include "nes/opcodes.hpp"
#include "nes/ppu.hpp"
#include "random_machine.hpp"
#include "vec/machine_codec.hpp"

/// Emitted code against the interpreter: single instructions, random code, deadlines anywhere.

using namespace wz;
using opcodes::Mode;
using opcodes::Op;
using slow::Dice;

namespace {

constexpr NativeIo kIo = {bus::read_io, bus::write_io, bus::skip_poll};
constexpr uint8_t kJsr = 0x20, kIllegal = 0x02;
constexpr uint16_t kVectors = 0xFFFA;

std::vector<uint8_t> bytes_of(const Machine& m) {
  Writer writer;
  save_machine(writer, m);
  return writer.bytes();
}

CartridgePtr cartridge(const std::array<uint8_t, 0x8000>& prg) {
  std::vector<uint8_t> file(16 + 0x8000 + 0x2000);
  const uint8_t header[7] = {'N', 'E', 'S', 0x1A, 2, 1, 1};
  std::memcpy(file.data(), header, sizeof header);
  std::memcpy(file.data() + 16, prg.data(), prg.size());
  return parse_ines(file);
}

/// Addresses of every kind: zero page, RAM and its mirrors, registers, what lies between, ROM, and
/// the edges of all of them.
uint16_t random_address(Dice& dice) {
  constexpr int kEdges[] = {0, 0x100, 0x800, 0x1F80, 0x2000, 0x4000, 0x7F80, 0x8000, 0xFF80};
  switch (dice.below(6)) {
    case 0:
      return static_cast<uint16_t>(dice.below(0x800));
    case 1:
      return static_cast<uint16_t>(0x2000 + dice.below(8));
    case 2:
      return static_cast<uint16_t>(0x4000 + dice.below(0x20));
    case 3:
      return static_cast<uint16_t>(kEdges[dice.below(9)] + dice.below(0x100) - 0x80);
    default:
      return static_cast<uint16_t>(dice.below(0x10000));
  }
}

/// Any state in which a program could be, at any time of a frame.
Machine random_state(Dice& dice, const Cartridge& cart, uint16_t pc) {
  Machine m = power_on(cart);
  for (auto& byte : m.ram) byte = dice.byte();
  // Pointers to registers, not only to anywhere.
  for (int i = 0; i < 256; i += 2) {
    const uint16_t at = random_address(dice);
    m.ram[i] = static_cast<uint8_t>(at);
    m.ram[i + 1] = static_cast<uint8_t>(at >> 8);
  }
  for (auto& byte : m.oam) byte = dice.byte();
  for (auto& byte : m.vram) byte = dice.byte();
  m.cpu = {pc, dice.byte(), dice.byte(), dice.byte(), dice.byte(), dice.byte()};
  m.dead_frames = dice.one_in(8) ? 1 : 0;
  m.scroll.ctrl = dice.byte();
  m.scroll.mask = dice.byte();
  m.buttons[0] = dice.byte();
  // Often just before something happens: the first and last dot of an instruction matter there.
  constexpr int32_t kEvents[] = {timing::kVblankSet, timing::kFlagsCleared, timing::kScrollReload};
  m.now = dice.one_in(2) ? dice.below(timing::kFrame) : kEvents[dice.below(3)] - dice.below(30);
  ppu::sync(m, m.now);
  return m;
}

/// Runs emitted code from `m` until it gives control back, and the interpreter for as long.
/// Returns whether both are the same machine now.
bool same(const NativeCode& code, const Cartridge& cart, const Machine& m, int32_t limit) {
  Machine emitted = m, interpreted = m;
  code.run(&emitted, &cart, &kIo, limit);
  try {
    cpu::run(interpreted, cart, nullptr, emitted.now);
  } catch (const IllegalOpcode&) {
    return false;  // emitted code gives control back before one
  }
  return bytes_of(emitted) == bytes_of(interpreted);
}

/// A program whose parts may all be entered: each is called by the one before, and what is behind a
/// call may be entered. `write` writes one part and returns its length.
struct Parts {
  std::array<uint8_t, 0x8000> prg{};
  std::vector<uint16_t> starts;

  template <typename F>
  Parts(Dice& dice, int count, int gap, F&& write) {
    for (auto& byte : prg) byte = dice.byte();
    size_t at = static_cast<size_t>(dice.below(0x100));
    set_vectors(at);
    for (int i = 0; i < count && at + 0x400 < 0x7F00; ++i) {
      const size_t call = at;
      at += 3;
      starts.push_back(static_cast<uint16_t>(0x8000 + at));
      at += write(&prg[at]);
      for (int k = 0; k < gap; ++k) prg[at++] = kIllegal;
      prg[call] = kJsr;
      prg[call + 1] = static_cast<uint8_t>(at);
      prg[call + 2] = static_cast<uint8_t>((0x8000 + at) >> 8);
    }
    prg[at] = kIllegal;
  }
  void set_vectors(size_t at) {
    for (size_t vector = kVectors - 0x8000; vector < prg.size(); vector += 2) {
      prg[vector] = static_cast<uint8_t>(at);
      prg[vector + 1] = static_cast<uint8_t>((0x8000 + at) >> 8);
    }
  }
};

size_t write_instruction(Dice& dice, uint8_t opcode, uint8_t* to) {
  const Mode mode = opcodes::kTable[opcode].mode;
  const uint16_t operand = random_address(dice);
  to[0] = opcode;
  to[1] = mode == Mode::kRelative && dice.one_in(2) ? static_cast<uint8_t>(dice.below(5) + 0xFC)
                                                    : static_cast<uint8_t>(operand);
  if (opcodes::length(mode) == 3) to[2] = static_cast<uint8_t>(operand >> 8);
  return static_cast<size_t>(opcodes::length(mode));
}

/// Every official instruction by itself. What it writes into the flags is asked for by what
/// follows: nothing may be left out.
void test_single_instructions() {
  for (int opcode = 0; opcode < 256; ++opcode) {
    const Op op = opcodes::kTable[opcode].op;
    if (op == Op::kIllegal || op == Op::kBrk) continue;
    Dice dice(static_cast<uint32_t>(opcode));
    const Parts parts(dice, 300, 4, [&](uint8_t* to) {
      return write_instruction(dice, static_cast<uint8_t>(opcode), to);
    });
    const CartridgePtr cart = cartridge(parts.prg);
    const native::Executable program(*cart);
    int entered = 0, failed = 0;
    for (const uint16_t start : parts.starts) {
      if (!program.code().entry[start - 0x8000]) continue;  // a jump to itself
      for (int trial = 0; trial < 4; ++trial) {
        const Machine m = random_state(dice, *cart, start);
        ++entered;
        if (!same(program.code(), *cart, m, m.now)) ++failed;
      }
    }
    CHECK(entered > 800);
    if (!CHECK(failed == 0))
      std::printf("  opcode $%02X: %d of %d\n", static_cast<unsigned>(opcode), failed, entered);
  }
}

/// Straight lines of random instructions with branches among them: flags that are not kept because
/// nothing asks for them, flags that branches take from the host, time that is added up late.
void test_random_lines() {
  std::vector<uint8_t> usable;
  constexpr uint8_t kBranches[] = {0x10, 0x30, 0x50, 0x70, 0x90, 0xB0, 0xD0, 0xF0};
  for (int opcode = 0; opcode < 256; ++opcode) {
    const Op op = opcodes::kTable[opcode].op;
    if (op != Op::kIllegal && op != Op::kBrk) usable.push_back(static_cast<uint8_t>(opcode));
  }
  int failed = 0, lines = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Dice dice(1000 + seed);
    const Parts parts(dice, 200, 1, [&](uint8_t* to) {
      size_t length = 0;
      for (int i = dice.below(24); i >= 0; --i) {
        const size_t pick = static_cast<size_t>(dice.below(static_cast<int>(usable.size())));
        length += write_instruction(dice, usable[pick], to + length);
        // Branches in a row all ask for what the instruction before them left.
        while (dice.one_in(2)) {
          to[length++] = kBranches[dice.below(8)];
          to[length++] = static_cast<uint8_t>(dice.below(16) - 4);
        }
      }
      return length;
    });
    const CartridgePtr cart = cartridge(parts.prg);
    const native::Executable program(*cart);
    for (const uint16_t start : parts.starts) {
      if (!program.code().entry[start - 0x8000]) continue;
      const Machine m = random_state(dice, *cart, start);
      ++lines;
      if (!same(program.code(), *cart, m, m.now + dice.below(400))) ++failed;
    }
  }
  CHECK(lines > 4000);
  CHECK_EQ(failed, 0);
}

/// Whole frames of random programs, with interrupts and whatever they do: both end the same way.
void test_random_frames() {
  int frames = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Dice dice(5000 + seed);
    std::array<uint8_t, 0x8000> prg;
    for (auto& byte : prg) {
      do {
        byte = dice.byte();
      } while (opcodes::kTable[byte].op == Op::kIllegal);
    }
    // Interrupts and the start lie in the program, and what runs off into RAM comes back.
    for (size_t vector = kVectors - 0x8000; vector < prg.size(); vector += 2) {
      prg[vector + 1] |= 0x80;
    }
    const CartridgePtr cart = cartridge(prg);
    const native::Executable program(*cart);
    Machine interpreted = power_on(*cart);
    interpreted.scroll.ctrl = 0x80;
    for (auto& byte : interpreted.ram) byte = prg[static_cast<size_t>(dice.below(0x8000))];
    Machine emitted = interpreted;
    for (int frame = 0; frame < 6; ++frame) {
      bool failed[2] = {};
      Machine* const machines[2] = {&interpreted, &emitted};
      for (int i = 0; i < 2; ++i) {
        machines[i]->buttons[0] = static_cast<uint8_t>(seed);
        try {
          run_frame(*machines[i], *cart, i ? &program.code() : nullptr);
        } catch (const IllegalOpcode&) {
          failed[i] = true;
        }
      }
      CHECK(failed[0] == failed[1]);
      CHECK(bytes_of(interpreted) == bytes_of(emitted));
      if (failed[0]) break;
      ++frames;
    }
  }
  CHECK(frames > 300);
}

void test_refusals() {
  Dice dice(1);
  const auto none = [](uint8_t*) { return size_t{0}; };
  const CartridgePtr one = cartridge(Parts(dice, 1, 1, none).prg);
  const CartridgePtr other = cartridge(Parts(dice, 2, 1, none).prg);
  const native::Executable program(*one);
  program.require(*one);
  CHECK_THROWS(std::invalid_argument, program.require(*other));
}

/// The bytes are the same wherever and whenever they are made.
void test_emission_is_deterministic() {
  Dice dice(2);
  const CartridgePtr cart = cartridge(
      Parts(dice, 50, 1, [&](uint8_t* to) { return write_instruction(dice, 0xBD, to); }).prg);
  CHECK(native::emit(*cart).bytes == native::emit(*cart).bytes);
}

}  // namespace

int main() {
#ifdef __x86_64__
  test_single_instructions();
  test_random_lines();
  test_random_frames();
  test_refusals();
#else
  Dice dice(1);
  const CartridgePtr cart = slow::random_cartridge(dice, true);
  CHECK_THROWS(std::runtime_error, native::Executable program(*cart));
#endif
  test_emission_is_deterministic();
  return check::finish();
}
