#include "base/processor.h"

#include <cpuid.h>

namespace embertable {
namespace {

constexpr unsigned bit(unsigned number) { return 1U << number; }

// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID.
constexpr unsigned kSse42Bit = bit(20), kPopcnt = bit(23), kXsave = bit(27);  // leaf 1, ecx
constexpr unsigned kAvx2Bits = bit(3) | bit(5) | bit(8);  // leaf 7, ebx: BMI, AVX2, BMI2
constexpr unsigned kAvx512fBit = bit(16);
constexpr unsigned kAvx512Bits = kAvx512fBit | bit(17) | bit(30) | bit(31);  // F, DQ, BW, VL

// What leaf 0 has in ebx, edx and ecx: "Genu", "ineI", "ntel", or "Auth", "enti", "cAMD".
constexpr unsigned kGenu = 0x756e6547, kIneI = 0x49656e69, kNtel = 0x6c65746e;
constexpr unsigned kAuth = 0x68747541, kEnti = 0x69746e65, kCAmd = 0x444d4163;

// Zen 3 and Zen 4 are one family, of which Zen 4 has AVX-512. Source: AMD64 Architecture
// Programmer's Manual, volume 3, CPUID Fn0000_0001_EAX.
constexpr unsigned kZen3And4 = 0x19;

// Registers that the operating system saves: volume 1, XCR0.
constexpr unsigned kYmm = bit(1) | bit(2), kZmm = kYmm | bit(5) | bit(6) | bit(7);

struct Processor {
  unsigned basic = 0, extended = 0;  ///< ecx of leaf 1, ebx of leaf 7
  unsigned saved = 0;                ///< XCR0
};

Processor ask() noexcept {
  Processor processor;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return processor;
  processor.basic = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) processor.extended = b;
  if ((processor.basic & kXsave) != 0) {
    unsigned high = 0;
    __asm__("xgetbv" : "=a"(processor.saved), "=d"(high) : "c"(0));
  }
  return processor;
}

bool has(unsigned word, unsigned bits) noexcept { return (word & bits) == bits; }

/// Returns the family in eax of leaf 1, base and extension together.
unsigned family_in(unsigned eax) noexcept { return ((eax >> 8) & 0xf) + ((eax >> 20) & 0xff); }

}  // namespace

bool processor_has(Instructions instructions) noexcept {
  static const Processor processor = ask();
  const bool avx2 = has(processor.saved, kYmm) && has(processor.extended, kAvx2Bits) &&
                    has(processor.basic, kPopcnt);
  switch (instructions) {
    case Instructions::kSse42:
      return has(processor.basic, kSse42Bit);
    case Instructions::kAvx2:
      return avx2;
    case Instructions::kAvx512:
      return avx2 && has(processor.saved, kZmm) && has(processor.extended, kAvx512Bits);
    case Instructions::kAvx512f:
      return has(processor.saved, kZmm) && has(processor.extended, kAvx512fBit);
  }
  return false;
}

ProcessorKind processor_kind() noexcept {
  static const ProcessorKind kind = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(0, &a, &b, &c, &d) == 0) return ProcessorKind::kOther;
    if (b == kGenu && d == kIneI && c == kNtel) return ProcessorKind::kIntel;
    const bool is_amd = b == kAuth && d == kEnti && c == kCAmd;
    if (!is_amd || __get_cpuid(1, &a, &b, &c, &d) == 0) return ProcessorKind::kOther;
    return family_in(a) == kZen3And4 && processor_has(Instructions::kAvx512f)
               ? ProcessorKind::kZen4
               : ProcessorKind::kOther;
  }();
  return kind;
}

}  // namespace embertable
