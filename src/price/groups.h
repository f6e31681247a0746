// Everything to measure for one bound graph: its groups of nodes, their candidates, and conversions
// between layouts, each with its key in a CostTable.
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
#include "microbench/bench.h"
#include "ops/registry.h"
#include "price/cost_table.h"
#include "price/group_text.h"
#include "price/price_tuning.h"

namespace tessera::tuning {

// The offers for a bound graph, which are measured and priced. All referenced objects must outlive
// it.
struct TuningTask {
  const Graph& graph;
  const Offers& offers;
  const LayoutTable& layouts;
  const ops::Registry& registry;
  int threads = 1;    // of the pool
  int precision = 0;  // TESSERA_PRECISION_
  int nan = 0;        // TESSERA_NAN_
  int accuracy = 0;   // TESSERA_ACCURACY_
  PriceTuning tuning = {};
};

// All candidates for one set of nodes.
struct TuneGroup {
  std::vector<NodeId> nodes;  // ascending
  Graph graph;                // of the group alone
  std::optional<GroupText> text;
  std::vector<int> candidates;  // indices into Offers::candidates
};

// In the order of their last nodes. Omits groups whose results nothing outside needs.
std::vector<TuneGroup> collect_groups(const TuningTask& task);

// id_alone() of a candidate, by which a bench knows it.
CandidateId bench_id(const TuningTask& task, int candidate);
// By candidate; nullopt if its group cannot be measured in isolation.
std::vector<std::optional<CostKey>> cost_keys(const TuningTask& task,
                                              const std::vector<TuneGroup>& groups);

struct NeededConversion {
  ConversionKey key;  // with the first type that was found
  ConversionCostKey cost_key;
  int64_t bytes = 0;  // of a row-major tensor of that type

  // Whether the host does it, to or from a sparse layout: such a step has a price by its bytes, and
  // is not measured.
  bool is_of_host() const { return key.backend.empty(); }
};

// The steps of a value's route from a layout to another.
std::vector<NeededConversion> conversions_between(const TuningTask& task, ValueId value,
                                                  LayoutId from, LayoutId to);

// The conversion steps that can be measured, once per size class, of all routes between a layout in
// which a candidate makes a value and one in which another candidate, or a graph output, needs it.
std::vector<NeededConversion> needed_conversions(const TuningTask& task);

// For each value of the graph, the layouts in which it may be made and those in which it may be
// read.
struct ValueLayouts {
  std::vector<LayoutId> made;
  std::vector<LayoutId> read;
};
std::vector<ValueLayouts> value_layouts(const TuningTask& task);

// Weights::Cold if the graph's weights do not stay in the processor's caches between runs.
Weights weights_between_runs(const Graph& graph);

// The total size of all values, including constants, whose sizes are known.
int64_t value_bytes(const Graph& graph);

// "Intel(R) Xeon(R) Processor, avx512, 2 cores": CostTable::machine for this machine.
std::string this_machine();

}  // namespace tessera::tuning
