// What models, plans and measurements are made of, for people and programs that look at them: plain
// data, which tessera.h's functions give. Times are in seconds and sizes in bytes where a name does
// not say otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/data_type.h"

namespace tessera {

// One dimension as the model declares it: a number, or the name of an unknown one.
struct Dimension {
  std::optional<int64_t> value;
  std::string symbol;  // "" where value is set
};

// An input, output or inner value of a model.
struct ValueDescription {
  std::string name;
  DataType type = DataType::Undefined;
  std::optional<std::vector<Dimension>> shape;  // nullopt: rank unknown
  bool is_read = true;                          // false: nothing reads it, so it need not be fed
  // For integer inputs that only index (Gather): the number of things to choose from.
  std::optional<int64_t> index_limit;
  std::string text;  // "float32 1x3xHx224"
  // In which an executor takes or gives it: "row_major", "csr:400000".
  std::string layout = "row_major";
};

struct NodeDescription {
  std::string name;
  std::string op;
  std::string domain;
  int version = 0;
  std::vector<ValueDescription> inputs;  // an omitted one has an empty name
  std::vector<ValueDescription> outputs;
  std::optional<int64_t> flops;  // a multiply-add is 2; nullopt while shapes are unknown
  std::optional<int64_t> bytes;  // read and written; nullopt while shapes are unknown
  std::string inference_only;    // the pass that made it right for inference only, else ""
};

// What one rewriting pass did when the model was loaded.
struct PassDescription {
  std::string name;
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
  double seconds = 0;
  std::vector<std::string> changes;  // one sentence a change; empty: nothing changed
};

struct ModelDescription {
  std::string file;
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  // by domain; "" is ONNX's own
  std::vector<ValueDescription> inputs;   // without those that have a value in the file
  std::vector<ValueDescription> outputs;
  std::vector<ValueDescription> weights;  // constants that a node reads
  std::vector<NodeDescription> nodes;     // after rewriting, in the order in which they run
  std::vector<PassDescription> passes;
  std::vector<std::string> fetchable;  // values that the file's nodes make and no pass has removed
  int64_t weight_bytes = 0;
  std::optional<int64_t> flops;       // of all nodes
  std::optional<int64_t> peak_bytes;  // of inner values alive at once, when run in order
};

// What one step of the plan did during a run.
struct StepRecord {
  std::string node;  // PlanStep::name
  std::string op;    // PlanStep::op
  std::string backend;
  std::string algorithm;
  std::chrono::nanoseconds start{};  // since the run began
  std::chrono::nanoseconds duration{};
  int64_t flops = 0;
  int64_t bytes = 0;
};

// One thing that was done before running: "load", "propose", "place", "build", "pack", "plan".
struct StageRecord {
  std::string name;
  std::chrono::nanoseconds start{};  // since load() or bind() began
  std::chrono::nanoseconds duration{};
  int64_t bytes = 0;  // of packs
};

// A value as a step reads or makes it.
struct PlanPort {
  std::string value;
  std::string type;    // "float32 1x64x56x56"
  std::string layout;  // "nchw16c"
  std::string device;  // that the layout is on: "cpu"
  std::string pack;    // id of the pack that is read instead; "" for none
  bool is_constant = false;
  // Of a sparse layout: the most that it stores, elements (csr) or rows (row_sparse), and which
  // part of all that is.
  std::optional<int64_t> capacity = {};
  std::optional<double> density = {};
};

struct BackendRefusal {
  std::string backend;
  std::string node;
  std::string reason;
};

// One step of a plan: a kernel for a node or a group, a conversion or a copy, or a view, which no
// run executes.
struct PlanStep {
  std::string name;  // of the node; of a group's last node; of a conversion's value
  // "Conv", "Conv+Add+Relu", "convert", "convert+copy" (to another device), "copy"
  std::string op;
  std::string backend;
  std::string algorithm;
  int threads = 1;
  std::vector<std::string> nodes;  // all that it covers
  std::vector<PlanPort> inputs;
  std::vector<PlanPort> outputs;
  int64_t flops = 0;
  int64_t bytes = 0;  // read and written, as stored
  int64_t workspace_bytes = 0;
  bool is_in_place = false;
  std::optional<double> predicted_seconds;  // what the choice reckons with; nullopt without costs
  std::vector<BackendRefusal> refusals;     // of the other backends, for its nodes
};

struct MeasuredTime {
  double seconds = 0;  // the lower quartile of the rounds
  double low = 0;      // in another process the same is found between these, 19 times of 20
  double high = 0;
  int rounds = 0;  // 0: not measured, but in proportion to what it took for other shapes
};

enum class Verdict {
  NotMeasured,
  Fine,
  Refused,   // wrong, or it failed, or it took too long
  NotBuilt,  // its kernel could not be made
};

// One way to compute a node or a group, with what is known of it.
struct CandidateDescription {
  std::vector<std::string> nodes;  // all that it covers
  std::string op;                  // "Conv+Relu"
  std::string backend;
  std::string algorithm;
  int threads = 1;
  std::vector<PlanPort> inputs;
  std::vector<PlanPort> outputs;
  Verdict verdict = Verdict::NotMeasured;
  std::string refusal;               // why it may not be used; "": it may
  std::optional<MeasuredTime> time;  // of what may be used and was measured
  bool has_cold_weights = false;     // whether `time` is with weights evicted from the caches
  double price_seconds = 0;          // what the choice reckons with: `time`, or a guess
  double error = 0;                  // found, relative to the magnitude of what was summed
  double tolerance = 0;              // what it may be
  double build_seconds = 0;
  int64_t workspace_bytes = 0;
  int64_t pack_bytes = 0;     // of its packed weights
  int64_t library_bytes = 0;  // that its library keeps to itself
  bool is_chosen = false;
  // With BindOptions::margin_search_seconds; nullopt: not found out. By how much the cheapest
  // choice with it is dearer than the cheapest of all: so much cheaper it would have to become.
  // Infinity: there is no choice with it. What is 0 and not chosen is in the cheapest choice, or in
  // one as cheap, where running whole plans chose another.
  std::optional<double> behind_seconds;
  // By how much the cheapest choice without it is dearer: so much dearer it may become. 0 for what
  // the cheapest choice does not have.
  std::optional<double> ahead_seconds;
};

// One step from a layout to another, with its price for tensors of about `bytes`.
struct ConversionDescription {
  std::string backend;
  std::string from;
  std::string to;
  std::string type;  // "float32"
  int64_t bytes = 0;
  MeasuredTime time;
  std::string refusal;  // why it could not be measured
};

// What was measured when binding.
struct TuningDescription {
  int measured = 0;           // candidates and conversions
  int known = 0;              // that had been measured before, or stand in the graph twice
  int refused = 0;            // of those measured
  int reused = 0;             // prices of this graph that were known when measuring began
  double reused_seconds = 0;  // that measuring those took, at least
  int offered = 0;            // candidates in all: those that could not win are not measured
  bool is_stopped = false;
  bool is_out_of_time = false;  // BindOptions::tune_budget_seconds were spent
  double seconds = 0;
  // The most memory that this process and the one that measured had resident, each at its own time.
  int64_t peak_bytes = 0;
  std::map<std::string, double> phases;  // seconds by what was done: "build", "check", "time"...
  std::vector<std::string> notes;        // what was odd, a sentence each
};

// A choice of candidates that was run as a whole, in turns with others.
struct ContenderDescription {
  // How it was chosen. "chosen": the cheapest by prices before whole plans ran; "known": the plan
  // of an earlier tuning; "solved": the cheapest by the prices that those runs gave; "greedy": the
  // same prices, node by node; "in order": what is chosen without prices; "mylib alone": the
  // cheapest with the kernels of one backend, and others only where it has none. "..., round 2": by
  // the prices of a later round of runs.
  std::string name;
  double seconds = 0;  // of a run
  double low = 0;      // its interval of 95 %
  double high = 0;
};

// How good the choice by price is. A price is of kernels and conversions alone, so a run may take
// longer or, where caches are warm, less.
struct PlacementDescription {
  double predicted_seconds = 0;  // the price of what was chosen, as far as each run pays it
  // What building the chosen kernels takes, as far as that was measured, one after the other.
  double build_seconds = 0;
  // The same by what each kernel took alone, before it was timed amid the others.
  std::optional<double> isolated_seconds;
  std::optional<double> measured_seconds;  // of a run of it; nullopt: none was timed when binding
  // No choice has a lower price: time of a run and, with BindOptions::optimize_for "N-runs", the
  // Nth part of what its kernels take to build.
  double lower_bound_seconds = 0;
  bool is_proven_optimal = false;  // the solver found a choice whose price is that bound
  double gap = 0;                  // the part by which the choice's price is above the bound: 0.02
  double solve_seconds = 0;        // that the solver took
  std::vector<ContenderDescription> contenders;  // the fastest first; empty: no run-off was held
};

// Memory of its own in the arena: a value with those that share its memory, or a workspace.
struct MemoryBlock {
  std::string name;    // the value's, or the step's whose workspace it is
  std::string text;    // "float32 1x64x56x56, nchw16c"; "" for a workspace
  int lower = 0;       // the first step of the plan that uses it
  int upper = 0;       // one past the last
  int64_t bytes = 0;   // as its layout stores it
  int64_t offset = 0;  // in the arena
  bool is_workspace = false;
};

// How inner values and workspaces lie in the arena. Inputs, and outputs, which are new memory in
// each run, are not among them.
struct MemoryDescription {
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;    // live at once, at most, in this order of steps
  bool is_proven_smallest = false;  // no offsets for these steps give a smaller arena
  int64_t naive_bytes = 0;          // if each value and workspace had memory of its own
  int64_t padding_bytes = 0;        // of those, what layouts store beside the elements
  int64_t weight_bytes = 0;         // of the constants that the steps read, packed or not
  int64_t output_bytes = 0;         // of outputs, as far as their sizes are known
  int64_t library_bytes = 0;        // that libraries keep to themselves
  int64_t total_bytes = 0;          // of arena, weights, outputs and libraries
  std::vector<MemoryBlock> blocks;  // by first step
};

struct PlanDescription {
  std::vector<PlanStep> steps;
  // With costs (BindOptions::optimize or cost_table): everything that was offered, what it costs,
  // and how good the choice is.
  std::vector<CandidateDescription> candidates;
  std::vector<ConversionDescription> conversions;
  std::optional<PlacementDescription> placement;
  TuningDescription tuning;
  int64_t arena_bytes = 0;    // inner values and workspaces
  int64_t pack_bytes = 0;     // packed weights that this plan reads
  int64_t library_bytes = 0;  // that libraries keep to themselves
  MemoryDescription memory;
};

// An executor's plan for one set of input shapes.
struct ShapePlanDescription {
  std::map<std::string, std::vector<int64_t>> shapes;  // by input, of all whose shape is read
  int64_t arena_bytes = 0;                             // that it needs
  int64_t pack_bytes = 0;                              // of packed weights, shared with the others
  int kernels = 0;
  int reused_kernels = 0;  // of these, that another plan had built
  int loaded_kernels = 0;  // of these, that an earlier process had built and stored
  double seconds = 0;      // that planning took; 0 for the one of bind()
};

struct ShapesDescription {
  std::vector<ShapePlanDescription> plans;  // the one of the newest run first, then by last use
  int64_t arena_bytes = 0;                  // that they share: as much as one of them ever needed
};

// What the backends offer for a model, checked: candidates without times or prices.
struct ModelVerification {
  std::vector<CandidateDescription> candidates;
  TuningDescription tuning;
};

}  // namespace tessera
