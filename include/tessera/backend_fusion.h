// Fused groups for plug-ins that compile kernels: what several nodes compute in one pass, as an
// expression, and the loops over its points. tessera/backend.h does not include this file.
// tessera/backend_fusion_abi.h defines the operations.
//
//   for (const FusedGroup& group : find_fused_groups(graph)) {
//     Candidate candidate = fused_candidate(graph, group, "fused");
//     candidate.build = [group](const BuildOptions& options) {
//       return compile(group, loop_nests(group, options.dense_layout));
//     };
//     context.add(std::move(candidate));
//   }
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/backend.h"
#include "tessera/backend_fusion_abi.h"

namespace tessera::plugin {

using Instruction = tessera_instruction;

// How the points of a group's space read an input or write an output; see tessera_fused_access.
struct FusedAccess {
  int32_t port = 0;
  int32_t data_type = TESSERA_FLOAT32;
  bool is_whole = false;
  int32_t instruction = -1;
  int64_t offset = 0;
  std::vector<int64_t> strides;
};

// A copy of a tessera_fused_group, which outlives the graph.
struct FusedGroup {
  std::vector<int32_t> nodes;
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<int64_t> dims;
  uint64_t reduced_axes = 0;
  std::vector<FusedAccess> operands;
  std::vector<FusedAccess> results;
  std::vector<Instruction> instructions;
  std::string text;
  int64_t flops = 0;
  int64_t bytes = 0;

  bool is_reduced(size_t axis) const { return (reduced_axes >> axis & 1) != 0; }
  int64_t points() const {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    return count;
  }
};

inline bool is_reduction(const Instruction& instruction) {
  return instruction.operation >= TESSERA_EXPRESSION_REDUCE_SUM &&
         instruction.operation <= TESSERA_EXPRESSION_REDUCE_MIN;
}

// How many arguments an operation has.
inline int argument_count(int32_t operation) {
  switch (operation) {
    case TESSERA_EXPRESSION_OPERAND:
    case TESSERA_EXPRESSION_CONSTANT:
      return 0;
    case TESSERA_EXPRESSION_ADD:
    case TESSERA_EXPRESSION_SUBTRACT:
    case TESSERA_EXPRESSION_MULTIPLY:
    case TESSERA_EXPRESSION_DIVIDE:
    case TESSERA_EXPRESSION_REMAINDER:
    case TESSERA_EXPRESSION_AND:
    case TESSERA_EXPRESSION_OR:
    case TESSERA_EXPRESSION_XOR:
    case TESSERA_EXPRESSION_SHIFT_LEFT:
    case TESSERA_EXPRESSION_SHIFT_RIGHT:
    case TESSERA_EXPRESSION_EQUAL:
    case TESSERA_EXPRESSION_LESS:
    case TESSERA_EXPRESSION_LESS_OR_EQUAL:
      return 2;
    case TESSERA_EXPRESSION_FUSED_MULTIPLY_ADD:
    case TESSERA_EXPRESSION_SELECT:
      return 3;
    default:
      return 1;
  }
}

// For each instruction: how many reductions are one after another on the way to it, counted from
// the operands. Reductions with equal numbers can be computed in one pass over the reduced axes,
// and an instruction with number n can be computed in or after the pass that follows n reductions.
inline std::vector<int> reduction_depths(const FusedGroup& group) {
  std::vector<int> depths;
  depths.reserve(group.instructions.size());
  for (const Instruction& instruction : group.instructions) {
    int depth = 0;
    for (int index = 0; index < argument_count(instruction.operation); ++index) {
      depth = std::max(depth, depths[static_cast<size_t>(instruction.arguments[index])]);
    }
    depths.push_back(depth + (is_reduction(instruction) ? 1 : 0));
  }
  return depths;
}

// For each instruction: whether its value differs between points that differ along the reduced axes
// only. Always false without reductions.
inline std::vector<bool> varies_along_reduced_axes(const FusedGroup& group) {
  std::vector<bool> varies;
  varies.reserve(group.instructions.size());
  for (const Instruction& instruction : group.instructions) {
    bool is_varying = false;
    if (instruction.operation == TESSERA_EXPRESSION_OPERAND) {
      const FusedAccess& access = group.operands[static_cast<size_t>(instruction.index)];
      for (size_t axis = 0; axis < group.dims.size(); ++axis) {
        is_varying = is_varying || (group.is_reduced(axis) && access.strides[axis] != 0);
      }
    } else if (!is_reduction(instruction)) {
      for (int index = 0; index < argument_count(instruction.operation); ++index) {
        is_varying = is_varying || varies[static_cast<size_t>(instruction.arguments[index])];
      }
    }
    varies.push_back(is_varying);
  }
  return varies;
}

// --- Loops --------------------------------------------------------------------------------------

// One loop over points. Strides are in elements: of the operands, then of the results.
struct LoopAxis {
  int64_t size = 1;
  bool is_reduced = false;
  std::vector<int64_t> strides;
};

// Nested loops, the outermost first; none for a single point. Neighbouring axes that all accesses
// pass through in one stride are merged, so an elementwise group of whole tensors has one axis.
struct LoopNest {
  std::vector<LoopAxis> axes;
  std::vector<int64_t> offsets;  // of the operands, then of the results
};

namespace detail {

// Drops axes of one element and merges neighbours.
inline LoopNest merged(LoopNest nest) {
  std::vector<LoopAxis> axes;
  for (LoopAxis& inner : nest.axes) {
    if (inner.size == 1) continue;
    if (!axes.empty() && axes.back().is_reduced == inner.is_reduced) {
      LoopAxis& outer = axes.back();
      bool fits = true;
      for (size_t index = 0; index < inner.strides.size(); ++index) {
        fits = fits && outer.strides[index] == inner.strides[index] * inner.size;
      }
      if (fits) {
        inner.size *= outer.size;
        outer = std::move(inner);
        continue;
      }
    }
    axes.push_back(std::move(inner));
  }
  nest.axes = std::move(axes);
  return nest;
}

// The channels in a block of a shared layout; 0 for layouts without blocks.
inline int64_t channel_block_of(const std::string& layout) {
  return layout == "nchw8c" ? 8 : layout == "nchw16c" ? 16 : 0;
}

}  // namespace detail

// The loops that together compute all points, if whole tensors are in `layout` ("" means
// row_major): one nest, or two if the last block of channels is not full. The loops are in the
// order of the storage of whole tensors. Throws Failure (TESSERA_UNSUPPORTED) if the layout is not
// one of the shared ones, does not hold tensors of this rank, or has channels in blocks over which
// the group reduces.
inline std::vector<LoopNest> loop_nests(const FusedGroup& group, const std::string& layout) {
  const size_t rank = group.dims.size();
  std::vector<const FusedAccess*> accesses;
  for (const FusedAccess& access : group.operands) accesses.push_back(&access);
  for (const FusedAccess& access : group.results) accesses.push_back(&access);
  LoopNest nest;
  for (const FusedAccess* access : accesses) nest.offsets.push_back(access->offset);
  const auto axis_of = [&](size_t axis) {
    LoopAxis loop = {group.dims[axis], group.is_reduced(axis), {}};
    for (const FusedAccess* access : accesses) loop.strides.push_back(access->strides[axis]);
    return loop;
  };
  if (layout.empty() || layout == TESSERA_LAYOUT_DEFAULT) {
    for (size_t axis = 0; axis < rank; ++axis) nest.axes.push_back(axis_of(axis));
    return {detail::merged(std::move(nest))};
  }
  const int64_t block = detail::channel_block_of(layout);
  const bool is_nhwc = layout == "nhwc";
  if ((!is_nhwc && block == 0) || rank < 3 || rank > 5) {
    throw Failure(TESSERA_UNSUPPORTED,
                  "has no loops over tensors of rank " + std::to_string(rank) + " in " + layout);
  }
  if (!is_nhwc && group.is_reduced(1)) {
    throw Failure(TESSERA_UNSUPPORTED, "does not reduce over channels in blocks");
  }
  // Axes in the order of the storage: images, blocks of channels, pixels, channels of a block.
  nest.axes.push_back(axis_of(0));
  if (!is_nhwc) nest.axes.push_back(axis_of(1));
  for (size_t axis = 2; axis < rank; ++axis) nest.axes.push_back(axis_of(axis));
  nest.axes.push_back(axis_of(1));
  const int64_t channels = group.dims[1];
  if (!is_nhwc) {
    LoopAxis& blocks = nest.axes[1];
    blocks.size = (channels + block - 1) / block;
    for (int64_t& stride : blocks.strides) stride *= block;
    nest.axes.back().size = block;
  }
  for (size_t index = 0; index < accesses.size(); ++index) {
    if (!accesses[index]->is_whole) continue;
    int64_t stride = 1;
    for (size_t axis = nest.axes.size(); axis-- > 0;) {
      nest.axes[axis].strides[index] = stride;
      stride *= nest.axes[axis].size;
    }
  }
  const int64_t rest = is_nhwc ? 0 : channels % block;
  if (rest == 0) return {detail::merged(std::move(nest))};
  // The last block on its own, with the channels that it has.
  const int64_t full_blocks = channels / block;
  LoopNest last = nest;
  last.axes[1].size = 1;
  last.axes.back().size = rest;
  for (size_t index = 0; index < accesses.size(); ++index) {
    last.offsets[index] += full_blocks * nest.axes[1].strides[index];
  }
  std::vector<LoopNest> nests;
  if (full_blocks > 0) {
    nest.axes[1].size = full_blocks;
    nests.push_back(detail::merged(std::move(nest)));
  }
  nests.push_back(detail::merged(std::move(last)));
  return nests;
}

// Sets the padding of a whole tensor in host memory to zero, as the contract demands. Does nothing
// for layouts without padding.
inline void clear_channel_padding(std::span<const int64_t> dims, const std::string& layout,
                                  int64_t element_bytes, void* elements) {
  const int64_t block = detail::channel_block_of(layout);
  if (block == 0 || dims[1] % block == 0) return;
  int64_t pixels = 1;
  for (size_t axis = 2; axis < dims.size(); ++axis) pixels *= dims[axis];
  const int64_t blocks = (dims[1] + block - 1) / block;
  const int64_t used = dims[1] % block;
  for (int64_t image = 0; image < dims[0]; ++image) {
    for (int64_t pixel = 0; pixel < pixels; ++pixel) {
      const int64_t first = (((image + 1) * blocks - 1) * pixels + pixel) * block + used;
      auto* bytes = static_cast<std::byte*>(elements) + first * element_bytes;
      std::fill_n(bytes, (block - used) * element_bytes, std::byte{0});
    }
  }
}

// --- Groups and candidates ----------------------------------------------------------------------

namespace detail {

inline FusedAccess copy_access(const tessera_fused_access& access, int32_t rank) {
  return {access.port,        access.data_type, access.is_whole != 0,
          access.instruction, access.offset,    {access.strides, access.strides + rank}};
}

inline void copy_group(void* groups, const tessera_fused_group* given) {
  FusedGroup group;
  group.nodes.assign(given->nodes, given->nodes + given->node_count);
  group.inputs.assign(given->inputs, given->inputs + given->input_count);
  group.outputs.assign(given->outputs, given->outputs + given->output_count);
  group.dims.assign(given->dims, given->dims + given->rank);
  group.reduced_axes = given->reduced_axes;
  for (int32_t index = 0; index < given->operand_count; ++index) {
    group.operands.push_back(copy_access(given->operands[index], given->rank));
  }
  for (int32_t index = 0; index < given->result_count; ++index) {
    group.results.push_back(copy_access(given->results[index], given->rank));
  }
  group.instructions.assign(given->instructions, given->instructions + given->instruction_count);
  group.text = given->text;
  group.flops = given->flops;
  group.bytes = given->bytes;
  static_cast<std::vector<FusedGroup>*>(groups)->push_back(std::move(group));
}

inline void require_fusion(const tessera_host* host) {
  if (host->struct_size < offsetof(tessera_host, fuse_nodes) + sizeof(void*)) {
    throw Failure(TESSERA_UNSUPPORTED, "this host finds no fused groups");
  }
}

}  // namespace detail

// The groups that are worth a kernel of their own: the largest ones, and parts of them for the case
// that another backend computes their first nodes. Few for each node. Throws Failure
// (TESSERA_UNSUPPORTED) if the host is too old.
inline std::vector<FusedGroup> find_fused_groups(const Graph& graph) {
  detail::require_fusion(graph.host());
  std::vector<FusedGroup> groups;
  tessera_error error = detail::empty_error();
  const int32_t status = graph.host()->find_fused_groups(graph.handle(), TESSERA_EXPRESSION_VERSION,
                                                         detail::copy_group, &groups, &error);
  detail::throw_on_failure(status, error);
  return groups;
}

// The group of exactly these nodes (ascending). Throws Failure (TESSERA_UNSUPPORTED) with the
// reason if one kernel cannot compute them in one pass.
inline FusedGroup fuse_nodes(const Graph& graph, std::span<const int32_t> nodes) {
  detail::require_fusion(graph.host());
  std::vector<FusedGroup> groups;
  tessera_error error = detail::empty_error();
  const int32_t status =
      graph.host()->fuse_nodes(graph.handle(), nodes.data(), static_cast<int32_t>(nodes.size()),
                               TESSERA_EXPRESSION_VERSION, detail::copy_group, &groups, &error);
  detail::throw_on_failure(status, error);
  return std::move(groups.at(0));
}

// The layouts of a group's ports: that of whole tensors, and that of the others.
struct FusedLayouts {
  std::string whole = TESSERA_LAYOUT_ANY_DENSE;
  std::string others = TESSERA_LAYOUT_DEFAULT;
};

// The candidate of a group, with ports but without `build` and estimates. A whole output may
// overwrite a whole input if the group reduces nothing and reads that input in no other way.
inline Candidate fused_candidate(const Graph& graph, const FusedGroup& group, std::string algorithm,
                                 const FusedLayouts& layouts = {}) {
  Candidate candidate;
  candidate.nodes = group.nodes;
  candidate.algorithm = std::move(algorithm);
  std::vector<int> reads(group.inputs.size(), 0);
  std::vector<bool> is_whole(group.inputs.size(), true);
  for (const FusedAccess& operand : group.operands) {
    ++reads[static_cast<size_t>(operand.port)];
    if (!operand.is_whole) is_whole[static_cast<size_t>(operand.port)] = false;
  }
  for (size_t port = 0; port < group.inputs.size(); ++port) {
    const bool is_any = is_whole[port] && reads[port] > 0;
    candidate.inputs.push_back(
        {.value = group.inputs[port], .layout = is_any ? layouts.whole : layouts.others});
  }
  std::vector<bool> is_overwritten(group.inputs.size(), false);
  for (size_t port = 0; port < group.outputs.size(); ++port) {
    OutputPort output = {.value = group.outputs[port], .layout = layouts.others};
    const auto result = std::find_if(
        group.results.begin(), group.results.end(),
        [port](const FusedAccess& access) { return access.port == static_cast<int32_t>(port); });
    const bool is_whole_result = result != group.results.end() && result->is_whole;
    if (is_whole_result) output.layout = layouts.whole;
    for (size_t input = 0; input < group.inputs.size(); ++input) {
      if (!is_whole_result || group.reduced_axes != 0 || reads[input] != 1 || !is_whole[input] ||
          is_overwritten[input] || output.in_place_input >= 0) {
        continue;
      }
      const Value value = graph.value(group.inputs[input]);
      if (value.is_constant() ||
          element_bytes(value.type().data_type) != element_bytes(result->data_type)) {
        continue;
      }
      output.in_place_input = static_cast<int32_t>(input);
      output.requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
      is_overwritten[input] = true;
    }
    candidate.outputs.push_back(std::move(output));
  }
  return candidate;
}

}  // namespace tessera::plugin
