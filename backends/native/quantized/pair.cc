// Sums and products of two tensors of quantised bytes: as regions, and QLinearAdd and QLinearMul of
// com.microsoft.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "elementwise/broadcast_axes.h"
#include "layout/padding.h"
#include "quantized/byte_kernels.h"
#include "quantized/byte_tables.h"
#include "quantized/region.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Two tensors of bytes that broadcast to a third one of the same type.
struct PairTask {
  std::vector<int32_t> nodes;  // ascending
  Value left;
  Value right;
  Value result;
  Quantization left_quantization;
  Quantization right_quantization;
  Quantization result_quantization;
  IntegerLimits limits;
  bool is_sum = true;
  bool is_exact = false;  // rounded where the nodes of a region round
};

PairScales scales_of(const PairTask& task) {
  PairScales scales = {.left_zero = task.left_quantization.zero_point(),
                       .right_zero = task.right_quantization.zero_point(),
                       .zero = task.result_quantization.zero_point(),
                       .lowest = task.limits.lowest,
                       .highest = task.limits.highest};
  const double left = task.left_quantization.scale();
  const double right = task.right_quantization.scale();
  const double result = task.result_quantization.scale();
  if (task.is_exact) {
    scales.left_scale = task.left_quantization.scale();
    scales.right_scale = task.right_quantization.scale();
    scales.scale = task.result_quantization.scale();
  } else if (task.is_sum) {
    scales.left_scale = static_cast<float>(left / result);
    scales.right_scale = static_cast<float>(right / result);
  } else {
    scales.scale = static_cast<float>(left * right / result);
  }
  return scales;
}

PairLoop loop_of(const PairTask& task) {
  const PairOp op = task.is_exact ? (task.is_sum ? PairOp::ExactAdd : PairOp::ExactMul)
                                  : (task.is_sum ? PairOp::Add : PairOp::Mul);
  return find_pair_loop(op, task.result_quantization.data_type);
}

// The dimensions of an operand with the rank of the result.
BroadcastOperand operand_of(const Value& value, size_t rank) {
  std::vector<int64_t> dims = value.type().dims;
  dims.insert(dims.begin(), rank - dims.size(), 1);
  return {.dims = std::move(dims), .is_row_major = true};
}

// What a kernel keeps of a task.
struct PairPlan {
  PairScales scales;
  PairLoop loop = nullptr;
  std::vector<BroadcastOperand> operands;
  size_t right_port = 1;  // 0 if both operands are one value
  bool is_elementwise = false;
};

PairPlan plan_of(const PairTask& task) {
  const size_t rank = task.result.type().dims.size();
  return {.scales = scales_of(task),
          .loop = loop_of(task),
          .operands = {operand_of(task.left, rank), operand_of(task.right, rank)},
          .right_port = task.left.id() == task.right.id() ? size_t{0} : size_t{1},
          .is_elementwise = task.left.type().dims == task.right.type().dims};
}

class PairKernel : public plugin::Kernel {
 public:
  PairKernel(PairPlan plan, const std::string& layout)
      : plan_(std::move(plan)), order_(storage_order(layout)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const DenseStorage storage = dense_storage(order_.block, outputs[0].sizes());
    if (storage.elements == 0) return;
    const auto* const left = inputs[0].as<const uint8_t>();
    const auto* const right = inputs[plan_.right_port].as<const uint8_t>();
    auto* const to = outputs[0].as<uint8_t>();
    if (plan_.is_elementwise) {
      context.parallel_for(storage.elements, kGrain, [&](int64_t begin, int64_t end) {
        plan_.loop({left + begin, right + begin, to + begin, end - begin}, plan_.scales);
      });
    } else {
      run_rows(context, outputs[0].sizes(), left, right, to);
    }
    if (!storage.padding.is_empty()) clear_padding(context, storage.padding, to, 1);
  }

 private:
  void run_rows(RunContext& context, std::span<const int64_t> dims, const uint8_t* left,
                const uint8_t* right, uint8_t* to) const {
    const LoopAxes axes = loop_axes(StorageOrder(), dims, plan_.operands);
    int64_t rows = 1;
    for (size_t axis = 1; axis < axes.count; ++axis) rows *= axes.sizes[axis];
    const int64_t width = axes.width();
    const int64_t grain = std::max<int64_t>(1, kGrain / width);
    context.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t left_offset = 0;
        int64_t right_offset = 0;
        int64_t rest = row;
        for (size_t axis = 1; axis < axes.count; rest /= axes.sizes[axis++]) {
          const int64_t index = rest % axes.sizes[axis];
          left_offset += index * axes.strides[0][axis];
          right_offset += index * axes.strides[1][axis];
        }
        plan_.loop({left + left_offset, right + right_offset, to + row * width, width,
                    axes.strides[0][0] == 0 && width > 1, axes.strides[1][0] == 0 && width > 1},
                   plan_.scales);
      }
    });
  }

  PairPlan plan_;
  StorageOrder order_;
};

void offer_pair(ProposeContext& context, const PairTask& task) {
  for (const Value& value : {task.left, task.right, task.result}) {
    if (!value.type().is_known()) refuse("takes tensors of known shape only");
    if (value.type().data_type != task.result_quantization.data_type) {
      refuse("takes two tensors of one type of bytes only");
    }
  }
  const bool is_elementwise = task.left.type().dims == task.right.type().dims;
  const std::string layout = is_elementwise ? TESSERA_LAYOUT_ANY_DENSE : TESSERA_LAYOUT_DEFAULT;
  Candidate candidate;
  candidate.nodes = task.nodes;
  candidate.flags = flags_of_region(task.nodes);
  candidate.algorithm = "byte_pairs";
  candidate.inputs.push_back({.value = task.left.id(), .layout = layout});
  if (task.right.id() != task.left.id()) {
    candidate.inputs.push_back({.value = task.right.id(), .layout = layout});
  }
  plugin::OutputPort output = {.value = task.result.id(), .layout = layout};
  for (size_t port = 0; port < candidate.inputs.size(); ++port) {
    const Value& value = port == 0 ? task.left : task.right;
    if (value.is_constant() || value.type().dims != task.result.type().dims) continue;
    output.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    output.in_place_input = static_cast<int32_t>(port);
  }
  candidate.outputs.push_back(output);
  candidate.built_for.emplace();
  const auto elements = static_cast<double>(task.result.type().elements());
  const double bytes = elements + static_cast<double>(task.left.type().elements()) +
                       static_cast<double>(task.right.type().elements());
  candidate.optimistic_seconds = context.optimistic_seconds(4 * elements, bytes);
  candidate.build = [plan = plan_of(task)](const plugin::BuildOptions& options) {
    const bool is_dense = !options.dense_layout.empty();
    return std::make_unique<PairKernel>(plan,
                                        is_dense ? options.dense_layout : TESSERA_LAYOUT_DEFAULT);
  };
  accept_unaligned(candidate);
  context.add(std::move(candidate));
}

void offer_pair_region(ProposeContext& context, const Node& node) {
  const QuantizedRegion region = region_around(context.graph(), node);
  if (!region.output.is_quantized() || !region.output.quantization.is_per_tensor()) return;
  const int32_t type = region.output.quantization.data_type;
  if (!is_byte_type(type) || region.inputs.size() != 2 || !region.has_inputs_of(type, 2)) return;
  PairTask task = {.nodes = region.nodes(),
                   .left = region.inputs[0].integers,
                   .right = region.inputs[1].integers,
                   .result = region.output.value,
                   .left_quantization = region.inputs[0].quantization,
                   .right_quantization = region.inputs[1].quantization,
                   .result_quantization = region.output.quantization,
                   .limits = region.limits(),
                   .is_sum = node.op() != "Mul",
                   .is_exact = true};
  if (context.is_wanted(task.nodes)) offer_pair(context, task);
}

// The inputs: each operand with its scale and zero point, then those of the result.
void offer_linear_pair(ProposeContext& context, const Node& node) {
  const int32_t type = node.output(0).type().data_type;
  offer_pair(context, {.nodes = {node.id()},
                       .left = node.input(0),
                       .right = node.input(3),
                       .result = node.output(0),
                       .left_quantization = linear_quantization(node, type, 1, 2),
                       .right_quantization = linear_quantization(node, type, 4, 5),
                       .result_quantization = linear_quantization(node, type, 6, 7),
                       .limits = integer_limits(type),
                       .is_sum = node.op() == "QLinearAdd"});
}

}  // namespace

void propose_quantized_pairs(ProposeContext& context) {
  context.for_each({"Add", "Sum", "Mul"},
                   [&](const Node& node) { offer_pair_region(context, node); });
  for_each_of_microsoft(context, {"QLinearAdd", "QLinearMul"},
                        [&](const Node& node) { offer_linear_pair(context, node); });
}

}  // namespace tessera::native
