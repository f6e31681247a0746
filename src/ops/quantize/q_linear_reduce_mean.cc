// QLinearReduceMean and ReduceSumInteger of com.microsoft: sums of bytes along some axes.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>

#include "ops/domains.h"
#include "ops/quantize/quantization.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

// Which axes are reduced; without any in the node, all are.
std::pmr::vector<bool> byte_axes(
    const Node& node, size_t rank,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  const std::vector<int64_t>& axes = node.attributes.get_ints("axes");
  std::pmr::vector<bool> is_reduced(rank, axes.empty(), memory);
  for (const int64_t axis : axes) {
    is_reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)] = true;
  }
  return is_reduced;
}

void infer_reduced_bytes(InferContext& context, DataType type) {
  context.set_output(0, type);
  const Shape* const shape = context.shape(0);
  if (shape == nullptr) return;
  const Attributes& attributes = context.node().attributes;
  normalized_axes(context, attributes.get_ints("axes"), static_cast<int64_t>(shape->size()));
  const std::pmr::vector<bool> is_reduced = byte_axes(context.node(), shape->size());
  Shape output;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    if (!is_reduced[axis]) {
      output.push_back((*shape)[axis]);
    } else if (attributes.get_int("keepdims") != 0) {
      output.emplace_back(1);
    }
  }
  context.set_output(0, type, std::move(output));
}

void infer_mean_of_bytes(InferContext& context) {
  check_tensor_scale(context, 1, 2);
  check_tensor_scale(context, 3, 4);
  infer_reduced_bytes(context, context.element(0));
}

// "T2 must be tensor(uint32) when T1 is tensor(uint8), or must be tensor(int32) when T1 is
// tensor(int8)."
void infer_sum_of_bytes(InferContext& context) {
  DataType type = DataType::Undefined;
  if (context.element(0) == DataType::Int8) type = DataType::Int32;
  if (context.element(0) == DataType::UInt8) type = DataType::UInt32;
  infer_reduced_bytes(context, type);
}

// The first element of each set of bytes that are summed, and the rows of one set.
struct ByteSets {
  StridedView starts;
  StridedView rows;
};

ByteSets byte_sets_of(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const std::pmr::vector<bool> is_reduced = byte_axes(call.node, input.dims.size(), &call.scratch);
  const std::pmr::vector<int64_t> strides = dense_strides(input.dims, &call.scratch);
  ByteSets sets = {.starts = StridedView(&call.scratch), .rows = StridedView(&call.scratch)};
  for (size_t axis = 0; axis < input.dims.size(); ++axis) {
    StridedView& view = is_reduced[axis] ? sets.rows : sets.starts;
    view.dims.push_back(input.dims[axis]);
    view.strides.push_back(strides[axis]);
  }
  sets.starts = merged(sets.starts);
  sets.rows = merged(sets.rows);
  return sets;
}

template <class T>
int64_t sum_of_bytes(const T* start, const StridedView& rows, int64_t length) {
  const int64_t width = rows.dims.back();
  const int64_t stride = rows.strides.back();
  const std::span<const int64_t> outer(rows.dims.data(), rows.dims.size() - 1);
  SmallVector<int64_t> coordinates(outer.size());
  const std::span<int64_t> at = coordinates.values();
  int64_t sum = 0;
  for (int64_t done = 0, offset = 0; done < length; done += width) {
    for (int64_t index = 0; index < width; ++index) sum += start[offset + index * stride];
    for (size_t axis = outer.size(); axis-- > 0;) {
      offset += rows.strides[axis];
      if (++at[axis] < outer[axis]) break;
      offset -= rows.strides[axis] * outer[axis];
      at[axis] = 0;
    }
  }
  return sum;
}

// Calls store(index, sum, length) for each element of the output.
template <class Store>
void sum_bytes(const KernelCall& call, const Store& store) {
  const TensorView& input = call.inputs[0];
  const int64_t outputs = call.outputs[0].elements;
  if (outputs == 0) return;
  if (input.elements == 0) {
    for (int64_t index = 0; index < outputs; ++index) store(index, int64_t{0}, int64_t{0});
    return;
  }
  const int64_t length = input.elements / outputs;
  const ByteSets sets = byte_sets_of(call);
  visit_byte(input.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const source = input.as<T>().data();
    const int64_t grain = std::max<int64_t>(1, 2 * kElementGrain / length);
    call.pool.parallel_for(outputs, grain, [&](int64_t begin, int64_t end) {
      Odometer odometer(sets.starts, begin);
      for (int64_t index = begin; index < end; ++index, odometer.advance()) {
        store(index, sum_of_bytes(source + odometer.offset(), sets.rows, length), length);
      }
    });
  });
}

void run_mean_of_bytes(const KernelCall& call) {
  const TensorScale from = tensor_scale_of(call, 1, 2);
  const TensorScale to = tensor_scale_of(call, 3, 4);
  visit_byte(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const output = call.outputs[0].as<T>().data();
    sum_bytes(call, [&](int64_t index, int64_t sum, int64_t length) {
      const auto count = static_cast<double>(length);
      const double mean = from.scale * static_cast<double>(sum - length * from.zero_point) / count;
      output[index] = to.integer_of<T>(mean);
    });
  });
}

void run_sum_of_bytes(const KernelCall& call) {
  // Both 32-bit types wrap around, and have the same bits.
  auto* const output = static_cast<uint32_t*>(call.outputs[0].data);
  sum_bytes(call, [&](int64_t index, int64_t sum, int64_t) {
    output[index] = static_cast<uint32_t>(sum);
  });
}

}  // namespace

std::vector<Op> q_linear_reduce_mean_ops() {
  constexpr TypeSet kSumTypes = {DataType::Int32, DataType::UInt32};
  Op mean = {.name = "QLinearReduceMean",
             .domain = kMicrosoftDomain,
             .versions = {1},
             .inputs = {{"data", "T"},
                        {"data_scale", "TS"},
                        {"data_zero_point", "T", Arity::Optional},
                        {"reduced_scale", "TS"},
                        {"reduced_zero_point", "T", Arity::Optional}},
             .outputs = {{"reduced", "T"}},
             .type_variables = {{"T", kByteTypes}, {"TS", TypeSet{DataType::Float32}}},
             .attributes = {{"axes", AttributeKind::Ints, std::nullopt, 1, kAnyVersion, true},
                            {"keepdims", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true}},
             .infer = infer_mean_of_bytes,
             .flops = flops_per_input,
             .kernel = run_mean_of_bytes};
  Op sum = mean;
  sum.name = "ReduceSumInteger";
  sum.inputs = {{"data", "T1"}};
  sum.outputs = {{"reduced", "T2"}};
  sum.type_variables = {{"T1", kByteTypes}, {"T2", kSumTypes}};
  sum.infer = infer_sum_of_bytes;
  sum.kernel = run_sum_of_bytes;
  return {std::move(mean), std::move(sum)};
}

}  // namespace tessera::ops
