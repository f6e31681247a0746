// Huge pages of 2 MiB: first-touch of large memory is several times as fast as with small pages.
#pragma once

#include <cstddef>

namespace tessera {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Advises the system to use huge pages for the untouched part of `memory`, as far as whole huge
// pages fit. The system may ignore the advice.
void ask_for_huge_pages(void* memory, size_t bytes);

}  // namespace tessera
