#include "choose/placement_problem.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace tessera {
namespace {

// Views run nothing, so each gets the best preference of all candidates for the same nodes.
void prefer_views(PlacementProblem& problem) {
  std::map<std::vector<int>, int> best;  // preference by nodes
  for (const PlacementCandidate& candidate : problem.candidates) {
    const auto [entry, is_new] = best.try_emplace(candidate.nodes, candidate.preference);
    if (!is_new) entry->second = std::min(entry->second, candidate.preference);
  }
  for (PlacementCandidate& candidate : problem.candidates) {
    if (candidate.sharing == PlacementCandidate::Sharing::None) continue;
    candidate.preference = best.at(candidate.nodes);
  }
}

// The mean of the bytes that a conversion reads and writes; these differ for sparse values.
int64_t conversion_bytes(const Value& value, const LayoutTable& layouts) {
  const int64_t dense = type_bytes(value.type).value_or(0);
  if (!value.sparse) return dense;
  const std::optional<LayoutId> layout = layouts.find(text(*value.sparse));
  const std::optional<int64_t> sparse = layouts.storage_bytes(*layout, *known_type(value.type));
  return (dense + sparse.value_or(0)) / 2;
}

// The number of bytes of `type` with these strides that are contiguous.
int64_t contiguous_bytes(const TensorType& type, const std::vector<int64_t>& strides) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // strides and dimensions
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (type.dims[axis] != 1) axes.emplace_back(strides[axis], type.dims[axis]);
  }
  std::ranges::sort(axes);
  int64_t elements = 1;
  for (const auto& [stride, dim] : axes) {
    if (stride != elements) break;
    elements *= dim;
  }
  return elements * element_bytes(type.element);
}

// By value: the price of its copy. A part of another value's memory may have small pieces.
std::vector<double> copy_prices(const Graph& graph, const Offers& offers,
                                const ChooseTuning& tuning) {
  std::vector<double> prices;
  for (const Value& value : graph.values) {
    const std::optional<TensorType> type = known_type(value.type);
    prices.push_back(
        type ? assumed_copy_seconds(*type, type_bytes(value.type).value_or(0), {}, tuning)
             : assumed_conversion_seconds(0, tuning));
  }
  const auto add = [&](const auto& port) {
    const std::optional<TensorType> type = known_type(graph[port.value].type);
    if (!type || port.part.is_dense()) return;
    double& price = prices[static_cast<size_t>(port.value.index)];
    const int64_t bytes = type_bytes(graph[port.value].type).value_or(0);
    price = std::max(price, assumed_copy_seconds(*type, bytes, port.part.strides, tuning));
  };
  for (const Candidate& candidate : offers.candidates) {
    std::ranges::for_each(candidate.inputs, add);
    std::ranges::for_each(candidate.outputs, add);
  }
  return prices;
}

}  // namespace

double assumed_copy_seconds(const TensorType& type, int64_t bytes,
                            const std::vector<int64_t>& strides, const ChooseTuning& tuning) {
  const int64_t piece = strides.empty() ? bytes : contiguous_bytes(type, strides);
  const auto pieces = static_cast<double>(piece > 0 ? bytes / piece : 0);
  const auto all = static_cast<double>(bytes);
  const double cached = std::min(all, tuning.copy_cached_bytes);
  // Every byte is read and written. A core's cache still contains the bytes that were just written,
  // if these are not too many.
  return tuning.copy_seconds + pieces * tuning.copy_piece_seconds +
         2 * cached / tuning.copy_cached_bytes_per_second +
         2 * (all - cached) / tuning.copy_other_bytes_per_second;
}

double assumed_conversion_seconds(int64_t bytes, const ChooseTuning& tuning) {
  // Every byte is read and written.
  return tuning.conversion_seconds +
         2 * static_cast<double>(bytes) / tuning.conversion_bytes_per_second;
}

namespace {

// Groups that compute on integers, with DequantizeLinear before and QuantizeLinear after them, come
// before kernels of all backends that need the real numbers.
constexpr int kIntegersFirst = -1;

bool is_of_integers(const Candidate& candidate, const Graph& graph) {
  return candidate.nodes.size() > 1 && std::ranges::any_of(candidate.nodes, [&](NodeId id) {
           return graph[id].op == "DequantizeLinear";
         });
}

PlacementCandidate to_placement(const Candidate& candidate, const Graph& graph,
                                const LayoutTable& layouts) {
  PlacementCandidate made;
  made.preference = is_of_integers(candidate, graph) ? kIntegersFirst : candidate.preference;
  made.is_one_pass = (candidate.flags & TESSERA_CANDIDATE_ONE_PASS) != 0;
  made.seconds = candidate.optimistic_seconds;
  for (const NodeId node : candidate.nodes) made.nodes.push_back(node.index);
  if (candidate.is_view()) made.sharing = PlacementCandidate::Sharing::View;
  if (candidate.is_joint()) made.sharing = PlacementCandidate::Sharing::Joint;
  for (const CandidateInput& port : candidate.inputs) {
    made.inputs.push_back({.value = port.value.index,
                           .layout = port.layout.index,
                           .alignment_bytes = port.alignment_bytes,
                           .accepts_strides = port.accepts_strides,
                           .offset_bytes = port.part.offset_bytes,
                           .has_strides = !port.part.is_dense(),
                           .bytes = stored_bytes(graph, layouts, port.value, port.layout)});
  }
  for (const CandidateOutput& port : candidate.outputs) {
    made.outputs.push_back({.value = port.value.index,
                            .layout = port.layout.index,
                            .offset_bytes = port.part.offset_bytes,
                            .has_strides = !port.part.is_dense(),
                            .bytes = stored_bytes(graph, layouts, port.value, port.layout)});
  }
  return made;
}

}  // namespace

PlacementProblem make_problem(const Graph& graph, const Offers& offers, const LayoutTable& layouts,
                              const ChooseTuning& tuning) {
  PlacementProblem problem;
  problem.value_count = static_cast<int>(graph.values.size());
  problem.layout_count = static_cast<int>(layouts.size());
  for (const Node& node : graph.nodes) {
    PlacementNode& made = problem.nodes.emplace_back();
    for (const ValueId id : node.inputs) {
      if (!id.is_none()) made.inputs.push_back(id.index);
    }
    for (const Body& body : node.bodies) {
      for (const Capture& capture : body.graph.captures) made.inputs.push_back(capture.outer.index);
    }
    for (const ValueId id : node.outputs) {
      if (!id.is_none()) made.outputs.push_back(id.index);
    }
  }
  for (const Candidate& candidate : offers.candidates) {
    problem.candidates.push_back(to_placement(candidate, graph, layouts));
  }
  prefer_views(problem);
  for (const Value& value : graph.values) {
    problem.is_constant.push_back(value.is_constant());
    problem.conversion_seconds.push_back(
        assumed_conversion_seconds(conversion_bytes(value, layouts), tuning));
    const LayoutId fed = value.is_constant() ? kDefaultLayout : layouts.io_layout(value);
    problem.fed_layout.push_back(fed.index);
  }
  problem.copy_seconds = copy_prices(graph, offers, tuning);
  for (int32_t layout = 0; layout < problem.layout_count; ++layout) {
    problem.is_sparse.push_back(layouts.sparse_form(LayoutId{layout}).has_value());
  }
  for (int32_t from = 0; from < problem.layout_count; ++from) {
    std::vector<double>& row = problem.conversion_hops.emplace_back();
    for (int32_t to = 0; to < problem.layout_count; ++to) {
      row.push_back(layouts.hops(LayoutId{from}, LayoutId{to}));
    }
  }
  return problem;
}

std::vector<std::string> node_locations(const Graph& graph) {
  std::vector<std::string> places;
  for (const Node& node : graph.nodes) places.push_back(location_of(node));
  return places;
}

int64_t stored_bytes(const Graph& graph, const LayoutTable& layouts, ValueId value,
                     LayoutId layout) {
  const std::optional<TensorType> type = known_type(graph[value].type);
  return type ? layouts.storage_bytes(layout, *type).value_or(0) : 0;
}

}  // namespace tessera
