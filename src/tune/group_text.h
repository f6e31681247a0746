// What a group of nodes computes, as text: equal text, equal work, in whatever model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/registry.h"
#include "tune/bench.h"

namespace tessera::tuning {

struct GroupText {
  // Ops with versions and attributes, types, which inputs are constant, and the elements of small
  // constants, which kernels may have taken up. Values are called i0, i1 (inputs), c0 (constants),
  // v0 (made).
  std::string text;
  std::vector<std::string> names;  // by value of the group's graph
};

// nullopt where the group cannot be measured alone: a type that is not known before running, no
// tensor, a nested graph, an op that draws random numbers.
std::optional<GroupText> group_text(const Graph& group, const ops::Registry& registry);

// What a whole graph computes, as text, whatever it holds: the same text for graphs that differ in
// names alone, and for fine-tunes of one network. Of constants it has the types, and the elements
// where they are few and whole numbers, as shape arithmetic reads them.
struct StructureText {
  std::string text;
  std::vector<std::string> names;  // by value of the graph; "" for what nothing reads or makes
};

// With or without the types of what is no constant: unknown sizes are symbols, which have names.
enum class ValueTypes : uint8_t { Written, LeftOut };
StructureText structure_text(const Graph& graph, ValueTypes types);

// The ports of `key` under the names of `text`: "i0=nhwc c0=row_major:packed -> v0=nhwc".
std::string layouts_text(const CandidateKey& key, const Graph& group, const GroupText& text);

}  // namespace tessera::tuning
