// Measurements: times, errors and verdicts of candidates and conversions. The keys describe the
// measured work, not the model, so that another model with the same convolution finds it.
// docs/formats/costs.md documents the stored form.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/contract/candidate_id.h"
#include "price/statistics.h"
#include "tessera/data_type.h"

namespace tessera::tuning {

struct CostKey {
  std::string work;  // group_text()
  // Without nodes; `ports` is layouts_text(), in the names of `work`.
  CandidateId candidate;
  std::string ingredients;  // of the backend: its library's version etc.
  int precision = 0;        // TESSERA_PRECISION_
  int nan = 0;              // TESSERA_NAN_
  int accuracy = 0;         // TESSERA_ACCURACY_
  std::string density;      // of its inputs, if it affects the time; "": dense
  auto operator<=>(const CostKey&) const = default;
};

struct Cost {
  // Measured in isolation: with weights evicted from the caches, and with weights in them.
  std::optional<Timing> cold;
  std::optional<Timing> warm;
  // Measured as a step of a whole plan.
  std::optional<Timing> in_context;
  double build_seconds = 0;
  double error = 0;      // see Checked::error
  double tolerance = 0;  // the maximum of `error`
  std::string refusal;   // why it may not be used; "": it may
  // Whether `error` was determined here. If it comes from a third party, the times are only hints,
  // and the kernel must be checked before its results count.
  bool is_verified_here = true;
  bool operator==(const Cost&) const = default;
};

// A conversion step between layouts, for tensors of 2^size_class to 2^(size_class + 1) bytes.
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
  int64_t bytes = 0;  // of the converted row-major tensor
  Timing timing;
  std::string refusal;  // why it could not be measured; "": it could
  bool operator==(const ConversionCost&) const = default;
};

// A graph of known sizes, and the backends that were asked about it.
struct PlanKey {
  std::string graph;     // digest of its computation, see group_text()
  std::string backends;  // in order of preference, with their ingredients
  int threads = 1;
  int precision = 0;
  int nan = 0;
  int accuracy = 0;
  auto operator<=>(const PlanKey&) const = default;
};

// A conversion step of a value in a plan.
struct PlannedConversion {
  int value = 0;  // index in the graph
  std::string from;
  std::string to;
  auto operator<=>(const PlannedConversion&) const = default;
};

// The fastest of the plans that were run as a whole.
struct KnownPlan {
  std::vector<CandidateId> steps;  // in an executable order
  Timing timing;                   // of a run
  // If it was laid out: its conversions in order, and the backends whose layouts or conversions it
  // uses in addition to those of its steps.
  std::vector<PlannedConversion> conversions;
  std::vector<std::string> layout_backends;
  // If its kernels are slow to build: at most one plan that starts sooner and runs until they are
  // built. Not part of a table of costs, only of the plan's section in a cache.
  std::vector<KnownPlan> startup_plan;
  bool operator==(const KnownPlan&) const = default;
};

struct CostTable {
  // The machine of the measurements; times do not transfer to other machines.
  std::string machine;
  std::map<CostKey, Cost> kernels;
  std::map<ConversionCostKey, ConversionCost> conversions;
  std::map<PlanKey, KnownPlan> plans;
  bool operator==(const CostTable&) const = default;
};

// Merges `newer` into `table`. If both have an entry, `newer` wins, but times that it lacks (cold,
// warm, in context) are kept. A refusal by either wins. Entries judged here are not replaced by
// those of third parties.
void merge(CostTable& table, const CostTable& newer);

// The size class: the largest k with 2^k <= bytes; 0 for no bytes.
int size_class_of(int64_t bytes);

// JSON in the order of the keys: equal tables give equal text.
std::string write_cost_table(const CostTable& table);
// Reads what write_cost_table() wrote. Throws Corrupt, naming `location` and the position in it,
// for anything else: invalid JSON, a missing, extra, duplicate or mistyped field, a number that is
// not a valid time, a duplicate key. Throws Unsupported for another version of the format.
CostTable read_cost_table(const std::string& text, const std::string& location);

}  // namespace tessera::tuning
