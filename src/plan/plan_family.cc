#include "plan/plan_family.h"

#include <algorithm>

#include "base/containers/at.h"
#include "base/errors/check.h"
#include "plan/arena_blocks.h"
#include "plan/shared_memory.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

// Pairs of blocks of the arena that are live at the same time: some 30 MB, and a millisecond for
// each new shape.
constexpr size_t kMaxPairs = 4'000'000;

// Its sizes are known only in the run, or it is an input that nothing reads, which may have any
// type.
bool is_unknown(const PlanBuffer& buffer) { return !buffer.type; }

// -1: known only in the run.
std::vector<int64_t> planned_dims(const Graph& graph, ValueId value) {
  std::vector<int64_t> dims;
  const std::optional<Shape>& shape = graph[value].type.shape;
  if (!shape) return dims;
  for (const Dim& dim : *shape) dims.push_back(dim.is_known() ? dim.value() : -1);
  return dims;
}

// Whether two sizes are both 0, both 1, or both larger.
bool is_same_class(int64_t left, int64_t right) {
  return std::min<int64_t>(left, 2) == std::min<int64_t>(right, 2);
}

int64_t aligned(int64_t bytes) {
  return (bytes + TESSERA_ALIGNMENT_BYTES - 1) / TESSERA_ALIGNMENT_BYTES * TESSERA_ALIGNMENT_BYTES;
}

bool is_whole(const StoragePart& part) { return part.offset_bytes == 0 && part.strides.empty(); }

// -1 if it is not known.
int64_t elements_of(const Graph& graph, ValueId value) {
  const Type& type = graph[value].type;
  return type.is_known_tensor() ? element_count(dims_from(*type.shape)) : -1;
}

// Why a finished plan cannot have other sizes; "" if it can.
std::string explain_fixed_plan(const Graph& graph, const Offers& offers,
                               const ExecutionPlan& plan) {
  if (uses_devices(plan)) return "a device does some of its steps";
  for (const ExecutionStep& step : plan.steps) {
    if (step.candidate < 0) continue;
    std::string reason = explain_fixed_sizes(offers.candidates[at(step.candidate)], graph);
    if (!reason.empty()) return reason;
  }
  for (size_t index = 0; index < plan.buffers.size(); ++index) {
    const PlanBuffer& buffer = plan.buffers[index];
    const PlanBuffer& owner = plan.buffers[at(owner_of(plan, static_cast<int>(index)))];
    if (is_unknown(buffer) || is_unknown(owner)) continue;
    const bool is_all_of_it = buffer.bytes == owner.bytes && buffer.offset == owner.offset;
    if (!buffer.strides.empty() || !is_all_of_it) return "a value is part of another one";
  }
  return "";
}

}  // namespace

std::string explain_fixed_sizes(const Candidate& candidate, const Graph& graph,
                                const VaryingDims& varying) {
  if (candidate.device != kHostDevice) return "it runs on a device";
  for (const CandidateOutput& port : candidate.outputs) {
    if (!is_whole(port.part)) return "its outputs are parts, whose positions depend on sizes";
  }
  if (candidate.is_joint()) return "its inputs are parts, whose positions depend on sizes";
  if (candidate.is_view()) {
    const int64_t whole = elements_of(graph, candidate.inputs[0].value);
    const bool is_all_of_it = std::ranges::all_of(
        candidate.outputs,
        [&](const CandidateOutput& port) { return elements_of(graph, port.value) == whole; });
    return is_all_of_it ? "" : "its outputs are parts, whose positions depend on sizes";
  }
  if (!candidate.takes_sizes()) return "its kernel is built for all of its dimensions";
  for (const auto& [port, axis] :
       std::span(candidate.abi->built_for, at(candidate.abi->built_for_count))) {
    const ValueId value = candidate.inputs[at(port)].value;
    const bool is_varying = !varying.empty() && at(axis) < varying[at(value.index)].size() &&
                            varying[at(value.index)][at(axis)];
    if (is_varying) return "its kernel is built for a size that varies";
  }
  return "";
}

PlanFamily::PlanFamily(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
                       const ExecutionPlan& plan)
    : graph_(graph),
      offers_(offers),
      layouts_(layouts),
      fixed_(explain_fixed_plan(graph, offers, plan)),
      planned_(graph.values.size()),
      bytes_(plan.buffers.size()),
      workspaces_(plan.steps.size()),
      grown_(plan.steps.size() + 1) {
  if (!fixed_.empty()) return;
  note_buffers(plan);
  for (const ExecutionStep& step : plan.steps) {
    if (step.kind == ExecutionStep::Kind::Kernel)
      note_candidate(offers.candidates[at(step.candidate)]);
  }
  std::ranges::sort(equal_dims_);
  const auto repeated = std::ranges::unique(equal_dims_);
  equal_dims_.erase(repeated.begin(), repeated.end());
  note_blocks(plan);
}

void PlanFamily::note_buffers(const ExecutionPlan& plan) {
  size_t most_dims = 0;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (is_unknown(buffer) && buffer.kind == Kind::Input) continue;
    std::vector<int64_t>& dims = planned_[at(buffer.value.index)];
    if (!dims.empty()) continue;
    dims = is_unknown(buffer) ? planned_dims(graph_, buffer.value) : buffer.type->dims;
    most_dims = std::max(most_dims, dims.size());
    if (!dims.empty()) values_.push_back(buffer.value.index);
  }
  type_.dims.reserve(most_dims);
}

void PlanFamily::note_candidate(const Candidate& candidate) {
  std::vector<std::pair<int64_t, Place>> sizes;
  const auto note = [&](const auto& ports) {
    for (const auto& port : ports) {
      const std::vector<int64_t> dims = planned_dims(graph_, port.value);
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        sizes.emplace_back(dims[axis], Place{port.value.index, static_cast<int32_t>(axis)});
      }
    }
  };
  note(candidate.inputs);
  note(candidate.outputs);
  std::ranges::stable_sort(sizes, {}, [](const auto& entry) { return entry.first; });
  for (size_t index = 1; index < sizes.size(); ++index) {
    const auto& [size, place] = sizes[index];
    const bool is_equal = size > 1 && size == sizes[index - 1].first;
    const auto is_constant = [&](const Place& one) {
      return graph_[ValueId{one.value}].is_constant();
    };
    if (!is_equal || (is_constant(place) && is_constant(sizes[index - 1].second))) continue;
    const Place& other = sizes[index - 1].second;
    if (place != other) equal_dims_.emplace_back(std::min(place, other), std::max(place, other));
  }
  for (const auto& [port, axis] :
       std::span(candidate.abi->built_for, at(candidate.abi->built_for_count))) {
    const ValueId value = candidate.inputs[at(port)].value;
    if (graph_[value].is_constant()) continue;
    fixed_dims_.push_back({{value.index, axis}, planned_dims(graph_, value)[at(axis)]});
  }
  arguments_.resize(
      std::max(arguments_.size(), candidate.inputs.size() + candidate.outputs.size()));
}

// A block may lie on those below it wherever they end, so the planned order of blocks that are live
// at the same time is a plan for all sizes.
void PlanFamily::note_blocks(const ExecutionPlan& plan) {
  std::vector<ArenaBlock> planned = arena_blocks(plan);
  std::erase_if(planned, [](const ArenaBlock& block) { return block.bytes == 0; });
  // A workspace that is needed for other sizes only lies above all that is live beside it.
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const ExecutionStep& step = plan.steps[index];
    const bool may_need_some = step.kind == ExecutionStep::Kind::Kernel &&
                               step.workspace_bytes == 0 &&
                               offers_.candidates[at(step.candidate)].has_workspace_for();
    if (!may_need_some) continue;
    const auto number = static_cast<int>(index);
    planned.push_back({.lower = number, .upper = number + 1, .offset = plan.arena_bytes});
  }
  std::ranges::stable_sort(planned, {}, &ArenaBlock::offset);
  for (size_t index = 0; index < planned.size(); ++index) {
    const ArenaBlock& block = planned[index];
    const size_t first = below_.size();
    for (size_t other = 0; other < index; ++other) {
      const bool meets = planned[other].lower < block.upper && block.lower < planned[other].upper;
      if (meets) below_.push_back(other);
    }
    if (below_.size() > kMaxPairs) {
      fixed_ = "too many values are live at the same time";
      return;
    }
    blocks_.push_back({.buffer = block.buffer,
                       .step = block.lower,
                       .end = block.upper,
                       .first_below = first,
                       .end_below = below_.size()});
  }
}

bool PlanFamily::has_sizes_of_family(ValueDims dims) const {
  const auto size_of = [&](const Place& place) { return dims[at(place.value)][at(place.axis)]; };
  for (const int32_t value : values_) {
    if (!std::ranges::equal(planned_[at(value)], dims[at(value)], is_same_class)) return false;
  }
  return std::ranges::all_of(
             fixed_dims_,
             [&](const FixedDim& fixed) { return size_of(fixed.place) == fixed.size; }) &&
         std::ranges::all_of(equal_dims_, [&](const auto& pair) {
           return size_of(pair.first) == size_of(pair.second);
         });
}

// Finds the bytes of buffers and workspaces. False if values that share memory differ in size.
bool PlanFamily::measure(ValueDims dims, const ExecutionPlan& plan) {
  for (size_t index = 0; index < plan.buffers.size(); ++index) {
    const PlanBuffer& buffer = plan.buffers[index];
    // A constant may be packed. Views of a constant have sizes of their own.
    const bool is_whole_constant = buffer.kind == Kind::Constant && buffer.owner < 0;
    if (is_whole_constant || is_unknown(buffer)) {
      bytes_[index] = buffer.bytes;
      continue;
    }
    type_.element = buffer.type->element;
    type_.dims = dims[at(buffer.value.index)];
    const std::optional<int64_t> bytes = layouts_.storage_bytes(buffer.layout, type_);
    // The limit keeps sums within 64 bits.
    if (!bytes || *bytes > kMaxPluginBytes) return false;
    bytes_[index] = *bytes;
  }
  for (size_t index = 0; index < plan.buffers.size(); ++index) {
    const auto owner = at(owner_of(plan, static_cast<int>(index)));
    if (!is_unknown(plan.buffers[owner]) && bytes_[index] != bytes_[owner]) return false;
  }
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    workspaces_[step] = workspace_of(dims, plan, step);
    if (workspaces_[step] < 0 || workspaces_[step] > kMaxPluginBytes) return false;
  }
  return true;
}

int64_t PlanFamily::workspace_of(ValueDims dims, const ExecutionPlan& plan, size_t index) {
  const ExecutionStep& step = plan.steps[index];
  if (step.kind != ExecutionStep::Kind::Kernel) return step.workspace_bytes;
  const Candidate& candidate = offers_.candidates[at(step.candidate)];
  if (!candidate.has_workspace_for()) return step.workspace_bytes;
  const auto is_unknown = [&](const auto& port) {
    return std::ranges::any_of(dims[at(port.value.index)], [](int64_t size) { return size < 0; });
  };
  if (std::ranges::any_of(candidate.inputs, is_unknown) ||
      std::ranges::any_of(candidate.outputs, is_unknown)) {
    return step.workspace_bytes;
  }
  tessera_buffer* argument = arguments_.data();
  const auto add = [&](ValueId value) {
    const std::vector<int64_t>& sizes = dims[at(value.index)];
    *argument = {};
    argument->data_type = static_cast<int32_t>(graph_[value].type.element);
    argument->rank = static_cast<int32_t>(sizes.size());
    argument->dims = sizes.data();
    ++argument;
  };
  for (const CandidateInput& port : candidate.inputs) add(port.value);
  for (const CandidateOutput& port : candidate.outputs) add(port.value);
  return candidate.abi->workspace_for(candidate.abi->self, arguments_.data(),
                                      arguments_.data() + candidate.inputs.size());
}

void PlanFamily::keep_offsets() {
  for (Block& block : blocks_) {
    block.kept_bytes = block.bytes;
    block.kept_offset = block.offset;
  }
  kept_arena_bytes_ = arena_bytes_;
}

void PlanFamily::place() {
  bool fits_kept = true;
  for (Block& block : blocks_) {
    block.bytes =
        aligned(block.buffer < 0 ? workspaces_[at(block.step)] : bytes_[at(block.buffer)]);
    fits_kept = fits_kept && block.bytes <= block.kept_bytes;
  }
  if (fits_kept) {
    for (Block& block : blocks_) block.offset = block.kept_offset;
    arena_bytes_ = kept_arena_bytes_;
  } else {
    stack();
  }
  sum_live_bytes();
}

// Lays each block on those below it.
void PlanFamily::stack() {
  arena_bytes_ = 0;
  for (Block& block : blocks_) {
    block.offset = 0;
    for (const size_t other :
         std::span(below_).subspan(block.first_below, block.end_below - block.first_below)) {
      block.offset = std::max(block.offset, blocks_[other].offset + blocks_[other].bytes);
    }
    arena_bytes_ = std::max(arena_bytes_, block.offset + block.bytes);
  }
}

void PlanFamily::sum_live_bytes() {
  std::ranges::fill(grown_, 0);
  for (const Block& block : blocks_) {
    grown_[at(block.step)] += block.bytes;
    grown_[at(block.end)] -= block.bytes;
  }
  live_bytes_ = 0;
  int64_t live = 0;
  for (const int64_t grown : grown_) {
    live += grown;
    live_bytes_ = std::max(live_bytes_, live);
  }
}

bool PlanFamily::resize(ValueDims dims, ExecutionPlan& plan) {
  TESSERA_CHECK(fixed_.empty(), "a plan for one set of shapes is not resized");
  if (!has_sizes_of_family(dims) || !measure(dims, plan)) return false;
  place();
  for (size_t index = 0; index < plan.buffers.size(); ++index) {
    PlanBuffer& buffer = plan.buffers[index];
    if (is_unknown(buffer)) continue;
    buffer.type->dims = dims[at(buffer.value.index)];
    buffer.bytes = bytes_[index];
  }
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    plan.steps[step].workspace_bytes = workspaces_[step];
  }
  for (const Block& block : blocks_) {
    (block.buffer < 0 ? plan.steps[at(block.step)].workspace_offset
                      : plan.buffers[at(block.buffer)].offset) = block.offset;
  }
  for (PlanBuffer& buffer : plan.buffers) {
    if (buffer.owner >= 0) buffer.offset = plan.buffers[at(buffer.owner)].offset;
  }
  plan.arena_bytes = arena_bytes_;
  plan.lower_bound_bytes = live_bytes_;
  plan.is_smallest_arena = arena_bytes_ == live_bytes_;
  return true;
}

}  // namespace tessera
