#include "native/emit_frame.hpp"

#include "nes/console.hpp"

namespace wz::native {
namespace {

using namespace x86;

constexpr Reg kKept[] = {rbx, rbp, r12, r13, r14, r15};
/// What a called function may change.
constexpr Reg kLost[] = {kS, kNz, kC, kV, kLimit};
constexpr int32_t kReturnAddress = 8;

constexpr size_t cpu(size_t offset) { return offsetof(Machine, cpu) + offset; }

/// Calls the function of `NativeIo` at `offset`. `arguments` sets all but the first two.
template <typename F>
void call_io(Assembler& as, size_t offset, F&& arguments) {
  constexpr int32_t kPad = 8;  // the stack is aligned to 16 bytes where functions are called
  constexpr int32_t kDown = kReturnAddress + kPad;
  as.adjust_stack(-kPad);
  int32_t at = kDown + kSavedSlots;
  for (const Reg reg : kLost) as.mov64(slot(at), reg), at += 8;
  arguments();
  as.lea64(rdi, field(0));
  as.mov64(rsi, slot(kDown + kCartSlot));
  as.mov64(rax, slot(kDown + kIoSlot));
  as.call(Mem{rax, static_cast<int32_t>(offset)});
  at = kDown + kSavedSlots;
  for (const Reg reg : kLost) as.mov64(reg, slot(at)), at += 8;
  as.adjust_stack(kPad);
}

void emit_io(Assembler& as, const Routines& routines) {
  as.bind(routines.read);
  call_io(as, offsetof(NativeIo, read), [&] {
    as.mov(rdx, rax);
    as.mov(r8, kNow);
  });
  as.movzx8(rax, rax);
  as.ret();

  as.bind(routines.write);
  call_io(as, offsetof(NativeIo, write), [&] {
    as.mov(r8, rcx);
    as.mov(rcx, rdx);
    as.mov(rdx, rax);
    as.mov(r9, kNow);
  });
  as.mov(kNow, rax);
  as.ret();

  as.bind(routines.skip_poll);
  call_io(as, offsetof(NativeIo, skip_poll), [&] {
    as.mov(rdx, rax);
    as.mov(rcx, kNow);
    as.mov(r8, kLimit);
  });
  as.mov(kNow, rax);
  as.ret();
}

void emit_flags(Assembler& as, const Routines& routines) {
  const Mem rest = slot(kReturnAddress + kRestSlot);
  as.bind(routines.pack);
  as.alu(Alu::kXor, rax, rax);
  as.test(kNz, 0x180);
  as.set8(kNotEqual, rax);
  as.shift(Shift::kShl, rax, 7);
  as.alu(Alu::kXor, rcx, rcx);
  as.test(kV, kV);
  as.set8(kNotEqual, rcx);
  as.shift(Shift::kShl, rcx, 6);
  as.alu(Alu::kOr, rax, rcx);
  as.alu(Alu::kXor, rcx, rcx);
  as.test8(kNz, kNz);
  as.set8(kEqual, rcx);
  as.shift(Shift::kShl, rcx, 1);
  as.alu(Alu::kOr, rax, rcx);
  as.alu(Alu::kOr, rax, kC);
  as.alu(Alu::kOr, rax, rest);
  as.alu(Alu::kOr, rax, 0x20);
  as.ret();

  as.bind(routines.unpack);
  as.mov(kNz, rax);
  as.alu(Alu::kAnd, kNz, 0x80);
  as.shift(Shift::kShl, kNz, 1);
  as.mov(rcx, rax);
  as.not_(rcx);
  as.alu(Alu::kAnd, rcx, 2);
  as.alu(Alu::kOr, kNz, rcx);
  as.mov(kC, rax);
  as.alu(Alu::kAnd, kC, 1);
  as.mov(kV, rax);
  as.alu(Alu::kAnd, kV, 0x40);
  as.alu(Alu::kAnd, rax, 0x0C);
  as.mov(rest, rax);
  as.ret();
}

}  // namespace

Routines::Routines(Assembler& as)
    : leave(as.label()),
      dispatch(as.label()),
      table(as.label()),
      read(as.label()),
      write(as.label()),
      skip_poll(as.label()),
      pack(as.label()),
      unpack(as.label()) {}

void emit_dispatch(Assembler& as, const Routines& to) {
  as.alu(Alu::kCmp, kNow, kLimit);
  as.jump(kGreater, to.leave);
  as.alu(Alu::kCmp, rax, 0x8000);
  as.jump(kBelow, to.leave);
  as.lea64(rcx, to.table);
  as.movsxd(rdx, Mem{rcx, -0x8000 * 4, rax, 2});
  as.add64(rdx, rcx);
  as.jump(rdx);
}

size_t emit_frame(Assembler& as, const Routines& routines) {
  // A sanitizer may look at the bytes before a function.
  for (int i = 0; i < 16; ++i) as.trap();
  const size_t run = as.here();
  for (const Reg reg : kKept) as.push(reg);
  as.adjust_stack(-kFrameBytes);
  as.mov64(slot(kIoSlot), rdx);
  as.mov64(slot(kCartSlot), rsi);
  as.mov(kLimit, rcx);
  as.lea64(kRam, Mem{rdi, static_cast<int32_t>(offsetof(Machine, ram)) + kRamBias});
  as.lea64(kPrg, Mem{rsi, static_cast<int32_t>(offsetof(Cartridge, prg)) + kPrgBias});
  as.mov(kNow, field(offsetof(Machine, now)));
  as.movzx8(kA, field(cpu(offsetof(Registers, a))));
  as.movzx8(kX, field(cpu(offsetof(Registers, x))));
  as.movzx8(kY, field(cpu(offsetof(Registers, y))));
  as.movzx8(kS, field(cpu(offsetof(Registers, s))));
  as.movzx8(rax, field(cpu(offsetof(Registers, p))));
  as.call(routines.unpack);
  as.movzx16(rax, field(cpu(offsetof(Registers, pc))));
  as.bind(routines.dispatch);
  emit_dispatch(as, routines);

  as.bind(routines.leave);
  as.mov16(field(cpu(offsetof(Registers, pc))), rax);
  as.call(routines.pack);
  as.mov8(field(cpu(offsetof(Registers, p))), rax);
  as.mov8(field(cpu(offsetof(Registers, a))), kA);
  as.mov8(field(cpu(offsetof(Registers, x))), kX);
  as.mov8(field(cpu(offsetof(Registers, y))), kY);
  as.mov8(field(cpu(offsetof(Registers, s))), kS);
  as.mov(field(offsetof(Machine, now)), kNow);
  as.adjust_stack(kFrameBytes);
  for (auto reg = std::rbegin(kKept); reg != std::rend(kKept); ++reg) as.pop(*reg);
  as.ret();

  emit_io(as, routines);
  emit_flags(as, routines);
  return run;
}

}  // namespace wz::native
