#include "base/threads/denormals.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kFlush = 0x8040;  // results (FTZ) and operands (DAZ)

uint64_t read_rule() { return _mm_getcsr(); }
void write_rule(uint64_t rule) { _mm_setcsr(static_cast<unsigned>(rule)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlush = uint64_t{1} << 24;  // FPCR.FZ: both

uint64_t read_rule() {
  uint64_t rule = 0;
  asm volatile("mrs %0, fpcr" : "=r"(rule));
  return rule;
}
void write_rule(uint64_t rule) { asm volatile("msr fpcr, %0" : : "r"(rule)); }
#else
constexpr uint64_t kFlush = 0;

uint64_t read_rule() { return 0; }
void write_rule(uint64_t) {}
#endif

}  // namespace

ScopedDenormals::ScopedDenormals(Denormals wanted) {
  if (wanted == Denormals::Keep) return;
  before_ = read_rule();
  is_changed_ = (before_ & kFlush) != kFlush;
  if (is_changed_) write_rule(before_ | kFlush);
}

ScopedDenormals::~ScopedDenormals() {
  // Restores the rule only: the caller may want to see exception flags that were raised meanwhile.
  if (is_changed_) write_rule(before_);
}

}  // namespace tessera
