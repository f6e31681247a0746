#include "other_sizes.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <span>

#include "infer/infer.h"
#include "tessera/error.h"

namespace tessera {
namespace {

std::vector<int64_t> dims_of(const Graph& graph, ValueId id) {
  const Type& type = graph[id].type;
  return type.is_known_tensor() ? dims_from(*type.shape) : std::vector<int64_t>();
}

bool has_same_pack(const tessera_pack* left, const tessera_pack* right) {
  if (left == nullptr || right == nullptr) return left == right;
  return std::strcmp(left->id, right->id) == 0 && left->bytes == right->bytes;
}

bool is_same(const Candidate& left, const Candidate& right) {
  const auto has_same_input = [](const CandidateInput& one, const CandidateInput& other) {
    return one.value == other.value && one.layout == other.layout &&
           one.alignment_bytes == other.alignment_bytes &&
           one.accepts_strides == other.accepts_strides && has_same_pack(one.pack, other.pack);
  };
  const auto has_same_output = [](const CandidateOutput& one, const CandidateOutput& other) {
    return one.value == other.value && one.layout == other.layout &&
           one.requests == other.requests && one.in_place_input == other.in_place_input &&
           one.alignment_bytes == other.alignment_bytes &&
           one.accepts_strides == other.accepts_strides &&
           one.is_size_unknown == other.is_size_unknown;
  };
  return left.plugin == right.plugin && left.algorithm == right.algorithm &&
         left.nodes == right.nodes && left.threads == right.threads && left.flags == right.flags &&
         std::ranges::equal(left.inputs, right.inputs, has_same_input) &&
         std::ranges::equal(left.outputs, right.outputs, has_same_output);
}

// Whether the promise of tessera_built_for covers the sizes of `graph`.
bool serves(const Candidate& built, const Graph& other, const Graph& graph) {
  if (!built.takes_sizes()) return false;
  std::map<int64_t, int64_t> now_of;  // by dimension of `other`, above 1
  const auto is_covered = [&](ValueId value) {
    const std::vector<int64_t> before = dims_of(other, value);
    const std::vector<int64_t> now = dims_of(graph, value);
    if (before.size() != now.size()) return false;
    for (size_t axis = 0; axis < now.size(); ++axis) {
      if (before[axis] <= 1 || now[axis] <= 1) {
        if (before[axis] != now[axis]) return false;
      } else if (now_of.try_emplace(before[axis], now[axis]).first->second != now[axis]) {
        return false;
      }
    }
    return true;
  };
  for (const CandidateInput& port : built.inputs) {
    if (!is_covered(port.value)) return false;
  }
  for (const CandidateOutput& port : built.outputs) {
    if (!is_covered(port.value)) return false;
  }
  const std::span built_for(built.abi->built_for, static_cast<size_t>(built.abi->built_for_count));
  return std::ranges::all_of(built_for, [&](const tessera_built_for& dimension) {
    const ValueId value = built.inputs[static_cast<size_t>(dimension.input_port)].value;
    const auto axis = static_cast<size_t>(dimension.axis);
    return dims_of(other, value)[axis] == dims_of(graph, value)[axis];
  });
}

int64_t workspace_for(const Candidate& built, const Graph& graph) {
  if (!built.has_workspace_for()) return built.workspace_bytes;
  std::vector<std::vector<int64_t>> dims;
  for (const CandidateInput& port : built.inputs) dims.push_back(dims_of(graph, port.value));
  for (const CandidateOutput& port : built.outputs) dims.push_back(dims_of(graph, port.value));
  std::vector<tessera_buffer> buffers(dims.size());
  for (size_t index = 0; index < dims.size(); ++index) {
    const ValueId value = index < built.inputs.size()
                              ? built.inputs[index].value
                              : built.outputs[index - built.inputs.size()].value;
    buffers[index].data_type = static_cast<int32_t>(graph[value].type.element);
    buffers[index].rank = static_cast<int32_t>(dims[index].size());
    buffers[index].dims = dims[index].data();
  }
  return built.abi->workspace_for(built.abi->self, buffers.data(),
                                  buffers.data() + built.inputs.size());
}

}  // namespace

std::optional<Graph> with_other_sizes(const Graph& graph, const ops::Registry& registry,
                                      uint64_t seed) {
  std::mt19937_64 random(seed);
  std::set<int64_t> of_weights;
  for (const Value& value : graph.values) {
    if (!value.is_constant()) continue;
    for (const int64_t dim : value.constant.dims()) of_weights.insert(dim);
  }
  const bool changes_all = random() % 4 == 0;
  std::map<int64_t, int64_t> changed;
  Graph other = graph;
  for (const ValueId id : other.inputs) {
    if (!other[id].type.is_known_tensor()) return std::nullopt;
    std::vector<int64_t> dims = dims_of(other, id);
    for (int64_t& dim : dims) {
      const bool is_weight = of_weights.contains(dim) && !changes_all;
      const bool stays = dim <= 1 || is_weight || random() % 4 == 0;
      const int64_t drawn = stays ? dim : 2 + static_cast<int64_t>(random() % (2 * dim + 6));
      dim = changed.try_emplace(dim, drawn).first->second;
    }
    other[id].type.shape = shape_from(dims);
  }
  for (const Node& node : other.nodes) {
    for (const ValueId id : node.outputs) {
      if (id.is_none()) continue;
      other[id].type = {};
      other[id].elements.reset();
    }
  }
  try {
    return infer_types(other, registry, Log());
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Candidate> with_kernel_of(const std::vector<Candidate>& others, const Graph& other,
                                        const Candidate& candidate, const Graph& graph) {
  if (!candidate.has_kernel() || !candidate.absorbed.empty()) return std::nullopt;
  const auto found =
      std::ranges::find_if(others, [&](const Candidate& one) { return is_same(one, candidate); });
  if (found == others.end() || !serves(*found, other, graph)) return std::nullopt;
  Candidate changed = *found;
  changed.workspace_bytes = workspace_for(*found, graph);
  changed.load = {};
  return changed;
}

}  // namespace tessera
