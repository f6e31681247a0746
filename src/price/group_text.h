// A canonical text for the computation of a group of nodes: equal texts mean equal work, in any
// model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "graph/graph.h"
#include "ops/registry.h"

namespace tessera::tuning {

struct GroupText {
  // Ops with versions and attributes, types, which inputs are constant, and the elements of small
  // constants, which kernels may have absorbed. Values are named i0, i1 (inputs), c0 (constants),
  // v0 (made by nodes).
  std::string text;
  std::vector<std::string> names;  // by value of the group's graph
};

// nullopt if the group cannot be measured in isolation: it has a type that is not known before
// running, a value that is not a tensor, a nested graph, or an op that draws random numbers.
std::optional<GroupText> group_text(const Graph& group, const ops::Registry& registry);

// The computation of a whole graph as text. Graphs that differ only in names, and fine-tuned
// versions of one network, have the same text. Constants are represented by their types, and by
// their elements if these are few integers, which shape arithmetic may read.
struct StructureText {
  std::string text;
  std::vector<std::string> names;  // by value of the graph; "" for unused values
};

// Whether to include the types of non-constant values. They are left out before shapes are bound,
// because unknown sizes are then symbols, which contain names.
enum class ValueTypes : uint8_t { Written, LeftOut };
StructureText structure_text(const Graph& graph, ValueTypes types);

// named_ports_text() of `candidate`, which was offered for `graph`, with the names in `text`, which
// is that of its nodes' `group`: "i0=nhwc c0=row_major:packed -> v0=nhwc".
std::string layouts_text(const Candidate& candidate, const Graph& graph, const LayoutTable& layouts,
                         const Graph& group, const GroupText& text);

}  // namespace tessera::tuning
