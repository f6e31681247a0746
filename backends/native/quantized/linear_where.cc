// QLinearWhere of com.microsoft: chooses among bytes of two scales, with broadcasting.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "elementwise/broadcast_axes.h"
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

// The operands: condition, elements for true, elements for false.
constexpr size_t kChoiceOperands = 3;

struct ByteChoice {
  std::array<size_t, kChoiceOperands> ports = {};
  std::vector<BroadcastOperand> operands;
  ByteTable yes = {};
  ByteTable no = {};
};

class ByteChoiceKernel : public plugin::Kernel {
 public:
  explicit ByteChoiceKernel(ByteChoice choice) : choice_(std::move(choice)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (outputs[0].elements() == 0) return;
    std::array<const uint8_t*, kChoiceOperands> from = {};
    for (size_t index = 0; index < from.size(); ++index) {
      from[index] = inputs[choice_.ports[index]].as<const uint8_t>();
    }
    auto* const to = outputs[0].as<uint8_t>();
    const LoopAxes axes = loop_axes(StorageOrder(), outputs[0].sizes(), choice_.operands);
    const int64_t width = axes.width();
    const int64_t rows = outputs[0].elements() / width;
    context.parallel_for(rows, kGrain / width + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        std::array<const uint8_t*, kChoiceOperands> at = from;
        int64_t rest = row;
        for (size_t axis = 1; axis < axes.count; rest /= axes.sizes[axis++]) {
          const int64_t index = rest % axes.sizes[axis];
          for (size_t operand = 0; operand < at.size(); ++operand) {
            at[operand] += index * axes.strides[operand][axis];
          }
        }
        choose(axes, at, to + row * width);
      }
    });
  }

 private:
  void choose(const LoopAxes& axes, const std::array<const uint8_t*, kChoiceOperands>& from,
              uint8_t* to) const {
    const int64_t steps[] = {axes.strides[0][0], axes.strides[1][0], axes.strides[2][0]};
    for (int64_t index = 0; index < axes.width(); ++index) {
      // Both are looked up: a choice without a branch is faster unless conditions are regular.
      const uint8_t yes = choice_.yes[from[1][index * steps[1]]];
      const uint8_t no = choice_.no[from[2][index * steps[2]]];
      to[index] = from[0][index * steps[0]] != 0 ? yes : no;
    }
  }

  ByteChoice choice_;
};

// The inputs: the condition, each choice with its scale and zero point, then those of the result.
void offer_where(ProposeContext& context, const Node& node) {
  const Value result = node.output(0);
  if (!result.type().is_known()) refuse("takes tensors of known shape only");
  const int32_t type = result.type().data_type;
  const Quantization to = linear_quantization(node, type, 7, 8);
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "byte_tables";
  ByteChoice choice;
  double bytes = 0;
  for (size_t index = 0; index < kChoiceOperands; ++index) {
    const Value value = node.input(index == 0 ? 0 : 3 * index - 2);
    if (!value.type().is_known()) refuse("takes tensors of known shape only");
    std::vector<int64_t> dims = value.type().dims;
    dims.insert(dims.begin(), result.type().dims.size() - dims.size(), 1);
    choice.operands.push_back({.dims = std::move(dims), .is_row_major = true});
    choice.ports[index] = static_cast<size_t>(plugin::input_port(candidate, value));
    bytes += static_cast<double>(value.type().elements());
  }
  choice.yes = rescaling_table(linear_quantization(node, type, 2, 3), to, false);
  choice.no = rescaling_table(linear_quantization(node, type, 5, 6), to, false);
  candidate.outputs.push_back({.value = result.id()});
  candidate.built_for.emplace();
  const auto elements = static_cast<double>(result.type().elements());
  candidate.optimistic_seconds = context.optimistic_seconds(elements, bytes + elements);
  candidate.build = [choice = std::move(choice)](const plugin::BuildOptions&) {
    return std::make_unique<ByteChoiceKernel>(choice);
  };
  accept_unaligned(candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_linear_wheres(ProposeContext& context) {
  for_each_of_microsoft(context, {"QLinearWhere"},
                        [&](const Node& node) { offer_where(context, node); });
}

}  // namespace tessera::native
