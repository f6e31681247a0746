// Included once for each instruction set by foreach_target.h: HWY_NAMESPACE differs each time.
#include "sparse/sparse_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sparse/sparse_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::native::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Computes 4 vectors of columns of combine_rows, with sums in registers.
template <class D>
void combine_four(D d, const float* HWY_RESTRICT values, const int32_t* HWY_RESTRICT columns,
                  int64_t count, const float* HWY_RESTRICT dense, int64_t width, const float* bias,
                  float* HWY_RESTRICT result) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias);
  auto sum1 = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias + lanes);
  auto sum2 = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias + 2 * lanes);
  auto sum3 = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias + 3 * lanes);
  for (int64_t k = 0; k < count; ++k) {
    const float* row = dense + columns[k] * width;
    const auto value = hn::Set(d, values[k]);
    sum0 = hn::MulAdd(value, hn::LoadU(d, row), sum0);
    sum1 = hn::MulAdd(value, hn::LoadU(d, row + lanes), sum1);
    sum2 = hn::MulAdd(value, hn::LoadU(d, row + 2 * lanes), sum2);
    sum3 = hn::MulAdd(value, hn::LoadU(d, row + 3 * lanes), sum3);
  }
  hn::StoreU(sum0, d, result);
  hn::StoreU(sum1, d, result + lanes);
  hn::StoreU(sum2, d, result + 2 * lanes);
  hn::StoreU(sum3, d, result + 3 * lanes);
}

template <class D>
void combine_one(D d, const float* HWY_RESTRICT values, const int32_t* HWY_RESTRICT columns,
                 int64_t count, const float* HWY_RESTRICT dense, int64_t width, const float* bias,
                 float* HWY_RESTRICT result) {
  auto sum = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias);
  for (int64_t k = 0; k < count; ++k) {
    sum = hn::MulAdd(hn::Set(d, values[k]), hn::LoadU(d, dense + columns[k] * width), sum);
  }
  hn::StoreU(sum, d, result);
}

void combine_rows(const float* values, const int32_t* columns, int64_t count, const float* dense,
                  int64_t width, const float* bias, float* result) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = 0;
  const auto bias_at = [&] { return bias == nullptr ? nullptr : bias + at; };
  for (; at + 4 * lanes <= width; at += 4 * lanes) {
    combine_four(d, values, columns, count, dense + at, width, bias_at(), result + at);
  }
  for (; at + lanes <= width; at += lanes) {
    combine_one(d, values, columns, count, dense + at, width, bias_at(), result + at);
  }
  // Narrower vectors, so that nothing behind the end is read.
  const hn::CappedTag<float, 4> four;
  const auto few = static_cast<int64_t>(hn::Lanes(four));
  for (; at + few <= width; at += few) {
    combine_one(four, values, columns, count, dense + at, width, bias_at(), result + at);
  }
  const hn::CappedTag<float, 1> one;
  for (; at < width; ++at) {
    combine_one(one, values, columns, count, dense + at, width, bias_at(), result + at);
  }
}

void scatter_panel(const float* values, const int32_t* columns, int64_t count, const float* from,
                   float* to) {
  const hn::CappedTag<float, kPanelRows> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t lane = 0; lane < kPanelRows; lane += lanes) {
    const auto factor = hn::Load(d, from + lane);
    for (int64_t k = 0; k < count; ++k) {
      float* position = to + columns[k] * kPanelRows + lane;
      hn::Store(hn::MulAdd(hn::Set(d, values[k]), factor, hn::Load(d, position)), d, position);
    }
  }
}

void gather_panel(const float* values, const int32_t* columns, int64_t count, const float* from,
                  float* to) {
  const hn::CappedTag<float, kPanelRows> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t lane = 0; lane < kPanelRows; lane += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < count; ++k) {
      const auto position = hn::Load(d, from + columns[k] * kPanelRows + lane);
      sum = hn::MulAdd(hn::Set(d, values[k]), position, sum);
    }
    hn::Store(sum, d, to + lane);
  }
}

const SparseLoops* sparse_loops() {
  static constexpr SparseLoops kLoops = {combine_rows, scatter_panel, gather_panel};
  return &kLoops;
}

}  // namespace tessera::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace tessera::native {

HWY_EXPORT(sparse_loops);

const SparseLoops& sparse_loops() { return *HWY_DYNAMIC_DISPATCH(sparse_loops)(); }

}  // namespace tessera::native

#endif  // HWY_ONCE
