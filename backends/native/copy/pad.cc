// Pad, in each layout with whole blocks of channels. The pads are constants, or read in each run.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/indices.h"
#include "copy/copy_offer.h"
#include "copy/table_copy.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

constexpr int32_t kFirstInputVersion = 11;

// How many elements are added before those of an axis; negative: removed. The sizes of the output
// say how many are added behind them.
struct PadAxis {
  bool is_padded = false;  // perhaps; else the axis stays as it is
  int64_t begin = 0;
  int64_t position = -1;  // of `begin` in the input with the pads, if that is read in the run
};

enum class PadMode : uint8_t { Constant, Edge, Reflect, Wrap };

// The element with which the padding is filled.
struct Filling {
  std::array<char, kMaxElementBytes> element = {};  // the bits of zero of any type
  bool is_input = false;                            // known only in the run
  bool is_zero() const {
    return !is_input && std::all_of(element.begin(), element.end(), [](char c) { return c == 0; });
  }
};

// What a Pad does with tensors of any sizes, in one layout.
struct PadProblem {
  PadMode mode = PadMode::Constant;
  StorageOrder order;
  std::vector<PadAxis> axes;  // of the data
  int64_t element_bytes = 1;
  Filling filling;
  size_t fill_port = 0;     // if filling.is_input
  bool reads_pads = false;  // from pads_port
  size_t pads_port = 0;
};

PadMode mode_of(const Node& node) {
  const std::string name = node.attributes().get_string("mode", "constant");
  if (name == "constant") return PadMode::Constant;
  if (name == "edge") return PadMode::Edge;
  return name == "wrap" ? PadMode::Wrap : PadMode::Reflect;
}

// The axes to which the pads apply, in their order; nullopt if they are known only in the run.
std::optional<std::vector<size_t>> padded_axes(const Node& node, size_t rank) {
  std::vector<size_t> result;
  if (node.version() >= kFirstInputVersion && node.input(3).is_present()) {
    const auto axes = plugin::constant_integers(node.input(3));
    if (!axes) return std::nullopt;
    for (const int64_t axis : *axes) result.push_back(plugin::normalized_axis(axis, rank));
  }
  if (!result.empty()) return result;
  for (size_t axis = 0; axis < rank; ++axis) result.push_back(axis);
  return result;
}

// Sets the axes, and where the pads are if they are known only in the run; false if the axes are
// known only then.
bool read_pads(const Node& node, PadProblem& problem) {
  const size_t rank = node.input(0).type().dims.size();
  const auto axes = padded_axes(node, rank);
  if (!axes) return false;
  problem.axes.resize(rank);
  const std::optional<std::vector<int64_t>> pads =
      node.version() < kFirstInputVersion ? std::optional(node.attributes().get_ints("pads"))
                                          : plugin::constant_integers(node.input(1));
  problem.reads_pads = !pads;
  const size_t count = pads ? pads->size() / 2 : axes->size();
  for (size_t index = 0; index < count; ++index) {
    PadAxis& axis = problem.axes[(*axes)[index]];
    if (pads) {
      axis.begin = (*pads)[index];
      axis.is_padded = axis.begin != 0 || (*pads)[index + count] != 0;
    } else {
      axis = {.is_padded = true, .position = static_cast<int64_t>(index)};
    }
  }
  return true;
}

int64_t remainder(int64_t value, int64_t period) {
  const int64_t rest = value % period;
  return rest < 0 ? rest + period : rest;
}

// Fills the table of an axis of `dim` elements, before which `begin` are added. Negative pads are
// applied first. The remaining elements, `kept` from `first` on, are mirrored or repeated. Throws
// Failure (TESSERA_INVALID_ARGUMENT) if there are none.
void fill_table(PadMode mode, int64_t dim, int64_t begin, std::span<int64_t> table) {
  const int64_t end = static_cast<int64_t>(table.size()) - dim - begin;
  const int64_t first = std::max<int64_t>(0, -begin);
  const int64_t kept = dim + std::min<int64_t>(0, begin) + std::min<int64_t>(0, end);
  if (mode != PadMode::Constant && kept <= 0 && !table.empty()) {
    throw plugin::Failure(TESSERA_INVALID_ARGUMENT,
                          "expected elements to repeat, found dimension " + std::to_string(dim) +
                              " with pads " + std::to_string(begin) + " and " +
                              std::to_string(end));
  }
  for (size_t position = 0; position < table.size(); ++position) {
    const int64_t source = static_cast<int64_t>(position) - begin;
    if (mode == PadMode::Constant) {
      table[position] = source >= 0 && source < dim ? source : kFill;
    } else if (mode == PadMode::Edge) {
      table[position] = std::clamp(source, first, first + kept - 1);
    } else if (mode == PadMode::Wrap) {
      table[position] = first + remainder(source - first, kept);
    } else if (kept == 1) {
      table[position] = first;
    } else {
      const int64_t phase = remainder(source - first, 2 * (kept - 1));
      table[position] = first + std::min(phase, 2 * (kept - 1) - phase);
    }
  }
}

// The bytes of the tables for an output of this size, and of their plan.
int64_t memory_for(const PadProblem& problem, const Buffer& output) {
  int64_t longest = 0;
  int64_t entries = 0;
  for (size_t axis = 0; axis < problem.axes.size(); ++axis) {
    if (!problem.axes[axis].is_padded) continue;
    longest = std::max(longest, output.dims[axis]);
    entries += output.dims[axis];
  }
  return entries * static_cast<int64_t>(sizeof(int64_t)) + TablePlan::memory_bytes(longest);
}

using TableAxes = std::array<TableAxis, StorageAxes::kMaxAxes>;

// The copy for the sizes of these buffers. `axes` and `memory`, of memory_for(), become part of it.
TablePlan plan_pad(const PadProblem& problem, std::span<const Buffer> inputs, const Buffer& output,
                   TableAxes& axes, void* memory) {
  const StorageAxes source = storage_axes(problem.order, inputs[0]);
  int64_t* table = static_cast<int64_t*>(memory);
  for (size_t axis = 0; axis < source.count; ++axis) {
    axes[axis] = {.size = source[axis].dim, .stride = source[axis].stride};
    if (axis >= problem.axes.size() || !problem.axes[axis].is_padded) continue;
    const PadAxis& pad = problem.axes[axis];
    const int64_t size = output.dims[axis];
    const int64_t begin =
        pad.position < 0 ? pad.begin : Indices(inputs[problem.pads_port])[pad.position];
    fill_table(problem.mode, inputs[0].dims[axis], begin, {table, static_cast<size_t>(size)});
    axes[axis].table = table;
    axes[axis].size = size;
    table += size;
  }
  if (problem.order.has_channels_last) {
    std::rotate(axes.begin() + 1, axes.begin() + 2,
                axes.begin() + static_cast<std::ptrdiff_t>(source.count));
  }
  return {std::span(axes).first(source.count), problem.element_bytes, table};
}

class PadKernel : public plugin::Kernel {
 public:
  PadKernel(PadProblem problem, const std::vector<plugin::Type>& inputs,
            const std::vector<plugin::Type>& outputs)
      : problem_(std::move(problem)) {
    const std::vector<Buffer> from = buffers_of(inputs);
    const std::vector<Buffer> to = buffers_of(outputs);
    const int64_t bytes = memory_for(problem_, to[0]);
    if (problem_.reads_pads) workspace_bytes_ = bytes;
    if (problem_.reads_pads || to[0].elements() == 0) return;
    sizes_ = ProposedSizes(std::span(from).first(1), to);
    memory_.resize(static_cast<size_t>(bytes));
    plan_ = plan_pad(problem_, from, to[0], axes_, memory_.data());
  }

  // The plan points into this kernel.
  PadKernel(const PadKernel&) = delete;
  PadKernel& operator=(const PadKernel&) = delete;

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    if (outputs[0].elements() == 0) return;
    const Filling& filling = problem_.filling;
    const void* fill = filling.is_input ? inputs[problem_.fill_port].data : filling.element.data();
    if (!problem_.reads_pads && sizes_.are_those_of(inputs.first(1), outputs)) {
      return plan_.run(context, inputs[0].data, outputs[0].data, fill);
    }
    TableAxes axes;
    plan_pad(problem_, inputs, outputs[0], axes, context.workspace())
        .run(context, inputs[0].data, outputs[0].data, fill);
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

 private:
  PadProblem problem_;
  int64_t workspace_bytes_ = 0;  // for the proposed sizes
  ProposedSizes sizes_;
  // For these sizes, unless the pads are read in the run.
  std::vector<std::byte> memory_;
  TableAxes axes_;
  TablePlan plan_;
};

Filling filling_of(const Node& node) {
  Filling filling;
  const int32_t type = node.input(0).type().data_type;
  const auto bytes = static_cast<size_t>(plugin::element_bytes(type));
  if (node.version() < kFirstInputVersion) {
    const float value = node.attributes().get_float("value");
    if (value == 0) return filling;
    if (type != TESSERA_FLOAT32) {
      throw plugin::Failure(TESSERA_UNSUPPORTED, "pads with values other than 0 in float32 only");
    }
    std::memcpy(filling.element.data(), &value, sizeof(value));
  } else if (node.input(2).is_present()) {
    const void* value = node.input(2).constant();
    filling.is_input = value == nullptr;
    if (value != nullptr) std::memcpy(filling.element.data(), value, bytes);
  }
  return filling;
}

void offer_in(ProposeContext& context, const Node& node, const std::string& layout,
              PadProblem problem) {
  problem.order = storage_order(layout);
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "tables";
  candidate.inputs = {{.value = node.input(0).id(), .layout = layout}};
  candidate.built_for.emplace();
  // One value may be read as data, pads and filling.
  if (problem.filling.is_input) {
    problem.fill_port = static_cast<size_t>(plugin::input_port(candidate, node.input(2)));
  }
  if (problem.reads_pads) {
    problem.pads_port = static_cast<size_t>(plugin::input_port(candidate, node.input(1)));
    candidate.built_for->push_back({static_cast<int32_t>(problem.pads_port), 0});
  }
  // Other channels than these may leave lanes to be cleared.
  const bool fills_lanes = problem.mode == PadMode::Constant && !problem.filling.is_zero();
  if (problem.order.block > 1 && fills_lanes) candidate.built_for->push_back({0, 1});
  candidate.outputs = {{.value = node.output(0).id(), .layout = layout}};
  candidate.optimistic_seconds =
      context.optimistic_seconds(0, 2 * static_cast<double>(node.output(0).type().dense_bytes()));
  std::vector<plugin::Type> inputs;
  for (const plugin::InputPort& port : candidate.inputs) {
    inputs.push_back(context.graph().value(port.value).type());
  }
  const std::vector<plugin::Type> outputs = {node.output(0).type()};
  if (problem.reads_pads) {
    candidate.workspace_bytes = memory_for(problem, buffers_of(outputs)[0]);
  }
  candidate.workspace_for = [problem](std::span<const Buffer>, std::span<const Buffer> to) {
    return memory_for(problem, to[0]);
  };
  candidate.build = [problem, inputs, outputs](const plugin::BuildOptions&) {
    return std::make_unique<PadKernel>(problem, inputs, outputs);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

void offer_pad(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type type = node.input(0).type();
  PadProblem problem = {.mode = mode_of(node),
                        .element_bytes = plugin::element_bytes(type.data_type),
                        .filling = filling_of(node)};
  if (!read_pads(node, problem)) return context.refuse(node.id(), "takes axes as constants");
  if (type.dims.size() >= StorageAxes::kMaxAxes) {
    return context.refuse(node.id(), "takes tensors of fewer axes only");
  }
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(type)) break;
    const int64_t block = storage_order(layout).block;
    if (block > 1) {
      // The padding lanes of blocks must stay zero.
      const bool is_clean = problem.mode != PadMode::Constant || problem.filling.is_zero() ||
                            type.dims[1] % block == 0;
      if (problem.axes[1].is_padded || !is_clean) continue;
    }
    offer_in(context, node, layout, problem);
  }
}

}  // namespace

void propose_pads(ProposeContext& context) {
  context.for_each({"Pad"}, [&](const Node& node) { offer_pad(context, node); });
}

}  // namespace tessera::native
