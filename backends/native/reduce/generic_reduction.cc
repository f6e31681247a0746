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

// Sums have a term() for each element.
template <class T>
struct Sum : CompensatedSum<Wide<T>> {
  static Wide<T> term(T value) { return static_cast<Wide<T>>(value); }
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
  static Wide<T> term(T value) {
    const auto wide = static_cast<Wide<T>>(value);
    return value < 0 ? 0 - wide : wide;
  }
};

template <class T>
struct SquareSum : Sum<T> {
  static Wide<T> term(T value) {
    const auto wide = static_cast<Wide<T>>(value);
    return wide * wide;
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
  // Its parts are no terms: of two, one may be 0 and the other infinite.
  T result(int64_t /*count*/) const { return static_cast<T>(product); }
};

template <class T, bool kIsMax>
struct Extreme {
  using Limits = std::numeric_limits<T>;
  static constexpr bool kChoosesMax = kIsMax;
  T best = kIsMax ? (Limits::has_infinity ? -Limits::infinity() : Limits::lowest())
                  : (Limits::has_infinity ? Limits::infinity() : Limits::max());
  void add(T value) {
    const bool is_better = kIsMax ? value > best : value < best;
    best = static_cast<int>(is_better) | static_cast<int>(value != value) ? value : best;
  }
  T result(int64_t /*count*/) const { return best; }
};

template <class T>
struct Max : Extreme<T, true> {};
template <class T>
struct Min : Extreme<T, false> {};

template <class Reducer, class T>
void add_one(Reducer& reducer, T value) {
  if constexpr (requires { Reducer::term(value); }) {
    reducer.add_wide(Reducer::term(value));
  } else {
    reducer.add(value);
  }
}

// Several numbers are added at once, because each addition waits for the one before.
constexpr int64_t kLanes = 16;
// The terms of a block are so few that their sum needs no compensation.
constexpr int64_t kBlock = 16 * kLanes;

template <class Reducer, class T>
Wide<T> block_sum(const T* numbers) {
  std::array<Wide<T>, kLanes> lanes = {};
  for (int64_t done = 0; done < kBlock; done += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<size_t>(lane)] += Reducer::term(numbers[done + lane]);
    }
  }
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

// The compiler vectorises no comparison that NaN must pass, so there are vectors, of the 16 bytes
// that every processor has.
template <class Reducer, class T>
void add_block_extreme(Reducer& reducer, const T* numbers) {
  using Vector [[gnu::vector_size(16), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  constexpr int64_t kWidth = 16 / sizeof(T);
  constexpr int64_t kVectors = 8;
  const auto keep_better = [](Vector& best, const Vector& value) {
    const auto is_better = Reducer::kChoosesMax ? value > best : value < best;
    best = (is_better | (value != value)) ? value : best;
  };
  const auto at = [&](int64_t index) { return reinterpret_cast<const Vector*>(numbers + index); };
  Vector best[kVectors];
  for (int64_t each = 0; each < kVectors; ++each) best[each] = *at(each * kWidth);
  for (int64_t done = kVectors * kWidth; done < kBlock; done += kVectors * kWidth) {
    for (int64_t each = 0; each < kVectors; ++each) {
      keep_better(best[each], *at(done + each * kWidth));
    }
  }
  for (int64_t each = 1; each < kVectors; ++each) keep_better(best[0], best[each]);
  for (int64_t lane = 0; lane < kWidth; ++lane) reducer.add(best[0][lane]);
}

// Contiguous numbers.
template <class Reducer, class T>
void add_run(Reducer& reducer, const T* numbers, int64_t count) {
  int64_t done = 0;
  for (; done + kBlock <= count; done += kBlock) {
    if constexpr (requires { Reducer::term(*numbers); }) {
      reducer.add_wide(block_sum<Reducer>(numbers + done));
    } else if constexpr (requires { Reducer::kChoosesMax; }) {
      add_block_extreme(reducer, numbers + done);
    } else {
      break;
    }
  }
  for (; done < count; ++done) add_one(reducer, numbers[done]);
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
        for (int64_t position = 0; position < run; ++position) {
          add_one(reducer, numbers[position * step]);
        }
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
