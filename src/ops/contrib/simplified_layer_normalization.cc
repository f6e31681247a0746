// SimplifiedLayerNormalization: rows divided by the root of their mean square, and scaled. ONNX
// Runtime has it in ONNX's own domain, in version 1; no operator set of ONNX contains it.
#include <algorithm>

#include "ops/broadcast.h"
#include "ops/contrib/contrib.h"
#include "ops/contrib/row_normalization.h"

namespace tessera::ops {
namespace {

// Values of ONNX's TensorProto.DataType, used by stash_type.
constexpr int64_t kStashFloat = 1;
constexpr int64_t kStashDouble = 11;

void infer_simplified(InferContext& context) {
  const int64_t stash_type = context.node().attributes.get_int("stash_type");
  if (stash_type != kStashFloat && stash_type != kStashDouble) {
    context.fail("expected 'stash_type' 1 (float32) or 11 (float64), found " +
                 std::to_string(stash_type));
  }
  const DataType stash = stash_type == kStashFloat ? DataType::Float32 : DataType::Float64;
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(1), context.input(0).type.shape);
  context.set_output(1, stash);
  if (input == nullptr) return;
  const int64_t axis = context.normalized_axis(context.node().attributes.get_int("axis"),
                                               static_cast<int64_t>(input->size()));
  const Shape* scale = context.shape(1);
  if (scale != nullptr && !can_broadcast_to(*scale, *input)) {
    context.fail_input(1, "expected a shape that broadcasts to input 'X' (" + text(*input) +
                              "), found [" + text(*scale) + "]");
  }
  Shape reduced = *input;
  std::fill(reduced.begin() + axis, reduced.end(), Dim(1));
  context.set_output(1, stash, reduced);
}

void run_simplified(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  int64_t axis = call.node.attributes.get_int("axis");
  if (axis < 0) axis += input.rank();
  const auto first = static_cast<size_t>(axis);
  const int64_t columns = element_count(input.dims.subspan(first));
  const RowNormalization normalization = {.rows = element_count(input.dims.first(first)),
                                          .columns = columns,
                                          .has_mean = false,
                                          .epsilon = call.node.attributes.get_float("epsilon"),
                                          .inverse = 1};
  const std::pmr::vector<double> scale = to_doubles(call.inputs[1], call.scratch);
  const BroadcastLoop loop(input.dims, {call.inputs[1].dims}, &call.scratch);
  const int64_t step = loop.step(0);
  visit_floating(input.type, [&](auto input_tag) {
    const auto* source = input.as<typename decltype(input_tag)::type>().data();
    const auto read = [&](int64_t row, std::span<double> line) {
      std::transform(source + row * columns, source + (row + 1) * columns, line.begin(),
                     [](auto element) { return to_double(element); });
    };
    visit_floating(call.outputs[0].type, [&](auto output_tag) {
      using V = typename decltype(output_tag)::type;
      V* target = call.outputs[0].as<V>().data();
      const auto write = [&](int64_t row, std::span<const double> line) {
        const int64_t begin = row * columns;
        loop.for_each_run(begin, begin + columns, [&](const BroadcastLoop::Run& run) {
          for (int64_t index = 0; index < run.length; ++index) {
            const double factor = scale[static_cast<size_t>(run.inputs[0] + index * step)];
            const double element = line[static_cast<size_t>(run.output - begin + index)];
            target[run.output + index] = from_double<V>(element * factor);
          }
        });
      };
      normalize_lines(call, normalization, read, write);
    });
  });
}

}  // namespace

std::vector<Op> simplified_layer_normalization_ops() {
  return {{.name = "SimplifiedLayerNormalization",
           .versions = {1},
           .inputs = {{"X", "T"}, {"scale", "V"}},
           .outputs = {{"Y", "V"}, {"inv_std_var", "U", Arity::Optional}},
           .type_variables = {{"T", kFloatTypes},
                              {"V", kFloatTypes},
                              {"U", {DataType::Float32, DataType::Float64}}},
           .attributes = {{"axis", AttributeKind::Int, int64_t{-1}},
                          {"epsilon", AttributeKind::Float, 1e-5F},
                          {"stash_type", AttributeKind::Int, int64_t{1}}},
           .infer = infer_simplified,
           .flops = normalization_flops,
           .kernel = run_simplified}};
}

}  // namespace tessera::ops
