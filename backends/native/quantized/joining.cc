// Concat of quantised bytes with several scales: as a region, and QLinearConcat of com.microsoft.
#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
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

struct JoinedPart {
  size_t port = 0;
  ByteTable table = {};   // to bytes of the result
  bool is_plain = false;  // the table changes nothing
};

struct JoinPlan {
  std::vector<JoinedPart> parts;
  size_t axis = 0;
  bool is_last_in_memory = false;  // the axis, which is that of the channels
};

struct JoinTask {
  std::vector<int32_t> nodes;
  std::vector<std::pair<Value, ByteTable>> parts;
  Value result;
  size_t axis = 0;
};

// Rows are what follows the axis, of all parts after each other.
class JoinKernel : public plugin::Kernel {
 public:
  explicit JoinKernel(JoinPlan plan) : plan_(std::move(plan)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const std::span<const int64_t> dims = outputs[0].sizes();
    if (outputs[0].elements() == 0) return;
    int64_t rows = 1;
    for (size_t axis = 0; axis < plan_.axis; ++axis) rows *= dims[axis];
    if (plan_.is_last_in_memory) rows = outputs[0].elements() / dims[plan_.axis];
    const int64_t width = outputs[0].elements() / rows;
    // Long rows are cut, so that all threads have work.
    const int64_t pieces = std::max<int64_t>(1, width / kGrainBytes);
    const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, width));
    auto* const to = outputs[0].as<uint8_t>();
    context.parallel_for(rows * pieces, grain, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t row = piece / pieces;
        const int64_t part = piece % pieces;
        join_row(inputs, row, rows, width * part / pieces, width * (part + 1) / pieces,
                 to + row * width);
      }
    });
  }

 private:
  // The bytes [begin, end) of a row of the result.
  void join_row(std::span<const Buffer> inputs, int64_t row, int64_t rows, int64_t begin,
                int64_t end, uint8_t* to) const {
    int64_t start = 0;
    for (const JoinedPart& part : plan_.parts) {
      const Buffer& input = inputs[part.port];
      const int64_t width = input.elements() / rows;
      const int64_t first = std::max(begin, start);
      const int64_t count = std::min(end, start + width) - first;
      if (count > 0) {
        const uint8_t* const from = input.as<const uint8_t>() + row * width + first - start;
        if (part.is_plain) {
          std::memcpy(to + first, from, static_cast<size_t>(count));
        } else {
          map_(part.table.data(), from, to + first, count);
        }
      }
      start += width;
    }
  }

  JoinPlan plan_;
  ByteMap map_ = find_byte_map();
};

void offer_join_in(ProposeContext& context, const JoinTask& task, const char* layout) {
  Candidate candidate;
  candidate.nodes = task.nodes;
  candidate.flags = flags_of_region(task.nodes);
  candidate.algorithm = "joined_bytes";
  JoinPlan plan = {.parts = {},
                   .axis = task.axis,
                   .is_last_in_memory = std::string_view(layout) != TESSERA_LAYOUT_DEFAULT};
  for (const auto& [value, table] : task.parts) {
    if (!value.type().is_known()) refuse("takes tensors of known shape only");
    plan.parts.push_back({.port = static_cast<size_t>(plugin::input_port(candidate, value)),
                          .table = table,
                          .is_plain = is_identity(table)});
  }
  for (plugin::InputPort& port : candidate.inputs) port.layout = layout;
  candidate.outputs.push_back({.value = task.result.id(), .layout = layout});
  candidate.built_for.emplace();
  const auto bytes = static_cast<double>(task.result.type().elements());
  candidate.optimistic_seconds = context.optimistic_seconds(bytes, 2 * bytes);
  candidate.build = [plan = std::move(plan)](const plugin::BuildOptions&) {
    return std::make_unique<JoinKernel>(plan);
  };
  accept_unaligned(candidate);
  context.add(std::move(candidate));
}

void offer_join(ProposeContext& context, const JoinTask& task) {
  if (!task.result.type().is_known()) refuse("takes tensors of known shape only");
  offer_join_in(context, task, TESSERA_LAYOUT_DEFAULT);
  const int32_t rank = task.result.type().rank;
  if (task.axis == 1 && rank >= 3 && rank <= 5) offer_join_in(context, task, "nhwc");
}

size_t joined_axis(const Node& node) {
  return plugin::normalized_axis(node.attributes().get_int("axis"),
                                 static_cast<size_t>(node.output(0).type().rank));
}

void offer_concat_region(ProposeContext& context, const Node& node) {
  const QuantizedRegion region = region_around(context.graph(), node);
  const Quantization& to = region.output.quantization;
  const bool is_usable = region.output.is_quantized() && to.is_per_tensor() &&
                         is_byte_type(to.data_type) && !region.output.activation &&
                         region.has_inputs_of(to.data_type, region.inputs.size());
  if (!is_usable || !node.output(0).type().is_known()) return;
  JoinTask task = {.nodes = region.nodes(),
                   .parts = {},
                   .result = region.output.value,
                   .axis = joined_axis(node)};
  for (const QuantizedInput& input : region.inputs) {
    task.parts.emplace_back(input.integers, rescaling_table(input.quantization, to, true));
  }
  if (context.is_wanted(task.nodes)) offer_join(context, task);
}

// The inputs are the scale and zero point of the result, then each part with both of its own.
void offer_linear_concat(ProposeContext& context, const Node& node) {
  const int32_t type = node.output(0).type().data_type;
  if (!node.output(0).type().is_known()) refuse("takes tensors of known shape only");
  const Quantization to = linear_quantization(node, type, 0, 1);
  JoinTask task = {
      .nodes = {node.id()}, .parts = {}, .result = node.output(0), .axis = joined_axis(node)};
  for (size_t part = 2; part + 2 < node.input_count(); part += 3) {
    const Quantization from = linear_quantization(node, type, part + 1, part + 2);
    task.parts.emplace_back(node.input(part), rescaling_table(from, to, false));
  }
  offer_join(context, task);
}

}  // namespace

void propose_quantized_concats(ProposeContext& context) {
  context.for_each({"Concat"}, [&](const Node& node) { offer_concat_region(context, node); });
  for_each_of_microsoft(context, {"QLinearConcat"},
                        [&](const Node& node) { offer_linear_concat(context, node); });
}

}  // namespace tessera::native
