// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "quantized/dynamic_kernels.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "quantized/dynamic_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The smallest and the largest of the numbers and 0.
void find_range_of(const float* from, int64_t count, float* range) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kParts = 4;
  hn::Vec<decltype(d)> lowest[kParts];
  hn::Vec<decltype(d)> highest[kParts];
  for (int part = 0; part < kParts; ++part) lowest[part] = highest[part] = hn::Zero(d);
  int64_t index = 0;
  for (; index + kParts * lanes <= count; index += kParts * lanes) {
    for (int part = 0; part < kParts; ++part) {
      const auto numbers = hn::LoadU(d, from + index + part * lanes);
      // Comparisons with a NaN are false.
      lowest[part] = hn::IfThenElse(hn::Lt(numbers, lowest[part]), numbers, lowest[part]);
      highest[part] = hn::IfThenElse(hn::Gt(numbers, highest[part]), numbers, highest[part]);
    }
  }
  for (int part = 1; part < kParts; ++part) {
    lowest[0] = hn::Min(lowest[0], lowest[part]);
    highest[0] = hn::Max(highest[0], highest[part]);
  }
  range[0] = hn::GetLane(hn::MinOfLanes(d, lowest[0]));
  range[1] = hn::GetLane(hn::MaxOfLanes(d, highest[0]));
  for (; index < count; ++index) {
    range[0] = std::min(range[0], from[index]);
    range[1] = std::max(range[1], from[index]);
  }
}

void quantize_to(const DynamicScale& scale, const float* from, int64_t count, uint8_t* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(di)> du;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto divisor = hn::Set(d, scale.scale);
  const float lowest = -static_cast<float>(scale.zero);
  const float highest = 255 - static_cast<float>(scale.zero);
  int64_t index = 0;
  for (; index + lanes <= count; index += lanes) {
    auto quotient = hn::Div(hn::LoadU(d, from + index), divisor);
    // A NaN becomes the lowest integer.
    const auto low = hn::Set(d, lowest);
    quotient = hn::IfThenElse(hn::Gt(quotient, low), quotient, low);
    quotient = hn::Min(quotient, hn::Set(d, highest));
    const auto integers = hn::Add(hn::NearestInt(quotient), hn::Set(di, int32_t{scale.zero}));
    hn::StoreU(hn::DemoteTo(du, integers), du, to + index);
  }
  for (; index < count; ++index) {
    const float quotient = from[index] / scale.scale;
    const float limited = quotient > lowest ? std::min(quotient, highest) : lowest;
    to[index] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(limited)) + scale.zero);
  }
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "base/divide_up.h"
#include "base/grain.h"

namespace tessera::native {

HWY_EXPORT(find_range_of);
HWY_EXPORT(quantize_to);

int64_t find_scale_workspace(int64_t threads) {
  return 2 * std::max<int64_t>(threads, 1) * static_cast<int64_t>(sizeof(float));
}

DynamicScale find_scale(plugin::RunContext& context, int64_t threads, const float* from,
                        int64_t count, void* workspace) {
  auto* const ranges = static_cast<float*>(workspace);
  const int64_t parts =
      std::clamp<int64_t>(divide_up(count, kGrain), 1, std::max<int64_t>(threads, 1));
  context.parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = count * part / parts;
      HWY_DYNAMIC_DISPATCH(find_range_of)
      (from + first, count * (part + 1) / parts - first, ranges + 2 * part);
    }
  });
  float lowest = ranges[0];
  float highest = ranges[1];
  for (int64_t part = 1; part < parts; ++part) {
    lowest = std::min(lowest, ranges[2 * part]);
    highest = std::max(highest, ranges[2 * part + 1]);
  }
  constexpr float kSteps = 255;
  DynamicScale found;
  // Zeros alone have any scale.
  if (lowest != highest) found.scale = (highest - lowest) / kSteps;
  const float zero = -lowest / found.scale;
  const float limited = zero > 0 ? std::min(zero, kSteps) : 0;
  found.zero = static_cast<uint8_t>(std::nearbyint(limited));
  return found;
}

void quantize_bytes(plugin::RunContext& context, const DynamicScale& scale, const float* from,
                    int64_t count, uint8_t* to) {
  context.parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(quantize_to)(scale, from + begin, end - begin, to + begin);
  });
}

}  // namespace tessera::native

#endif  // HWY_ONCE
