#include "expression_levels.h"

#include <algorithm>

namespace tessera::jit {

using plugin::Failure;
using plugin::FusedGroup;
using plugin::Instruction;

namespace {

constexpr unsigned bit(Loop loop) { return 1U << loop; }

unsigned reduced_bits(const KernelShape& shape) {
  return (shape.has_reduced_outer ? bit(kReducedOuter) : 0) |
         (shape.has_reduced_inner ? bit(kReducedInner) : 0) |
         (shape.is_lane_reduced ? bit(kLane) : 0);
}

void require(bool is_kept, const char* rule) {
  if (!is_kept)
    throw Failure(TESSERA_INTERNAL, std::string("a fused group breaks a rule: ") + rule);
}

// For each instruction: the loops along which it varies, as bits.
std::vector<unsigned> varying_loops(const FusedGroup& group, const KernelShape& shape) {
  const unsigned reduced = reduced_bits(shape);
  const unsigned innermost_kept = bit(shape.is_lane_reduced ? kRow : kLane);
  std::vector<unsigned> loops;
  for (const Instruction& instruction : group.instructions) {
    unsigned bits = 0;
    if (instruction.operation == TESSERA_EXPRESSION_OPERAND) {
      const auto operand = static_cast<size_t>(instruction.index);
      require(operand < group.operands.size(), "operands exist");
      for (size_t loop = 0; loop < kLoopCount; ++loop) {
        if (shape.steps[operand][loop] != Step::Zero) bits |= 1U << loop;
      }
    }
    for (int index = 0; index < plugin::argument_count(instruction.operation); ++index) {
      const auto argument = static_cast<size_t>(instruction.arguments[index]);
      require(argument < loops.size(), "arguments are earlier instructions");
      bits |= loops[argument];
    }
    if (plugin::is_reduction(instruction) && reduced != 0)
      bits = (bits & ~reduced) | innermost_kept;
    loops.push_back(bits);
  }
  return loops;
}

void find_splats(const FusedGroup& group, const KernelShape& shape, ExpressionLevels& levels) {
  levels.needs_splat.assign(group.instructions.size(), false);
  const auto need = [&](int32_t id) {
    const auto at = static_cast<size_t>(id);
    if (!levels.is_vector[at]) levels.needs_splat[at] = true;
  };
  for (size_t id = 0; id < group.instructions.size(); ++id) {
    const Instruction& instruction = group.instructions[id];
    const bool accumulates = plugin::is_reduction(instruction) && shape.has_reduced();
    if (!levels.is_vector[id] && !accumulates) continue;
    for (int index = 0; index < plugin::argument_count(instruction.operation); ++index) {
      need(instruction.arguments[index]);
    }
  }
  for (size_t index = 0; index < group.results.size(); ++index) {
    if (shape.steps[group.operands.size() + index][kLane] != Step::Zero) {
      need(group.results[index].instruction);
    }
  }
}

}  // namespace

int ExpressionLevels::position_of(Loop loop) const {
  int count = 0;
  for (const auto* loops : {&kept_loops, &reduced_loops}) {
    for (const Loop each : *loops) {
      if (each == loop) return count;
      ++count;
    }
  }
  return -1;
}

bool is_written_everywhere(const KernelShape& shape, size_t access) {
  const auto& steps = shape.steps[access];
  return steps[kReducedOuter] != Step::Zero || steps[kReducedInner] != Step::Zero ||
         (shape.is_lane_reduced && steps[kLane] != Step::Zero);
}

bool is_used_later(const FusedGroup& group, const ExpressionLevels& levels, size_t id) {
  for (const plugin::FusedAccess& result : group.results) {
    if (static_cast<size_t>(result.instruction) == id) return true;
  }
  for (size_t each = id + 1; each < group.instructions.size(); ++each) {
    if (!levels.is_reduced[each] && levels.depth[each] == levels.depth[id]) continue;
    const Instruction& instruction = group.instructions[each];
    for (int index = 0; index < plugin::argument_count(instruction.operation); ++index) {
      if (static_cast<size_t>(instruction.arguments[index]) == id) return true;
    }
  }
  return false;
}

ExpressionLevels expression_levels(const FusedGroup& group, const KernelShape& shape) {
  ExpressionLevels levels;
  levels.kept_loops.push_back(kRow);
  (shape.is_lane_reduced ? levels.reduced_loops : levels.kept_loops).push_back(kLane);
  if (shape.has_reduced_inner) levels.reduced_loops.push_back(kReducedInner);
  if (shape.has_reduced_outer)
    levels.reduced_loops.insert(levels.reduced_loops.begin(), kReducedOuter);
  const unsigned reduced = reduced_bits(shape);
  for (const unsigned bits : varying_loops(group, shape)) {
    int position = -1;
    for (const Loop loop : {kRow, kLane, kReducedOuter, kReducedInner}) {
      if ((bits & bit(loop)) != 0) position = std::max(position, levels.position_of(loop));
    }
    levels.position.push_back(position);
    levels.is_vector.push_back((bits & bit(kLane)) != 0);
    levels.is_reduced.push_back((bits & reduced) != 0);
  }
  levels.depth = plugin::reduction_depths(group);
  if (!shape.has_reduced()) levels.depth.assign(group.instructions.size(), 0);
  for (const int depth : levels.depth) levels.passes = std::max(levels.passes, depth);
  for (size_t index = 0; index < group.results.size(); ++index) {
    const auto id = static_cast<size_t>(group.results[index].instruction);
    require(id < group.instructions.size(), "results are instructions");
    require(group.instructions[id].data_type == group.results[index].data_type,
            "results have the types of their instructions");
    require(is_written_everywhere(shape, group.operands.size() + index) || !levels.is_reduced[id],
            "results that are written once do not vary along reduced axes");
  }
  find_splats(group, shape, levels);
  return levels;
}

}  // namespace tessera::jit
