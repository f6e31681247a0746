#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/containers/interval_index.h"
#include "plan/execution_plan.h"

namespace tessera {
namespace {

using Kind = PlanBuffer::Kind;

// Bytes [begin, end) of one memory: of an arena, or of a buffer's own memory.
using Range = std::pair<int64_t, int64_t>;

std::string name_of(int buffer) { return "buffer " + std::to_string(buffer); }

// The bytes of the elements of a buffer with strides, as ascending ranges.
std::vector<Range> strided_ranges(const PlanBuffer& buffer) {
  const std::vector<int64_t>& dims = buffer.type->dims;
  const int64_t element = element_bytes(buffer.type->element);
  std::vector<size_t> order(dims.size());  // longest strides first
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return buffer.strides[left] > buffer.strides[right];
  });
  std::vector<Range> ranges = {{buffer.offset, buffer.offset + element}};
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    std::vector<Range> longer;
    for (int64_t index = 0; index < dims[*axis]; ++index) {
      const int64_t step = index * buffer.strides[*axis] * element;
      for (const Range& range : ranges) {
        if (!longer.empty() && longer.back().second == range.first + step) {
          longer.back().second = range.second + step;
        } else {
          longer.emplace_back(range.first + step, range.second + step);
        }
      }
    }
    ranges = std::move(longer);
  }
  std::sort(ranges.begin(), ranges.end());
  if (ranges.empty()) ranges.emplace_back(buffer.offset, buffer.offset);
  return ranges;
}

// A model of memory: a buffer holds its value from the write until another buffer is written over
// it.
class MemoryModel {
 public:
  explicit MemoryModel(const ExecutionPlan& plan)
      : plan_(plan), is_written_(plan.buffers.size(), false), position_(plan.buffers.size()) {
    std::map<int, std::vector<Range>> hulls;  // by memory: what each buffer spans
    for (size_t index = 0; index < plan.buffers.size(); ++index) {
      const PlanBuffer& buffer = plan.buffers[index];
      const bool has_strides = buffer.type && buffer.strides.size() == buffer.type->dims.size();
      ranges_.push_back(has_strides && !buffer.strides.empty() ? strided_ranges(buffer)
                                                               : plain_range(buffer));
      const int id = memory_of(static_cast<int>(index));
      position_[index] = hulls[id].size();
      hulls[id].emplace_back(ranges_[index].front().first, ranges_[index].back().second);
      memories_[id].buffers.push_back(static_cast<int>(index));
    }
    for (auto& [id, memory] : memories_) memory.written.emplace(hulls.at(id));
    for (size_t index = 0; index < plan.buffers.size(); ++index) {
      const PlanBuffer& buffer = plan.buffers[index];
      const bool is_initialised = buffer.kind == Kind::Input || buffer.kind == Kind::Constant;
      if (is_initialised && buffer.owner < 0) mark_written(static_cast<int>(index));
    }
  }

  bool holds(int buffer) const { return is_written_[at(buffer)]; }
  const std::vector<Range>& ranges(int buffer) const { return ranges_[at(buffer)]; }

  bool is_same_memory(int left, int right) const { return memory_of(left) == memory_of(right); }

  bool overlap(int left, int right) const {
    return is_same_memory(left, right) && overlap(ranges(left), ranges(right));
  }

  bool overlap_arena(int buffer, DeviceId device, Range range) const {
    return memory_of(buffer) == arena_of(device) && overlap(ranges(buffer), {&range, 1});
  }

  void overwrite_arena(DeviceId device, Range range) { overwrite(arena_of(device), {&range, 1}); }

  void write(int buffer) {
    overwrite(memory_of(buffer), ranges(buffer));
    mark_written(buffer);
  }

  // Marks a buffer as written. Inputs, constants and views hold their values without a write of
  // their own.
  void mark_written(int buffer) {
    is_written_[at(buffer)] = true;
    memories_.at(memory_of(buffer)).written->insert(position_[at(buffer)]);
  }

  // The arena, or the buffer that contains `buffer`.
  int memory_of(int buffer) const {
    const PlanBuffer& described = plan_.buffers[at(buffer)];
    if (described.kind == Kind::Arena) return arena_of(described.device);
    return described.owner < 0 ? buffer : described.owner;
  }

  static bool contains(const std::vector<Range>& whole, const std::vector<Range>& part) {
    return std::all_of(part.begin(), part.end(), [&](const Range& range) {
      // The first range that ends after the beginning of this one.
      const auto found =
          std::upper_bound(whole.begin(), whole.end(), range.first,
                           [](int64_t begin, const Range& other) { return begin < other.second; });
      return range.first == range.second ||
             (found != whole.end() && found->first <= range.first && range.second <= found->second);
    });
  }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }

  static std::vector<Range> plain_range(const PlanBuffer& buffer) {
    return {{buffer.offset, buffer.offset + buffer.bytes}};
  }

  void overwrite(int id, std::span<const Range> ranges) {
    const auto memory = memories_.find(id);
    if (memory == memories_.end()) return;
    std::vector<size_t> near;
    memory->second.written->find(ranges.front().first, ranges.back().second, near);
    for (const size_t position : near) {
      const int buffer = memory->second.buffers[position];
      if (!overlap(ranges_[at(buffer)], ranges)) continue;
      is_written_[at(buffer)] = false;
      memory->second.written->erase(position);
    }
  }

  static bool overlap(std::span<const Range> left, std::span<const Range> right) {
    auto one = left.begin();
    auto other = right.begin();
    while (one != left.end() && other != right.end()) {
      const int64_t shared_bytes =
          std::min(one->second, other->second) - std::max(one->first, other->first);
      if (shared_bytes > 0) return true;
      (one->second < other->second ? one : other)++;
    }
    return false;
  }

  static int arena_of(DeviceId device) { return -1 - device.index; }

  // The buffers in one memory, and an index of the written ones by their addresses.
  struct Memory {
    std::vector<int> buffers;
    std::optional<IntervalIndex> written;  // indices into `buffers`
  };

  const ExecutionPlan& plan_;
  std::vector<std::vector<Range>> ranges_;
  std::vector<bool> is_written_;
  std::map<int, Memory> memories_;
  std::vector<size_t> position_;  // by buffer: its index in Memory::buffers
};

class PlanChecker {
 public:
  explicit PlanChecker(const ExecutionPlan& plan) : plan_(plan), memory_(plan) {}

  std::string explain() {
    for (size_t index = 0; index < plan_.buffers.size(); ++index) {
      const std::string wrong = explain_location(static_cast<int>(index));
      if (!wrong.empty()) return name_of(static_cast<int>(index)) + " " + wrong;
    }
    for (size_t index = 0; index < plan_.steps.size(); ++index) {
      const ExecutionStep& step = plan_.steps[index];
      const bool is_view = step.kind == ExecutionStep::Kind::View;
      const std::string wrong = is_view ? explain_view(step) : explain_step(step);
      if (!wrong.empty()) return "step " + std::to_string(index) + " " + wrong;
      apply(step);
    }
    return explain_results();
  }

 private:
  const PlanBuffer& buffer(int index) const { return plan_.buffers[static_cast<size_t>(index)]; }

  int64_t arena_bytes(DeviceId device) const {
    return device == kHostDevice ? plan_.arena_bytes
                                 : plan_.device_arenas[static_cast<size_t>(device.index - 1)].bytes;
  }

  // A kernel and a copy work in the memory of their device; a conversion may have one side
  // elsewhere.
  std::string explain_device(const ExecutionStep& step) const {
    if (step.kind == ExecutionStep::Kind::Convert) return "";
    const auto is_elsewhere = [&](int index) { return buffer(index).device != step.device; };
    const bool is_wrong =
        std::any_of(step.inputs.begin(), step.inputs.end(), is_elsewhere) ||
        std::any_of(step.outputs.begin(), step.outputs.end(),
                    [&](const PlanOutput& output) { return is_elsewhere(output.buffer); });
    return is_wrong ? "uses memory of another device" : "";
  }

  std::string explain_location(int index) const {
    const PlanBuffer& placed = buffer(index);
    if (!placed.strides.empty() &&
        (!placed.type || placed.strides.size() != placed.type->dims.size())) {
      return "has not one stride for each dimension";
    }
    if (placed.owner >= 0) {
      const bool is_there = static_cast<size_t>(placed.owner) < plan_.buffers.size();
      if (!is_there || buffer(placed.owner).owner >= 0 ||
          buffer(placed.owner).kind != placed.kind || buffer(placed.owner).index != placed.index) {
        return "is part of a buffer that cannot contain it";
      }
    }
    if (placed.kind == Kind::Dynamic) {
      return placed.owner >= 0 ? "is part of what has no size yet" : "";
    }
    const bool has_arena = placed.device.index >= 0 &&
                           static_cast<size_t>(placed.device.index) <= plan_.device_arenas.size();
    if (!has_arena) return "is on a device that the plan does not have";
    if (placed.owner >= 0 && buffer(placed.owner).device != placed.device) {
      return "is part of memory of another device";
    }
    const int64_t end = placed.kind == Kind::Arena ? arena_bytes(placed.device)
                        : placed.owner < 0         ? placed.bytes
                                                   : buffer(placed.owner).bytes;
    for (const Range& range : memory_.ranges(index)) {
      if (range.first < 0 || range.second > end) return "lies outside of memory";
    }
    return "";
  }

  std::string explain_reads(const ExecutionStep& step) const {
    for (const int input : step.inputs) {
      if (!memory_.holds(input)) return "reads " + name_of(input) + " unwritten";
    }
    return "";
  }

  std::string explain_step(const ExecutionStep& step) const {
    std::string wrong = explain_reads(step);
    if (wrong.empty()) wrong = explain_device(step);
    for (const PlanOutput& output : step.outputs) {
      if (wrong.empty()) wrong = explain_write(step, output);
    }
    if (wrong.empty()) wrong = explain_outputs(step);
    if (wrong.empty()) wrong = explain_segment(step);
    return wrong.empty() ? explain_workspace(step) : wrong;
  }

  std::string explain_write(const ExecutionStep& step, const PlanOutput& output) const {
    const PlanBuffer& target = buffer(output.buffer);
    const std::string name = name_of(output.buffer);
    if (target.kind == Kind::Input || target.kind == Kind::Constant) {
      return "writes to " + name + ", which is not its own";
    }
    int shared = 0;
    bool is_exact = true;
    for (const int input : step.inputs) {
      if (!memory_.overlap(input, output.buffer)) continue;
      ++shared;
      is_exact = is_exact && memory_.ranges(input) == memory_.ranges(output.buffer);
    }
    const bool may_share =
        output.request == TESSERA_REQUEST_IN_PLACE || output.request == TESSERA_REQUEST_ADD;
    if (shared > (may_share ? 1 : 0) || !is_exact) return "writes " + name + " over what it reads";
    if (output.request == TESSERA_REQUEST_IN_PLACE && shared != 1) {
      return "is to write " + name + " in place, but it shares no input's memory";
    }
    if (output.request == TESSERA_REQUEST_ADD && shared == 0 && !memory_.holds(output.buffer)) {
      return "adds to " + name + ", which holds nothing";
    }
    return "";
  }

  std::string explain_outputs(const ExecutionStep& step) const {
    using Placed = std::tuple<int, int64_t, int>;  // memory, offset, buffer
    std::vector<Placed> placed;
    for (const PlanOutput& output : step.outputs) {
      placed.emplace_back(memory_.memory_of(output.buffer),
                          memory_.ranges(output.buffer).front().first, output.buffer);
    }
    std::sort(placed.begin(), placed.end());
    for (auto one = placed.begin(); one != placed.end(); ++one) {
      const auto& [memory, begin, first] = *one;
      const int64_t end = memory_.ranges(first).back().second;
      for (auto other = one + 1; other != placed.end(); ++other) {
        if (std::get<0>(*other) != memory || std::get<1>(*other) >= end) break;
        if (memory_.overlap(first, std::get<2>(*other))) {
          return "writes two outputs to the same place";
        }
      }
    }
    return "";
  }

  std::string explain_segment(const ExecutionStep& step) const {
    bool has_unknown_sizes = false;
    for (const PlanOutput& output : step.outputs) {
      if (buffer(output.buffer).kind == Kind::Dynamic) has_unknown_sizes = true;
    }
    if (has_unknown_sizes == step.ends_static_segment) return "";
    return has_unknown_sizes ? "does not end the segment whose sizes are known"
                             : "ends a segment, though its sizes are known";
  }

  std::string explain_workspace(const ExecutionStep& step) const {
    const Range workspace = {step.workspace_offset, step.workspace_offset + step.workspace_bytes};
    if (step.workspace_bytes > 0 && workspace.second > arena_bytes(step.device)) {
      return "has a workspace outside of memory";
    }
    if (step.workspace_bytes == 0) return "";
    for (const int input : step.inputs) {
      if (memory_.overlap_arena(input, step.device, workspace))
        return "has a workspace over what it reads";
    }
    for (const PlanOutput& output : step.outputs) {
      if (memory_.overlap_arena(output.buffer, step.device, workspace)) {
        return "has a workspace over what it writes";
      }
    }
    return "";
  }

  std::string explain_view(const ExecutionStep& step) const {
    std::string wrong = explain_reads(step);
    if (!wrong.empty()) return wrong;
    const bool is_joint = step.inputs.size() > 1;
    const size_t parts = is_joint ? step.inputs.size() : step.outputs.size();
    if (step.inputs.empty() || step.parts.size() != parts ||
        (is_joint && step.outputs.size() != 1)) {
      return "is a view whose parts do not belong to its buffers";
    }
    const int whole = is_joint ? step.outputs[0].buffer : step.inputs[0];
    std::vector<Range> pieces;
    for (size_t index = 0; index < step.parts.size(); ++index) {
      const int part = is_joint ? step.inputs[index] : step.outputs[index].buffer;
      const bool is_at_its_place =
          memory_.is_same_memory(part, whole) &&
          buffer(part).offset == buffer(whole).offset + step.parts[index].offset_bytes &&
          buffer(part).strides == step.parts[index].strides && buffer(whole).strides.empty();
      if (!is_at_its_place) return "has " + name_of(part) + " elsewhere than it should lie";
      if (!MemoryModel::contains(memory_.ranges(whole), memory_.ranges(part))) {
        return "has " + name_of(part) + " reach beyond " + name_of(whole);
      }
      const std::vector<Range>& ranges = memory_.ranges(part);
      pieces.insert(pieces.end(), ranges.begin(), ranges.end());
    }
    return is_joint ? explain_gap(pieces, whole) : "";
  }

  std::string explain_gap(std::vector<Range> pieces, int whole) const {
    std::sort(pieces.begin(), pieces.end());
    int64_t end = buffer(whole).offset;
    for (const Range& piece : pieces) {
      if (piece.first != end) return "leaves out part of " + name_of(whole);
      end = piece.second;
    }
    const bool is_complete = end == buffer(whole).offset + buffer(whole).bytes;
    return is_complete ? "" : "leaves out part of " + name_of(whole);
  }

  void apply(const ExecutionStep& step) {
    if (step.kind == ExecutionStep::Kind::View) {
      for (const PlanOutput& output : step.outputs) memory_.mark_written(output.buffer);
      return;
    }
    if (step.workspace_bytes > 0) {
      memory_.overwrite_arena(
          step.device, {step.workspace_offset, step.workspace_offset + step.workspace_bytes});
    }
    for (const PlanOutput& output : step.outputs) memory_.write(output.buffer);
  }

  std::string explain_results() const {
    std::unordered_map<int, int> holders;  // by memory: the result in it
    for (const int result : plan_.results) {
      const std::string name = "result " + name_of(result);
      if (!memory_.holds(result)) return name + " is unwritten";
      const PlanBuffer& given = buffer(result);
      if (given.kind == Kind::Arena) return name + " is in the arena, which is not the caller's";
      if (!given.strides.empty()) return name + " is not dense";
      if (given.kind == Kind::Constant && given.device != kHostDevice) {
        return name + " is memory of a device that other runs read";
      }
      if (given.kind != Kind::Output && given.owner >= 0) return name + " is part of an input";
      const auto [earlier, is_new] = holders.try_emplace(memory_.memory_of(result), result);
      if (!is_new && earlier->second != result) {
        return name + " shares memory with " + name_of(earlier->second);
      }
    }
    return "";
  }

  const ExecutionPlan& plan_;
  MemoryModel memory_;
};

}  // namespace

std::string explain_violation(const ExecutionPlan& plan) { return PlanChecker(plan).explain(); }

}  // namespace tessera
