// The Reduce family: reduces all elements along some axes to one number. The axes are an attribute
// in older versions and an input in newer ones (ReduceSum from 13 on, the others from 18 on).
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/compensated_sum.h"
#include "ops/convert_element.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// --- Accumulators: each struct takes the elements of one set and gives its result ----------------

// Floats are summed in double, integers in uint64_t, which wraps around as narrower integers do.
template <class T>
using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <class T>
double real(T value) {
  return static_cast<double>(static_cast<compute_t<T>>(value));
}

template <class T>
Wide<T> widened(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(value);
  else
    return real(value);
}

template <class T>
T narrowed(Wide<T> value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value);
  else
    return from_double<T>(value);
}

class WrappedSum {
 public:
  void add(uint64_t x) { total_ += x; }
  uint64_t value() const { return total_; }

 private:
  uint64_t total_ = 0;
};

template <class T>
struct Sum {
  std::conditional_t<std::is_integral_v<T>, WrappedSum, CompensatedSum> sum;
  void add(T value) { sum.add(widened(value)); }
  T result(int64_t) const { return narrowed<T>(sum.value()); }
};

template <class T>
struct Mean : Sum<T> {
  T result(int64_t count) const {
    if constexpr (!std::is_integral_v<T>) {
      return from_double<T>(this->sum.value() / static_cast<double>(count));
    } else if (count == 0) {
      return 0;  // integers have no NaN
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(static_cast<int64_t>(this->sum.value()) / count);
    } else {
      return static_cast<T>(this->sum.value() / static_cast<uint64_t>(count));
    }
  }
};

template <class T>
struct Product {
  Wide<T> product = 1;
  void add(T value) { product *= widened(value); }
  T result(int64_t) const { return narrowed<T>(product); }
};

template <class T>
struct SumSquare : Sum<T> {
  void add(T value) { this->sum.add(widened(value) * widened(value)); }
};

template <class T>
struct NormOne : Sum<T> {
  void add(T value) {
    if constexpr (std::is_integral_v<T>) {
      this->sum.add(value < T(0) ? 0 - widened(value) : widened(value));
    } else {
      this->sum.add(std::abs(widened(value)));
    }
  }
};

template <class T>
struct NormTwo {
  CompensatedSum sum;
  void add(T value) { sum.add(real(value) * real(value)); }
  T result(int64_t) const { return from_double<T>(std::sqrt(sum.value())); }
};

template <class T>
struct LogSum {
  CompensatedSum sum;
  void add(T value) { sum.add(real(value)); }
  T result(int64_t) const { return from_double<T>(std::log(sum.value())); }
};

// Keeps the sum of exp(x - largest), which cannot overflow.
template <class T>
struct LogSumExp {
  double largest = -std::numeric_limits<double>::infinity();
  CompensatedSum sum;
  void add(T stored) {
    const double value = real(stored);
    if (value == largest) {
      sum.add(1);  // also if both are infinite and their difference is NaN
    } else if (value > largest) {
      sum.scale(std::exp(largest - value));
      sum.add(1);
      largest = value;
    } else {
      sum.add(std::exp(value - largest));  // propagates NaN
    }
  }
  T result(int64_t count) const {
    const bool is_all_zero = largest == -std::numeric_limits<double>::infinity();
    if (count == 0 || (is_all_zero && !std::isnan(sum.value()))) return from_double<T>(largest);
    return from_double<T>(std::log(sum.value()) + largest);
  }
};

// The largest or smallest; a NaN wins over any number, as in NumPy.
template <class T, bool kIsMax>
struct Extreme {
  using C = compute_t<T>;
  using Limits = std::numeric_limits<C>;
  C best = kIsMax ? (Limits::has_infinity ? -Limits::infinity() : Limits::lowest())
                  : (Limits::has_infinity ? Limits::infinity() : Limits::max());
  void add(T stored) {
    const C value = static_cast<C>(stored);
    if constexpr (!std::is_integral_v<C>) {
      if (std::isnan(best)) return;
      if (std::isnan(value)) best = value;
    }
    if (kIsMax ? value > best : value < best) best = value;
  }
  T result(int64_t) const { return T(best); }
};
template <class T>
using Max = Extreme<T, true>;
template <class T>
using Min = Extreme<T, false>;

// --- Kernel --------------------------------------------------------------------------------------

// Which axes are reduced, for a node whose axes are `given`.
std::pmr::vector<bool> reduced_axes(
    const Node& node, std::span<const int64_t> given, size_t rank,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  const int64_t* is_noop = node.attributes.find_int("noop_with_empty_axes");
  const bool is_all = given.empty() && (is_noop == nullptr || *is_noop == 0);
  std::pmr::vector<bool> is_reduced(rank, is_all, memory);
  for (const int64_t axis : given) {
    is_reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  }
  return is_reduced;
}

// The input as a set of reductions: the first element of each set, and the rows of one set, each of
// `width` elements that are `stride` apart.
struct Sets {
  StridedView starts;
  StridedView rows;
  int64_t width = 1;
  int64_t stride = 1;
  int64_t length = 1;  // number of elements in a set
};

Sets sets_of(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const std::pmr::vector<bool> is_reduced =
      reduced_axes(call.node, integers_of(call, "axes", 1), input.dims.size(), &call.scratch);
  const std::pmr::vector<int64_t> strides = dense_strides(input.dims, &call.scratch);
  Sets sets = {.starts = StridedView(&call.scratch), .rows = StridedView(&call.scratch)};
  for (size_t axis = 0; axis < input.dims.size(); ++axis) {
    StridedView& view = is_reduced[axis] ? sets.rows : sets.starts;
    view.dims.push_back(input.dims[axis]);
    view.strides.push_back(strides[axis]);
  }
  // If the input has no elements, the length does not matter, and the product of the other
  // dimensions may overflow.
  sets.length = input.elements == 0 ? 0 : input.elements / call.outputs[0].elements;
  if (sets.length == 0) return sets;
  sets.starts = merged(sets.starts);
  sets.rows = merged(sets.rows);
  sets.width = sets.rows.dims.back();
  sets.stride = sets.rows.strides.back();
  sets.rows.dims.pop_back();
  sets.rows.strides.pop_back();
  return sets;
}

template <class Reducer, class T>
T reduce_set(const Sets& sets, const T* start) {
  Reducer reducer;
  Odometer odometer(sets.rows, 0);
  for (int64_t done = 0; done < sets.length; done += sets.width, odometer.advance()) {
    const T* row = start + odometer.offset();
    for (int64_t index = 0; index < sets.width; ++index) reducer.add(row[index * sets.stride]);
  }
  return reducer.result(sets.length);
}

template <template <class> class Reducer, class T>
void reduce_typed(const KernelCall& call, const Sets& sets) {
  const auto target = call.outputs[0].as<T>();
  if (sets.length == 0) {
    std::fill(target.begin(), target.end(), Reducer<T>().result(0));
    return;
  }
  const T* source = call.inputs[0].as<T>().data();
  const int64_t grain = std::max<int64_t>(1, 8192 / sets.length);
  call.pool.parallel_for(call.outputs[0].elements, grain, [&](int64_t begin, int64_t end) {
    Odometer odometer(sets.starts, begin);
    for (int64_t index = begin; index < end; ++index, odometer.advance()) {
      target[static_cast<size_t>(index)] =
          reduce_set<Reducer<T>, T>(sets, source + odometer.offset());
    }
  });
}

template <template <class> class Reducer>
void run_numeric(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const Sets sets = sets_of(call);
  visit_numeric(call.inputs[0].type,
                [&](auto tag) { reduce_typed<Reducer, typename decltype(tag)::type>(call, sets); });
}

// For the two reductions that also take bool (false < true).
template <template <class> class Reducer>
void run_ordered(const KernelCall& call) {
  if (call.inputs[0].type != DataType::Bool) return run_numeric<Reducer>(call);
  if (call.outputs[0].elements > 0) reduce_typed<Reducer, bool>(call, sets_of(call));
}

// --- Type and shape rule -------------------------------------------------------------------------

// For axes that are an unknown input.
void infer_unknown_axes(InferContext& context, const Shape& shape, bool is_kept) {
  const auto rank = static_cast<int64_t>(shape.size());
  const auto length = list_length(context, 1);
  std::optional<Shape> output;
  if (is_kept) {
    output = unknown_shape(context, 0, rank);
  } else if (length && *length > 0 && *length <= rank) {
    output = unknown_shape(context, 0, rank - *length);
  }
  context.set_output(0, context.element(0), output);
}

void infer_reduce(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, context.element(0));
  const Attributes& attributes = context.node().attributes;
  const bool is_kept = attributes.get_int("keepdims") != 0;
  std::vector<int64_t> axes;
  if (const auto* given = attributes.find_ints("axes")) axes = *given;
  if (context.has_input(1) && list_length(context, 1) != 0) {
    const auto given = integer_list(context, 1);
    if (!given) return infer_unknown_axes(context, *shape, is_kept);
    axes = *given;
  }
  axes = normalized_axes(context, axes, static_cast<int64_t>(shape->size()));
  const std::pmr::vector<bool> is_reduced = reduced_axes(context.node(), axes, shape->size());
  Shape output;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if (!is_reduced[axis]) {
      output.push_back((*shape)[axis]);
    } else if (is_kept) {
      output.emplace_back(1);
    }
  }
  context.set_output(0, context.element(0), output);
}

// The elements of a list that is reduced to a scalar; nullptr otherwise.
const std::vector<Dim>* reduced_list(const InferContext& context) {
  const auto* elements = propagated_elements(context, 0);
  const auto& output = context.node().outputs;
  if (elements == nullptr || output.empty() || context.shape(0)->size() != 1) return nullptr;
  std::vector<int64_t> axes;
  if (const auto* given = context.node().attributes.find_ints("axes")) axes = *given;
  if (context.has_input(1)) {
    const auto given = integer_list(context, 1);
    if (!given) return nullptr;
    axes = *given;
  }
  return reduced_axes(context.node(), axes, 1)[0] ? elements : nullptr;
}

// Folds numbers and symbols separately. Does not track results that might wrap around.
template <class Combine>
std::optional<Dim> folded(const InferContext& context, const std::vector<Dim>& elements,
                          int64_t identity, const Combine& combine_numbers,
                          Dim (*combine_symbols)(const Dim&, const Dim&)) {
  int64_t number = identity;
  Dim symbols = identity;
  for (const Dim& element : elements) {
    if (!element.is_known()) {
      symbols = combine_symbols(symbols, element);
    } else if (combine_numbers(number, element.value(), &number)) {
      return std::nullopt;
    }
  }
  const bool is_narrow = context.element(0) == DataType::Int32;
  if (is_narrow && number != static_cast<int32_t>(number)) return std::nullopt;
  return combine_symbols(symbols, number);
}

void infer_sum(InferContext& context) {
  infer_reduce(context);
  const auto* elements = reduced_list(context);
  if (elements == nullptr) return;
  const auto sum = [](int64_t left, int64_t right, int64_t* result) {
    return __builtin_add_overflow(left, right, result);
  };
  if (const auto total = folded(context, *elements, 0, sum, add)) {
    context.set_elements(0, std::vector<Dim>{*total});
  }
}

void infer_product(InferContext& context) {
  infer_reduce(context);
  const auto* elements = reduced_list(context);
  if (elements == nullptr) return;
  const auto times = [](int64_t left, int64_t right, int64_t* result) {
    return __builtin_mul_overflow(left, right, result);
  };
  if (const auto total = folded(context, *elements, 1, times, multiply)) {
    context.set_elements(0, std::vector<Dim>{*total});
  }
}

template <bool kIsMax>
void infer_extreme(InferContext& context) {
  infer_reduce(context);
  const auto* elements = reduced_list(context);
  if (elements == nullptr || elements->empty()) return;
  if (!is_known(*elements)) {
    return context.set_elements(
        0, std::vector<Dim>{elements->size() == 1 ? elements->front()
                                                  : expression(kIsMax ? "max" : "min", *elements)});
  }
  const std::vector<int64_t> numbers = dims_from(*elements);
  context.set_elements(
      0, std::vector<Dim>{Dim(kIsMax ? *std::max_element(numbers.begin(), numbers.end())
                                     : *std::min_element(numbers.begin(), numbers.end()))});
}

// --- The table -----------------------------------------------------------------------------------

constexpr TypeSet kReducedTypes =
    TypeSet{DataType::Int32, DataType::Int64, DataType::UInt32, DataType::UInt64} | kFloatTypes;
constexpr TypeSet kOrderedTypes =
    kReducedTypes | TypeSet{DataType::Int8, DataType::UInt8, DataType::Bool};

struct ReductionRow {
  const char* name;
  std::vector<int> versions;
  int axes_input_since;
  TypeSet types;
  InferRule infer;
  ReferenceKernel kernel;
  uint32_t traits = kNoTrait;
};

Op reduce_op(const ReductionRow& row) {
  const int since = row.axes_input_since;
  return {.name = row.name,
          .versions = row.versions,
          .inputs = {{"data", "T"}, {"axes", "tensor(int64)", Arity::Optional, since}},
          .outputs = {{"reduced", "T"}},
          .type_variables = {{"T", row.types}, {"tensor(int64)", kInt64Type}},
          .attributes = {{"axes", AttributeKind::Ints, std::nullopt, 1, since - 1},
                         {"keepdims", AttributeKind::Int, int64_t{1}},
                         {"noop_with_empty_axes", AttributeKind::Int, int64_t{0}, since}},
          .traits = row.traits,
          .infer = row.infer,
          .flops = flops_per_input,
          .kernel = row.kernel};
}

}  // namespace

std::vector<Op> reduce_ops() {
  const std::vector<int> plain = {1, 11, 13, 18};
  const std::vector<int> logarithmic = {1, 11, 13, 18, 28};
  const std::vector<int> ordered = {1, 11, 12, 13, 18, 20};
  const ReductionRow rows[] = {
      {"ReduceSum", {1, 11, 13}, 13, kReducedTypes, infer_sum, run_numeric<Sum>, kBoundsMagnitude},
      {"ReduceMean", plain, 18, kReducedTypes, infer_reduce, run_numeric<Mean>, kBoundsMagnitude},
      {"ReduceProd", plain, 18, kReducedTypes, infer_product, run_numeric<Product>},
      {"ReduceMax", ordered, 18, kOrderedTypes, infer_extreme<true>, run_ordered<Max>},
      {"ReduceMin", ordered, 18, kOrderedTypes, infer_extreme<false>, run_ordered<Min>},
      {"ReduceL1", plain, 18, kReducedTypes, infer_reduce, run_numeric<NormOne>},
      {"ReduceL2", plain, 18, kReducedTypes, infer_reduce, run_numeric<NormTwo>},
      {"ReduceLogSum", logarithmic, 18, kReducedTypes, infer_reduce, run_numeric<LogSum>},
      {"ReduceLogSumExp", logarithmic, 18, kReducedTypes, infer_reduce, run_numeric<LogSumExp>},
      {"ReduceSumSquare", plain, 18, kReducedTypes, infer_reduce, run_numeric<SumSquare>},
  };
  std::vector<Op> ops;
  for (const ReductionRow& row : rows) ops.push_back(reduce_op(row));
  return ops;
}

}  // namespace tessera::ops
