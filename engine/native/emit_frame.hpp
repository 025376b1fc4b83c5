#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "native/x86.hpp"
#include "nes/cartridge.hpp"
#include "nes/machine.hpp"

/// What lies where while emitted code runs, and the routines that all of it shares.
///
/// The 6502's registers stay in registers of the host, with the upper bits zero. N and Z are one
/// number, as in the interpreter: Z is set when its low byte is zero, N when bit 7 or bit 8 is set.
/// V is set when its register is not zero. RAX, RCX and RDX are free within one instruction.
namespace wz::native {

inline constexpr x86::Reg kA = x86::r12, kX = x86::r13, kY = x86::r14, kS = x86::rdi;
inline constexpr x86::Reg kNz = x86::r8, kC = x86::r9, kV = x86::r10;
inline constexpr x86::Reg kNow = x86::rbp, kLimit = x86::r11;
inline constexpr x86::Reg kRam = x86::rbx, kPrg = x86::r15;

/// The register of RAM points into its first page, so that all of the zero page is within a byte of
/// it; that of the program points so that addresses need no change.
inline constexpr int32_t kRamBias = 128, kPrgBias = -0x8000;

/// A byte of RAM.
inline x86::Mem ram(unsigned address) { return {kRam, static_cast<int32_t>(address) - kRamBias}; }
inline x86::Mem ram(unsigned address, x86::Reg index) {
  return {kRam, static_cast<int32_t>(address) - kRamBias, index};
}
/// A byte of the program, with an index.
inline x86::Mem prg(unsigned address, x86::Reg index) {
  return {kPrg, static_cast<int32_t>(address), index};
}
/// A field of `Machine`, by its offset.
inline x86::Mem field(size_t offset) {
  return {kRam,
          static_cast<int32_t>(offset) - static_cast<int32_t>(offsetof(Machine, ram)) - kRamBias};
}

/// Stack slots.
inline constexpr int32_t kIoSlot = 0, kCartSlot = 8, kRestSlot = 16, kAddressSlot = 20,
                         kSavedSlots = 24, kFrameBytes = 72;
inline x86::Mem slot(int32_t at) { return {x86::rsp, at}; }

/// The shared routines. `leave` and `dispatch` are jumped to, with the 6502's PC in EAX; the others
/// are called.
struct Routines {
  x86::Label leave, dispatch, table;
  x86::Label read;       ///< address EAX, start of the instruction ECX; the byte comes in EAX
  x86::Label write;      ///< address EAX, byte EDX, start ECX
  x86::Label skip_poll;  ///< mask EAX
  x86::Label pack;       ///< the flags as one byte, to EAX
  x86::Label unpack;     ///< the same backwards

  explicit Routines(x86::Assembler& as);
};

/// Goes to the instruction at the address in EAX if it may be entered and there is time.
void emit_dispatch(x86::Assembler& as, const Routines& to);

/// Entry, exit and the shared routines. Returns where `run` begins.
size_t emit_frame(x86::Assembler& as, const Routines& routines);

}  // namespace wz::native
