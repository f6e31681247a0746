// What was measured: times, errors and verdicts of candidates and conversions. Keyed by what was
// measured, never by the model, so that another model with the same convolution finds it.
// docs/formats/costs.md tells how a table is stored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data_type.h"
#include "tune/statistics.h"

namespace tessera::tuning {

struct CostKey {
  std::string work;  // group_text()
  std::string backend;
  std::string ingredients;  // of the backend: its library's version and the like
  std::string algorithm;
  std::string layouts;  // layouts_text()
  int threads = 1;
  int precision = 0;    // TESSERA_PRECISION_
  int nan = 0;          // TESSERA_NAN_
  std::string density;  // of its inputs, where that changes the time; "": dense
  auto operator<=>(const CostKey&) const = default;
};

struct Cost {
  // Alone on its buffers: with weights that had left the caches, and with weights in them.
  std::optional<Timing> cold;
  std::optional<Timing> warm;
  // As a step of a whole plan.
  std::optional<Timing> in_context;
  double build_seconds = 0;
  double error = 0;      // as Checked::error
  double tolerance = 0;  // what `error` may be at most
  std::string refusal;   // why it may not be used; "": it may
  // Whether `error` was found out here. Where a stranger says it, his times are hints; that the
  // kernel is right is to be seen before its results count.
  bool is_judged_here = true;
  bool operator==(const Cost&) const = default;
};

// A step from a layout to another, for tensors of 2^size_class to 2^(size_class + 1) bytes.
struct ConversionCostKey {
  std::string backend;
  std::string ingredients;
  std::string from;
  std::string to;
  DataType element = DataType::Undefined;
  int size_class = 0;
  int threads = 1;
  auto operator<=>(const ConversionCostKey&) const = default;
};

struct ConversionCost {
  int64_t bytes = 0;  // of the row-major tensor that was converted
  Timing timing;
  std::string refusal;  // why it could not be measured; "": it could
  bool operator==(const ConversionCost&) const = default;
};

// A graph of known sizes, and who was asked for it.
struct PlanKey {
  std::string graph;     // digest of what it computes, as group_text() has it
  std::string backends;  // in order of preference, with their ingredients
  int threads = 1;
  int precision = 0;
  int nan = 0;
  auto operator<=>(const PlanKey&) const = default;
};

// One candidate of a plan, by what it is among those that are offered for the graph.
struct PlannedStep {
  std::vector<int> nodes;  // by their places in the graph
  std::string backend;
  std::string algorithm;
  std::string layouts;  // of its inputs and outputs, in their order
  int threads = 1;
  auto operator<=>(const PlannedStep&) const = default;
};

// A step of the way on which a value of a plan comes from one layout to another.
struct PlannedConversion {
  int value = 0;  // by its place in the graph
  std::string from;
  std::string to;
  auto operator<=>(const PlannedConversion&) const = default;
};

// The plan that was the fastest of those that ran as a whole.
struct KnownPlan {
  std::vector<PlannedStep> steps;  // in an order in which they can run
  Timing timing;                   // of a run
  // Where it was laid out: its conversions, in their order, and the backends whose layouts or
  // conversions it uses, beside those of its steps.
  std::vector<PlannedConversion> conversions;
  std::vector<std::string> layout_backends;
  // Where its kernels are slow to build, one plan that starts sooner, to run until they are built;
  // else none. A table of costs does not have it, the plan's section of a cache does.
  std::vector<KnownPlan> until_built;
  bool operator==(const KnownPlan&) const = default;
};

struct CostTable {
  // The machine on which it was measured: times of another one mean nothing.
  std::string machine;
  std::map<CostKey, Cost> kernels;
  std::map<ConversionCostKey, ConversionCost> conversions;
  std::map<PlanKey, KnownPlan> plans;
  bool operator==(const CostTable&) const = default;
};

// Adds to `table` what `newer` knows; where both know a thing, `newer` counts, but what it has not
// measured (cold, warm, in context) stays. Refused by either is refused. What was judged here is
// not replaced by what a stranger says.
void merge(CostTable& table, const CostTable& newer);

// The bytes' class: the largest k with 2^k <= bytes; 0 for none.
int size_class_of(int64_t bytes);

// JSON, in the order of the keys: equal tables give equal text.
std::string write_cost_table(const CostTable& table);
// Reads what write_cost_table() wrote. Throws Corrupt, naming `place` and where in it, for anything
// else: what is no JSON, a field too many, too few, twice or of another kind, a number that is no
// time, one key twice. Throws Unsupported for the format of another version.
CostTable read_cost_table(const std::string& text, const std::string& place);

}  // namespace tessera::tuning
