#include "kept_value.h"

#include "lane_forms.h"

namespace tessera::jit {

using plugin::FusedGroup;
using plugin::Instruction;

namespace {

// The smallest number of instructions that takes longer than a store and a load.
constexpr int kFewestInstructions = 6;

// A result of this type whose rows are consecutive elements.
std::optional<size_t> result_of_type(const FusedGroup& group, const KernelShape& shape,
                                     int32_t data_type) {
  for (size_t index = 0; index < group.results.size(); ++index) {
    const size_t access = group.operands.size() + index;
    if (group.results[index].data_type == data_type && shape.steps[access][kLane] == Step::One) {
      return index;
    }
  }
  return std::nullopt;
}

}  // namespace

void mark_needed(const FusedGroup& group, const ExpressionLevels& levels, size_t id,
                 std::optional<size_t> known, std::vector<bool>& needed) {
  std::vector<size_t> open = {id};
  while (!open.empty()) {
    const size_t each = open.back();
    open.pop_back();
    if (!levels.is_reduced[each] || needed[each]) continue;
    needed[each] = true;
    if (known == each) continue;
    const Instruction& instruction = group.instructions[each];
    for (int index = 0; index < plugin::argument_count(instruction.operation); ++index) {
      open.push_back(static_cast<size_t>(instruction.arguments[index]));
    }
  }
}

std::optional<KeptValue> kept_value(const FusedGroup& group, const KernelShape& shape,
                                    const ExpressionLevels& levels) {
  if (!shape.is_lane_reduced || shape.has_reduced_outer || levels.passes == 0) return std::nullopt;
  const size_t count = group.instructions.size();
  std::vector<bool> in_pass(count, false);
  for (size_t id = 0; id < count; ++id) {
    const Instruction& given = group.instructions[id];
    if (!plugin::is_reduction(given) || levels.depth[id] != levels.passes) continue;
    mark_needed(group, levels, static_cast<size_t>(given.arguments[0]), std::nullopt, in_pass);
  }
  std::vector<bool> in_results(count, false);
  for (size_t index = 0; index < group.results.size(); ++index) {
    if (!is_written_everywhere(shape, group.operands.size() + index)) continue;
    const auto id = static_cast<size_t>(group.results[index].instruction);
    mark_needed(group, levels, id, std::nullopt, in_results);
  }
  std::optional<KeptValue> kept;
  int most = kFewestInstructions - 1;
  for (size_t id = 0; id < count; ++id) {
    if (!in_pass[id] || !in_results[id] || !levels.is_vector[id]) continue;
    const std::optional<size_t> result =
        result_of_type(group, shape, group.instructions[id].data_type);
    if (!result) continue;
    std::vector<bool> needed(count, false);
    mark_needed(group, levels, id, std::nullopt, needed);
    const int instructions = loop_body(group, needed).instructions;
    if (instructions <= most) continue;
    most = instructions;
    kept = {id, *result};
  }
  return kept;
}

}  // namespace tessera::jit
