// Softmax of quantised bytes along the last axis: as a region, and QLinearSoftmax of com.microsoft.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "quantized/byte_kernels.h"
#include "quantized/byte_tables.h"
#include "quantized/region.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

constexpr int32_t kFirstSingleAxis =
    13;  // version of Softmax; before, rows are all axes from one on

struct ByteSoftmaxTask {
  std::vector<int32_t> nodes;
  Value input;
  Value result;
  size_t axis = 0;  // where rows begin
  Quantization from;
  Quantization to;
  IntegerLimits limits;
};

// What a kernel keeps of a task.
struct SoftmaxPlan {
  size_t axis = 0;
  ByteSoftmax softmax = nullptr;
  std::array<float, 256> powers = {};  // by distance from the largest element
  Rescaling rescaling;
};

SoftmaxPlan plan_of_softmax(const ByteSoftmaxTask& task) {
  SoftmaxPlan plan = {.axis = task.axis,
                      .softmax = find_byte_loops(task.to.data_type).softmax,
                      .powers = {},
                      .rescaling = {.factor = 1 / task.to.scale(),
                                    .zero = task.to.zero_point(),
                                    .lowest = task.limits.lowest,
                                    .highest = task.limits.highest}};
  for (size_t distance = 0; distance < plan.powers.size(); ++distance) {
    plan.powers[distance] =
        static_cast<float>(std::exp(-static_cast<double>(distance) * task.from.scale()));
  }
  return plan;
}

class ByteSoftmaxKernel : public plugin::Kernel {
 public:
  explicit ByteSoftmaxKernel(const SoftmaxPlan& plan) : plan_(plan) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const int64_t elements = outputs[0].elements();
    if (elements == 0) return;
    int64_t length = 1;
    for (const int64_t dim : outputs[0].sizes().subspan(plan_.axis)) length *= dim;
    const auto* const from = inputs[0].as<const uint8_t>();
    auto* const to = outputs[0].as<uint8_t>();
    context.parallel_for(elements / length, kGrain / length + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        plan_.softmax(from + row * length, plan_.powers.data(), plan_.rescaling, to + row * length,
                      length);
      }
    });
  }

 private:
  SoftmaxPlan plan_;
};

void offer_softmax(ProposeContext& context, const ByteSoftmaxTask& task) {
  Candidate candidate;
  candidate.nodes = task.nodes;
  candidate.flags = flags_of_region(task.nodes);
  candidate.algorithm = "byte_powers";
  candidate.inputs.push_back({.value = task.input.id()});
  candidate.outputs.push_back({.value = task.result.id()});
  candidate.built_for.emplace();
  const auto elements = static_cast<double>(task.result.type().elements());
  candidate.optimistic_seconds = context.optimistic_seconds(4 * elements, 2 * elements);
  candidate.build = [plan = plan_of_softmax(task)](const plugin::BuildOptions&) {
    return std::make_unique<ByteSoftmaxKernel>(plan);
  };
  accept_unaligned(candidate);
  context.add(std::move(candidate));
}

// The axis at which rows begin. Throws Failure unless rows are contiguous.
size_t row_axis(const Value& value, int64_t axis, bool is_single) {
  if (!value.type().is_known()) refuse("takes tensors of known shape only");
  const std::vector<int64_t> dims = value.type().dims;
  const size_t found = plugin::normalized_axis(axis, std::max<size_t>(1, dims.size()));
  if (dims.empty()) return 0;
  if (is_single && found + 1 != dims.size()) refuse("computes rows along the last axis only");
  return found;
}

void offer_softmax_region(ProposeContext& context, const Node& node) {
  const QuantizedRegion region = region_around(context.graph(), node);
  if (!region.output.is_quantized() || !region.output.quantization.is_per_tensor()) return;
  const int32_t type = region.output.quantization.data_type;
  if (!is_byte_type(type) || !region.has_inputs_of(type, 1)) return;
  const bool is_single = node.version() >= kFirstSingleAxis;
  const int64_t axis = node.attributes().get_int("axis", is_single ? -1 : 1);
  const ByteSoftmaxTask task = {.nodes = region.nodes(),
                                .input = region.inputs[0].integers,
                                .result = region.output.value,
                                .axis = row_axis(node.output(0), axis, is_single),
                                .from = region.inputs[0].quantization,
                                .to = region.output.quantization,
                                .limits = region.limits()};
  if (context.is_wanted(task.nodes)) offer_softmax(context, task);
}

void offer_linear_softmax(ProposeContext& context, const Node& node) {
  const int32_t type = node.output(0).type().data_type;
  const bool is_single = node.attributes().get_int("opset") >= kFirstSingleAxis;
  const int64_t axis = node.attributes().get_int("axis", -1);
  offer_softmax(context, {.nodes = {node.id()},
                          .input = node.input(0),
                          .result = node.output(0),
                          .axis = row_axis(node.output(0), axis, is_single),
                          .from = linear_quantization(node, type, 1, 2),
                          .to = linear_quantization(node, type, 3, 4),
                          .limits = integer_limits(type)});
}

}  // namespace

void propose_byte_softmaxes(ProposeContext& context) {
  context.for_each({"Softmax"}, [&](const Node& node) { offer_softmax_region(context, node); });
  for_each_of_microsoft(context, {"QLinearSoftmax"},
                        [&](const Node& node) { offer_linear_softmax(context, node); });
}

}  // namespace tessera::native
