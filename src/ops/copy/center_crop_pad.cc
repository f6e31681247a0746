// CenterCropPad: the middle of the input, or the input in the middle of zeros, along each axis.
#include <memory_resource>
#include <numeric>
#include <string>
#include <vector>

#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"

namespace tessera::ops {
namespace {

void infer_center_crop_pad(InferContext& context) {
  const std::optional<int64_t> length = list_length(context, 1);
  const auto sizes = dim_list(context, 1);
  const Shape* input = context.shape(0);
  context.set_output(0, context.element(0));
  if (sizes) {
    for (const Dim& size : *sizes) {
      if (size.is_known() && size.value() < 0) {
        context.fail_input(1, "expected sizes of at least 0, found " + text(*sizes));
      }
    }
  }
  if (input == nullptr) return;
  const auto rank = static_cast<int64_t>(input->size());
  std::vector<int64_t> axes(input->size());
  std::iota(axes.begin(), axes.end(), 0);
  if (const auto* given = context.node().attributes.find_ints("axes")) {
    axes = normalized_axes(context, *given, rank);
  }
  if (length && *length != static_cast<int64_t>(axes.size())) {
    context.fail_input(1, "expected a size for each of " + std::to_string(axes.size()) +
                              " axes, found " + std::to_string(*length));
  }
  Shape output = *input;
  for (size_t index = 0; index < axes.size(); ++index) {
    const auto axis = static_cast<size_t>(axes[index]);
    output[axis] = sizes ? (*sizes)[index] : unknown_dim(context, 0, axis);
  }
  context.set_output(0, context.element(0), std::move(output));
}

void run_center_crop_pad(const KernelCall& call) {
  const auto input = call.inputs[0].dims;
  const auto output = call.outputs[0].dims;
  SourceTables tables(&call.scratch);
  tables.reserve(output.size());
  for (size_t axis = 0; axis < output.size(); ++axis) {
    std::pmr::vector<int64_t>& table = tables.emplace_back();
    table.reserve(static_cast<size_t>(output[axis]));
    // Half of what is too much, or too little, rounded down.
    const int64_t first = output[axis] < input[axis] ? (input[axis] - output[axis]) / 2
                                                     : -((output[axis] - input[axis]) / 2);
    for (int64_t index = 0; index < output[axis]; ++index) {
      const int64_t source = first + index;
      table.push_back(source < input[axis] ? source : -1);
    }
  }
  const uint64_t zero = 0;
  copy_indexed(call, tables, &zero);
}

}  // namespace

std::vector<Op> center_crop_pad_ops() {
  return {{.name = "CenterCropPad",
           .versions = {18},
           .inputs = {{"input_data", "T"}, {"shape", "Tind"}},
           .outputs = {{"output_data", "T"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"Tind", kIndexTypes}},
           .attributes = {{"axes", AttributeKind::Ints, std::nullopt}},
           .infer = infer_center_crop_pad,
           .flops = no_flops,
           .kernel = run_center_crop_pad}};
}

}  // namespace tessera::ops
