// CumSum and CumProd: running sums and products along one axis.
#include <type_traits>

#include "ops/compensated_sum.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

void infer_accumulation(InferContext& context) {
  const Shape* shape = context.shape(0);
  const auto axis = integer_list(context, 1);
  if (axis && axis->size() != 1) {
    context.fail_input(1, "expected one axis, found " + std::to_string(axis->size()));
  }
  if (shape != nullptr && axis) {
    context.normalized_axis(axis->front(), static_cast<int64_t>(shape->size()));
  }
  context.set_output(0, context.element(0), context.input(0).type.shape);
}

// Integers wrap around, so the sum is computed in an unsigned type.
template <class T>
struct Accumulator {
  using type = sum_t<T>;
};
template <>
struct Accumulator<int32_t> {
  using type = uint32_t;
};
template <>
struct Accumulator<int64_t> {
  using type = uint64_t;
};

template <class A>
class RunningSum {
 public:
  A value() const { return sum_; }
  void add(A x) { sum_ += x; }

 private:
  A sum_ = 0;
};

template <class A>
class RunningProduct {
 public:
  A value() const { return product_; }
  void add(A x) { product_ *= x; }

 private:
  A product_ = 1;
};

template <class A, bool kIsProduct>
using Running = std::conditional_t<
    kIsProduct, RunningProduct<A>,
    std::conditional_t<std::is_same_v<A, double>, CompensatedSum, RunningSum<A>>>;

// The running sums or products of `length` elements, `stride` apart; a negative stride runs
// backwards.
template <class T, bool kIsProduct>
void accumulate_line(const T* input, T* output, int64_t length, int64_t stride, bool is_exclusive) {
  using A = typename Accumulator<T>::type;
  Running<A, kIsProduct> total;
  for (int64_t index = 0; index < length; ++index) {
    const A before = total.value();
    total.add(static_cast<A>(static_cast<compute_t<T>>(input[index * stride])));
    output[index * stride] = static_cast<T>(is_exclusive ? before : total.value());
  }
}

template <bool kIsProduct>
void run_accumulation(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  if (input.elements == 0) return;
  const auto axis = static_cast<size_t>(index_at(call, call.inputs[1], 0, input.rank()));
  const int64_t length = input.dims[axis];
  int64_t stride = 1;
  for (size_t inner_axis = axis + 1; inner_axis < input.dims.size(); ++inner_axis) {
    stride *= input.dims[inner_axis];
  }
  const bool is_exclusive = call.node.attributes.get_int("exclusive") != 0;
  const bool is_reverse = call.node.attributes.get_int("reverse") != 0;
  const auto run = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = input.as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    call.pool.parallel_for(input.elements / length, 16, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        int64_t start = line / stride * length * stride + line % stride;
        if (is_reverse) start += (length - 1) * stride;
        accumulate_line<T, kIsProduct>(source + start, target + start, length,
                                       is_reverse ? -stride : stride, is_exclusive);
      }
    });
  };
  switch (input.type) {
    case DataType::Int32:
      return run(TypeTag<int32_t>{});
    case DataType::Int64:
      return run(TypeTag<int64_t>{});
    case DataType::UInt32:
      return run(TypeTag<uint32_t>{});
    case DataType::UInt64:
      return run(TypeTag<uint64_t>{});
    default:
      return visit_floating(input.type, run);
  }
}

constexpr TypeSet kSummedTypes =
    TypeSet{DataType::Int32, DataType::Int64, DataType::UInt32, DataType::UInt64} | kFloatTypes;

Op accumulation_op(const char* name, std::vector<int> versions, uint32_t traits,
                   ReferenceKernel kernel) {
  return {.name = name,
          .versions = std::move(versions),
          .inputs = {{"x", "T"}, {"axis", "T2"}},
          .outputs = {{"y", "T"}},
          .type_variables = {{"T", kSummedTypes}, {"T2", kIndexTypes}},
          .attributes = {{"exclusive", AttributeKind::Int, int64_t{0}},
                         {"reverse", AttributeKind::Int, int64_t{0}}},
          .traits = traits,
          .infer = infer_accumulation,
          .kernel = std::move(kernel)};
}

}  // namespace

std::vector<Op> cum_sum_ops() {
  return {accumulation_op("CumSum", {11, 14}, kBoundsMagnitude, run_accumulation<false>),
          accumulation_op("CumProd", {26}, kNoTrait, run_accumulation<true>)};
}

}  // namespace tessera::ops
