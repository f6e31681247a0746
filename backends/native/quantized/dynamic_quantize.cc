// DynamicQuantizeLinear: bytes whose scale and zero point are those of the range of the numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "elementwise/element_loops.h"
#include "quantized/byte_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Indices of the outputs.
enum DynamicOutput : size_t { kBytesOutput, kScaleOutput, kZeroOutput };

// The number of parts of which each has a range: more than threads, so that all have work.
constexpr int64_t kRangeParts = 128;

class DynamicQuantizeKernel : public plugin::Kernel {
 public:
  // `present`: the outputs that the node has, one port each.
  explicit DynamicQuantizeKernel(std::vector<size_t> present) : present_(std::move(present)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const auto* const from = inputs[0].as<const float>();
    const int64_t count = inputs[0].elements();
    // The range contains 0, so that 0 is exact.
    const NumberRange range = range_of(context, from, count);
    constexpr float kSteps = 255;
    // Zeros alone have any scale.
    const float scale = range.lowest == range.highest ? 1 : (range.highest - range.lowest) / kSteps;
    const float steps = -range.lowest / scale;
    const float limited = steps > 0 ? std::min(steps, kSteps) : 0;
    const auto zero = static_cast<uint8_t>(std::nearbyint(limited));
    for (size_t port = 0; port < present_.size(); ++port) {
      if (present_[port] == kScaleOutput) outputs[port].as<float>()[0] = scale;
      if (present_[port] == kZeroOutput) outputs[port].as<uint8_t>()[0] = zero;
      if (present_[port] != kBytesOutput) continue;
      auto* const to = outputs[port].as<uint8_t>();
      context.parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
        LoopCall call;
        call.from[0] = from + begin;
        call.from[1] = &scale;
        call.from[2] = &zero;
        call.to = to + begin;
        call.count = end - begin;
        quantize_(call);
      });
    }
  }

 private:
  NumberRange range_of(RunContext& context, const float* from, int64_t count) const {
    std::array<NumberRange, kRangeParts> ranges;
    context.parallel_for(kRangeParts, kRangeParts * kGrain / (count + 1) + 1,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t part = begin; part < end; ++part) {
                             const int64_t first = count * part / kRangeParts;
                             const int64_t last = count * (part + 1) / kRangeParts;
                             ranges[static_cast<size_t>(part)] = range_(from + first, last - first);
                           }
                         });
    NumberRange all;
    for (const NumberRange& range : ranges) {
      all.lowest = std::min(all.lowest, range.lowest);
      all.highest = std::max(all.highest, range.highest);
    }
    return all;
  }

  std::vector<size_t> present_;
  RangeLoop range_ = find_range_loop();
  // One scale and one zero point for all elements.
  Loop quantize_ = find_quantize_loops(TESSERA_UINT8).forms[3];
};

void offer_dynamic(ProposeContext& context, const Node& node) {
  const Value input = node.input(0);
  if (!input.type().is_known()) refuse("takes tensors of known shape only");
  Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "two_passes";
  candidate.inputs.push_back({.value = input.id(), .alignment_bytes = sizeof(float)});
  std::vector<size_t> present;
  for (size_t index = 0; index < node.output_count(); ++index) {
    if (!node.output(index).is_present()) continue;
    candidate.outputs.push_back({.value = node.output(index).id()});
    present.push_back(index);
  }
  candidate.built_for.emplace();
  const auto elements = static_cast<double>(input.type().elements());
  candidate.optimistic_seconds = context.optimistic_seconds(2 * elements, 9 * elements);
  candidate.build = [present](const plugin::BuildOptions&) {
    return std::make_unique<DynamicQuantizeKernel>(present);
  };
  context.add(std::move(candidate));
}

}  // namespace

void propose_dynamic_quantizations(ProposeContext& context) {
  context.for_each({"DynamicQuantizeLinear"},
                   [&](const Node& node) { offer_dynamic(context, node); });
}

}  // namespace tessera::native
