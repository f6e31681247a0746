#include "reduce/generic_reduction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/grain.h"
#include "reduce/compensated_sum.h"

namespace tessera::native {

using plugin::RunContext;

namespace {

// Integers are summed in 64 unsigned bits, which wrap around as narrower integers do.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;

template <class T>
struct Sum : CompensatedSum<Wide<T>> {
  void add(T value) { this->add_wide(static_cast<Wide<T>>(value)); }
  T result(int64_t /*count*/) const { return static_cast<T>(this->total()); }
};

template <class T>
struct Mean : Sum<T> {
  T result(int64_t count) const {
    if constexpr (std::is_integral_v<T>) {
      // Integers have no NaN for the mean of no elements.
      return count == 0 ? T{0} : static_cast<T>(static_cast<int64_t>(this->sum) / count);
    } else {
      return this->total() / static_cast<T>(count);
    }
  }
};

template <class T>
struct AbsoluteSum : Sum<T> {
  void add(T value) {
    const auto wide = static_cast<Wide<T>>(value);
    this->add_wide(value < 0 ? 0 - wide : wide);
  }
};

template <class T>
struct SquareSum : Sum<T> {
  void add(T value) {
    const auto wide = static_cast<Wide<T>>(value);
    this->add_wide(wide * wide);
  }
};

template <class T>
struct Root : SquareSum<T> {
  T result(int64_t /*count*/) const { return std::sqrt(this->total()); }
};

template <class T>
struct Product {
  Wide<T> product = 1;
  void add(T value) { product *= static_cast<Wide<T>>(value); }
  // It cannot be joined: of two parts, one may be 0 and the other infinite.
  T result(int64_t /*count*/) const { return static_cast<T>(product); }
};

template <class T, bool kIsMax>
struct Extreme {
  using Limits = std::numeric_limits<T>;
  T best = kIsMax ? (Limits::has_infinity ? -Limits::infinity() : Limits::lowest())
                  : (Limits::has_infinity ? Limits::infinity() : Limits::max());
  // Without a branch. NaN stays.
  void add(T value) {
    bool is_kept = kIsMax ? best >= value : best <= value;
    if constexpr (std::is_floating_point_v<T>) is_kept = is_kept || best != best;
    best = is_kept ? best : value;
  }
  void join(const Extreme& other) { add(other.best); }
  T result(int64_t /*count*/) const { return best; }
};

template <class T>
struct Max : Extreme<T, true> {};
template <class T>
struct Min : Extreme<T, false> {};

// Contiguous numbers, several at once: each addition waits for the one before.
template <class Reducer, class T>
void add_run(Reducer& reducer, const T* numbers, int64_t count) {
  constexpr int64_t kLanes = 8;
  int64_t done = 0;
  if constexpr (requires { reducer.join(reducer); }) {
    if (count >= 4 * kLanes) {
      std::array<Reducer, kLanes> lanes;
      for (; done + kLanes <= count; done += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          lanes[static_cast<size_t>(lane)].add(numbers[done + lane]);
        }
      }
      for (const Reducer& lane : lanes) reducer.join(lane);
    }
  }
  for (; done < count; ++done) reducer.add(numbers[done]);
}

template <template <class> class Reducer, class T>
void reduce(RunContext& context, ReducedAxes axes, const void* from, void* to) {
  StridedAxes kept;
  StridedAxes reduced;
  for (int64_t stride = 1; !axes.is_empty(); axes.remove_back()) {
    const ReducedAxis& axis = axes.back();
    (axis.is_reduced ? reduced : kept).add(axis.length, stride);
    stride *= axis.length;
  }
  const int64_t elements = reduced.elements();
  const bool has_run = elements > 0 && reduced.count > 0;
  const int64_t run = has_run ? reduced.lengths[0] : 1;
  const int64_t step = has_run ? reduced.strides[0] : 1;
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, elements));
  context.parallel_for(kept.elements(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const T* start = source + kept.offset(index);
      Reducer<T> reducer;
      for (int64_t done = 0; done < elements; done += run) {
        const T* numbers = start + reduced.offset(done);
        if (step == 1) {
          add_run(reducer, numbers, run);
          continue;
        }
        for (int64_t position = 0; position < run; ++position)
          reducer.add(numbers[position * step]);
      }
      target[index] = reducer.result(elements);
    }
  });
}

template <class T>
GenericReduction find_extreme(std::string_view op) {
  if (op == "ReduceMax") return reduce<Max, T>;
  if (op == "ReduceMin") return reduce<Min, T>;
  return nullptr;
}

template <class T>
GenericReduction find_exact(std::string_view op) {
  if (op == "ReduceL1") return reduce<AbsoluteSum, T>;
  if (op == "ReduceMean") return reduce<Mean, T>;
  if (op == "ReduceProd") return reduce<Product, T>;
  if (op == "ReduceSum") return reduce<Sum, T>;
  if (op == "ReduceSumSquare") return reduce<SquareSum, T>;
  return find_extreme<T>(op);
}

}  // namespace

GenericReduction find_generic_reduction(std::string_view op, int32_t data_type) {
  switch (data_type) {
    case TESSERA_FLOAT64:
      return op == "ReduceL2" ? reduce<Root, double> : find_exact<double>(op);
    case TESSERA_INT32:
      return find_exact<int32_t>(op);
    case TESSERA_INT64:
      return find_exact<int64_t>(op);
    case TESSERA_INT8:
      return find_extreme<int8_t>(op);
    // false counts as 0 and true as 1.
    case TESSERA_BOOL:
    case TESSERA_UINT8:
      return find_extreme<uint8_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace tessera::native
