// What there is to measure for one bound graph: its groups of nodes, their candidates, and the
// conversions between layouts, each with the key under which a CostTable knows it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/candidates.h"
#include "backend/layouts.h"
#include "backend/plugin.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tune/bench.h"
#include "tune/cost_table.h"
#include "tune/group_text.h"

namespace tessera::tuning {

// A bound graph and what was offered for it. All of it must live as long as this.
struct Subject {
  const Graph& graph;
  const Offers& offers;
  const LayoutTable& layouts;
  const ops::Registry& registry;
  int threads = 1;    // of the pool
  int precision = 0;  // TESSERA_PRECISION_
  int nan = 0;        // TESSERA_NAN_
};

// All candidates for one set of nodes.
struct TuneGroup {
  std::vector<NodeId> nodes;  // ascending
  Graph graph;                // of the group alone
  std::optional<GroupText> text;
  std::vector<int> candidates;  // indices of Offers::candidates
};

// In the order of their last nodes. A group that makes nothing for others is left out.
std::vector<TuneGroup> collect_groups(const Subject& subject);

// How a candidate of `group` is found again, in the group's own graph.
CandidateKey bench_key(const Subject& subject, int candidate);
// By candidate; nullopt where its group cannot be measured alone.
std::vector<std::optional<CostKey>> cost_keys(const Subject& subject,
                                              const std::vector<TuneGroup>& groups);

struct NeededConversion {
  ConversionKey key;  // with the first type that was found
  ConversionCostKey cost_key;
  int64_t bytes = 0;  // of a row-major tensor of that type
};

// The steps of the route of a value from a layout to another.
std::vector<NeededConversion> conversions_between(const Subject& subject, ValueId value,
                                                  LayoutId from, LayoutId to);

// Every step of a route between two layouts in which some candidate makes a value and another one
// reads it, or in which results leave the graph: one for each class of sizes.
std::vector<NeededConversion> needed_conversions(const Subject& subject);

// By value of the graph the layouts in which it may come to be and those in which it may be read.
struct ValueLayouts {
  std::vector<LayoutId> made;
  std::vector<LayoutId> read;
};
std::vector<ValueLayouts> value_layouts(const Subject& subject);

// Weights::Cold where the graph's weights would not stay in the processor's caches between runs.
Weights weights_between_runs(const Graph& graph);

// Of all values, constants among them, as far as their sizes are known.
int64_t value_bytes(const Graph& graph);

// "Intel(R) Xeon(R) Processor, avx512, 2 cores": what CostTable::machine says here.
std::string this_machine();

}  // namespace tessera::tuning
