// Integer division that rounds up.
#pragma once

#include <cstdint>

namespace tessera::native {

// ceil(count / unit) for count >= 0 and unit > 0: the number of units that hold `count` elements.
constexpr int64_t divide_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit; }

}  // namespace tessera::native
