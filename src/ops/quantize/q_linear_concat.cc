// QLinearConcat and QLinearWhere of com.microsoft: bytes of several scales in one tensor.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <string>

#include "ops/broadcast.h"
#include "ops/domains.h"
#include "ops/quantize/quantization.h"
#include "ops/shape_rules.h"

namespace tessera::ops {
namespace {

// --- QLinearConcat -------------------------------------------------------------------------------

// The inputs are the scale and zero point of the output, then each part with both of its own.
constexpr size_t kFirstPart = 2;
constexpr size_t kInputsOfPart = 3;

size_t part_count(size_t input_count) { return (input_count - kFirstPart) / kInputsOfPart; }

void check_part_types(const InferContext& context, size_t part) {
  const auto check = [&](size_t index, TypeSet types) {
    const DataType found = context.element(index);
    if (found == DataType::Undefined || types.contains(found)) return;
    context.fail_input(
        index, "expected elements of " + types.text() + ", found " + std::string(name(found)));
  };
  const DataType result = context.element(1);
  const TypeSet elements = result == DataType::Undefined ? kByteTypes : TypeSet{result};
  check(part, elements);
  check(part + 1, {DataType::Float32});
  check(part + 2, elements);
}

// Merges the shape of a part into that of the parts before, which has the same rank.
void join_part(const InferContext& context, size_t part, size_t axis, Shape& joined) {
  const Shape& shape = *context.shape(part);
  for (size_t dimension = 0; dimension < joined.size(); ++dimension) {
    if (dimension == axis) continue;
    const Dim& found = shape[dimension];
    Dim& expected = joined[dimension];
    if (!expected.is_known()) {
      expected = found.is_known() ? found : expected;
    } else if (found.is_known() && found != expected) {
      context.fail_input(part, "expected shape [" + text(joined) + "], except along axis " +
                                   std::to_string(axis) + ", found [" + text(shape) + "]");
    }
  }
}

void infer_quantized_concat(InferContext& context) {
  const size_t count = context.input_count();
  if (count < kFirstPart + kInputsOfPart || (count - kFirstPart) % kInputsOfPart != 0) {
    context.fail("expected two inputs and three for each part, found " + std::to_string(count) +
                 " inputs");
  }
  check_tensor_scale(context, 0, 1);
  std::optional<Shape> joined;
  bool is_complete = true;
  int64_t axis = context.node().attributes.get_int("axis");
  Dim total = 0;
  for (size_t part = kFirstPart; part < count; part += kInputsOfPart) {
    check_part_types(context, part);
    check_tensor_scale(context, part + 1, part + 2);
    const Shape* const shape = context.shape(part);
    is_complete = is_complete && shape != nullptr;
    if (shape == nullptr) continue;
    if (!joined) {
      joined = *shape;
      axis = context.normalized_axis(axis, static_cast<int64_t>(shape->size()));
    }
    if (shape->size() != joined->size()) {
      context.fail_input(part, "expected rank " + std::to_string(joined->size()) +
                                   " as the parts before, found shape [" + text(*shape) + "]");
    }
    join_part(context, part, static_cast<size_t>(axis), *joined);
    total = add(total, (*shape)[static_cast<size_t>(axis)]);
  }
  if (joined) {
    const auto at = static_cast<size_t>(axis);
    (*joined)[at] = is_complete ? total : unknown_dim(context, 0, at);
  }
  context.set_output(0, context.element(1), std::move(joined));
}

void run_quantized_concat(const KernelCall& call) {
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += output.rank();
  const auto at = static_cast<size_t>(axis);
  const int64_t inner = element_count(output.dims.subspan(at + 1));
  const int64_t row_length = inner * output.dims[at];
  const TensorScale to = tensor_scale_of(call, 0, 1);
  visit_byte(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::pmr::vector<ByteTable<T>> tables(&call.scratch);
    for (size_t part = 0; part < part_count(call.inputs.size()); ++part) {
      const size_t input = kFirstPart + part * kInputsOfPart;
      tables.push_back(requantization_table<T>(tensor_scale_of(call, input + 1, input + 2), to));
    }
    const int64_t grain = std::max<int64_t>(1, kElementGrain / row_length);
    call.pool.parallel_for(output.elements / row_length, grain, [&](int64_t begin, int64_t end) {
      T* target = output.as<T>().data() + begin * row_length;
      for (int64_t row = begin; row < end; ++row) {
        for (size_t part = 0; part < tables.size(); ++part) {
          const TensorView& input = call.inputs[kFirstPart + part * kInputsOfPart];
          const int64_t length = inner * input.dims[at];
          const T* const source = input.as<T>().data() + row * length;
          for (int64_t index = 0; index < length; ++index) {
            *target++ = tables[part][table_index(source[index])];
          }
        }
      }
    });
  });
}

// --- QLinearWhere --------------------------------------------------------------------------------

void infer_quantized_where(InferContext& context) {
  check_tensor_scale(context, 2, 3);
  check_tensor_scale(context, 5, 6);
  check_tensor_scale(context, 7, 8);
  std::optional<Shape> shape = Shape{};
  for (const size_t input : {size_t{0}, size_t{1}, size_t{4}}) {
    const Shape* const given = context.shape(input);
    if (given == nullptr || !shape) {
      shape = std::nullopt;
      continue;
    }
    const Shape before = *shape;
    shape = broadcast(before, *given);
    if (!shape) {
      context.fail_input(input, "expected a shape that broadcasts with [" + text(before) +
                                    "] of the inputs before, found [" + text(*given) + "]");
    }
  }
  const DataType type = context.element(1);
  context.set_output(0, type != DataType::Undefined ? type : context.element(4), std::move(shape));
}

void run_quantized_where(const KernelCall& call) {
  const MutableTensorView& result = call.outputs[0];
  const TensorScale to = tensor_scale_of(call, 7, 8);
  const BroadcastLoop loop(
      result.dims, {call.inputs[0].dims, call.inputs[1].dims, call.inputs[4].dims}, &call.scratch);
  const uint8_t* const condition = call.inputs[0].as<uint8_t>().data();
  visit_byte(result.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto of_yes = requantization_table<T>(tensor_scale_of(call, 2, 3), to);
    const auto of_no = requantization_table<T>(tensor_scale_of(call, 5, 6), to);
    const T* const yes = call.inputs[1].as<T>().data();
    const T* const no = call.inputs[4].as<T>().data();
    T* const output = result.as<T>().data();
    const auto choose = [&](const BroadcastLoop::Run& run) {
      for (int64_t index = 0; index < run.length; ++index) {
        const bool is_yes = condition[run.inputs[0] + index * loop.step(0)] != 0;
        output[run.output + index] =
            is_yes ? of_yes[table_index(yes[run.inputs[1] + index * loop.step(1)])]
                   : of_no[table_index(no[run.inputs[2] + index * loop.step(2)])];
      }
    };
    call.pool.parallel_for(result.elements, kElementGrain, [&](int64_t begin, int64_t end) {
      loop.for_each_run(begin, end, choose);
    });
  });
}

}  // namespace

std::vector<Op> q_linear_concat_ops() {
  constexpr TypeSet kScaleType = {DataType::Float32};
  return {{.name = "QLinearConcat",
           .domain = kMicrosoftDomain,
           .versions = {1},
           // The parts, their scales and their zero points have different types.
           .inputs = {{"Y_scale", "TF"}, {"Y_zero_point", "T8"}, {"inputs", "TV", Arity::Variadic}},
           .outputs = {{"Y", "T8"}},
           .type_variables = {{"TF", kScaleType}, {"T8", kByteTypes}},
           .attributes = {{"axis", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true}},
           .infer = infer_quantized_concat,
           .flops = no_flops,
           .kernel = run_quantized_concat},
          {.name = "QLinearWhere",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"condition", "B"},
                      {"X", "T"},
                      {"x_scale", "TF"},
                      {"x_zero_point", "T"},
                      {"Y", "T"},
                      {"y_scale", "TF"},
                      {"y_zero_point", "T"},
                      {"z_scale", "TF"},
                      {"z_zero_point", "T"}},
           .outputs = {{"Z", "T"}},
           .type_variables = {{"B", kBoolType}, {"T", kByteTypes}, {"TF", kScaleType}},
           .infer = infer_quantized_where,
           .flops = no_flops,
           .kernel = run_quantized_where}};
}

}  // namespace tessera::ops
