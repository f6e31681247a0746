// Descriptions of models, plans and measurements, for users and programs that inspect them: plain
// data, which the functions of tessera.h return. Times are in seconds and sizes in bytes unless a
// name says otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data_type.h"

namespace tessera {

// One dimension as the model declares it: a number, or the name of an unknown one.
struct Dimension {
  std::optional<int64_t> value;
  std::string symbol;  // "" if value is set
};

// An input, output or inner value of a model.
struct ValueDescription {
  std::string name;
  DataType type = DataType::Undefined;
  std::optional<std::vector<Dimension>> shape;  // nullopt: rank unknown
  bool is_read = true;                          // false: nothing reads it, so it may be left out
  // For integer inputs that are only used as an index (Gather): the number of elements to choose
  // from.
  std::optional<int64_t> index_limit;
  std::string text;  // "float32 1x3xHx224"
  // The layout in which an executor accepts or returns it: "row_major", "csr:400000".
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
  std::string inference_only;    // the pass after which it is correct for inference only, or ""
};

// The effect of one rewriting pass when the model was loaded.
struct PassDescription {
  std::string name;
  int64_t nodes_before = 0;
  int64_t nodes_after = 0;
  double seconds = 0;
  std::vector<std::string> changes;  // a sentence for each change; empty: nothing changed
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
  // Outputs of the file's nodes that no pass has removed.
  std::vector<std::string> fetchable;
  int64_t weight_bytes = 0;
  std::optional<int64_t> flops;  // of all nodes
  // The largest sum of inner values that are live at the same time, if nodes run in order.
  std::optional<int64_t> peak_bytes;
};

// One step of the plan in a recorded run. After a step with nested graphs come the steps of these,
// one record for all their runs in it: `duration`, `enqueue`, `flops` and `bytes` are sums, and
// `start` is where the sums of the steps before it end.
struct StepRecord {
  std::string node;  // PlanStep::name
  std::string op;    // PlanStep::op
  std::string backend;
  std::string algorithm;
  std::chrono::nanoseconds start{};  // since the run began
  // Of a step of a device: until the host, which enqueued it and waited, knew that it was done.
  std::chrono::nanoseconds duration{};
  // Of a step of a device: the part of `duration` that the host took to enqueue it; else 0.
  std::chrono::nanoseconds enqueue{};
  std::string device = "cpu";  // that did it
  int64_t flops = 0;
  int64_t bytes = 0;
  std::string graph;  // PlanStep::graph
  int64_t runs = 1;
};

// One stage of load() or bind(): "load", "propose", "place", "build", "pack", "plan", ...
struct StageRecord {
  std::string name;
  std::chrono::nanoseconds start{};  // since load() or bind() began
  std::chrono::nanoseconds duration{};
  int64_t bytes = 0;  // of packs
};

// A value that a step reads or writes, in the layout in which it does so.
struct PlanPort {
  std::string value;
  std::string type;    // "float32 1x64x56x56"
  std::string layout;  // "nchw16c"
  std::string device;  // device of the layout: "cpu"
  std::string pack;    // id of the pack that is read instead of the value; "": none
  bool is_constant = false;
  // Of a sparse layout: the maximum number of stored elements (csr) or rows (row_sparse), and its
  // share of all elements or rows.
  std::optional<int64_t> capacity = {};
  std::optional<double> density = {};
};

struct BackendRefusal {
  std::string backend;
  std::string node;
  std::string reason;
};

// One step of a plan: a kernel for a node or a group, a conversion, a copy, or a view, for which
// nothing is executed.
struct PlanStep {
  std::string name;  // of the node; of a group's last node; of a conversion's value
  // Of a step of a nested graph, where that is: "node 'choice' (If), then_branch"; else "".
  std::string graph;
  // "Conv", "Conv+Add+Relu", "convert", "convert+copy" (to another device), "copy"
  std::string op;
  std::string backend;
  std::string algorithm;
  int threads = 1;
  std::vector<std::string> nodes;  // all nodes that it computes
  std::vector<PlanPort> inputs;
  std::vector<PlanPort> outputs;
  int64_t flops = 0;
  int64_t bytes = 0;  // read and written, as stored
  int64_t workspace_bytes = 0;
  bool is_in_place = false;
  // The dimensions for which its kernel was built, so that it runs with other sizes of all others:
  // "x[1], w[0]"; "all" or, if it takes any sizes, "".
  std::string built_for;
  // The price that the choice used; nullopt without costs.
  std::optional<double> predicted_seconds;
  // Of a kernel that computes two or more nodes (views do not count): what `bytes` would be if a
  // kernel computed each of them; else nullopt.
  std::optional<int64_t> unfused_bytes;
  // Of such a kernel: the sum of the cheapest measured candidates that compute its nodes in smaller
  // groups; nullopt if not enough were measured when binding.
  std::optional<double> unfused_seconds;
  std::vector<BackendRefusal> refusals;  // by the other backends, for its nodes
};

// Counts of the kernels that a backend has compiled in this process, for all models and executors.
struct CompileDescription {
  std::string backend;
  int64_t kernels = 0;            // of groups; several may share one code
  int64_t unique = 0;             // different codes among them
  int64_t compiled = 0;           // codes that the compiler made, here or in the worker process
  int64_t loaded_from_store = 0;  // codes that another process had compiled
  double compile_seconds = 0;
};

// The forms of the text of a compiled kernel.
enum class KernelForm {
  Expression,  // the instructions for one point, which all compilers get
  Source,      // in the language of its compiler
  Assembly,
};
// The form called "expression", "source" or "assembly"; nullopt for other names.
std::optional<KernelForm> kernel_form(std::string_view name);

struct MeasuredTime {
  double seconds = 0;  // the lower quartile of the rounds
  // The interval in which 19 of 20 other processes would measure this time.
  double low = 0;
  double high = 0;
  int rounds = 0;  // 0: not measured, but scaled from the time for other shapes
};

enum class Verdict {
  NotMeasured,
  Fine,
  Refused,   // its results were wrong, or it failed, or it took too long
  NotBuilt,  // its kernel could not be built
};

// A candidate: one way to compute a node or a group, with its price and verdict.
struct CandidateDescription {
  std::vector<std::string> nodes;  // all nodes that it computes
  std::string op;                  // "Conv+Relu"
  std::string backend;
  std::string algorithm;
  int threads = 1;
  std::vector<PlanPort> inputs;
  std::vector<PlanPort> outputs;
  Verdict verdict = Verdict::NotMeasured;
  std::string refusal;               // why it may not be used; "": it may be used
  std::optional<MeasuredTime> time;  // if it may be used and was measured
  bool has_cold_weights = false;     // whether `time` is with weights evicted from the caches
  double price_seconds = 0;          // used by the choice: `time`, or an estimate
  double error = 0;                  // measured, relative to the magnitude of what was summed
  double tolerance = 0;              // maximum of `error`
  double build_seconds = 0;
  int64_t workspace_bytes = 0;
  int64_t pack_bytes = 0;     // of its packed weights
  int64_t library_bytes = 0;  // memory that its library keeps
  bool is_chosen = false;
  // The increase of the optimal price if this candidate is forced: it would have to become faster
  // by more than that to be chosen. Infinity: no placement can use it. 0 for a candidate that is
  // not chosen: it is in a placement of optimal price, but runs of whole plans selected another
  // one. nullopt: not computed (TuningOptions::margin_search_seconds).
  std::optional<double> behind_seconds;
  // The increase of the optimal price if this candidate is forbidden: it stays in the optimal
  // placement unless it becomes slower by more than that. 0 if it is not in the optimal placement.
  std::optional<double> ahead_seconds;
};

// A conversion from one layout to another, with its price for tensors of about `bytes`.
struct ConversionDescription {
  std::string backend;
  std::string from;
  std::string to;
  std::string type;  // "float32"
  int64_t bytes = 0;
  MeasuredTime time;
  std::string refusal;  // why it could not be measured
};

// The expected duration and gain of measuring, estimated before it begins.
struct TuningQuote {
  bool is_known = false;   // a cache has the fastest plan, so nothing has to be measured
  int candidates = 0;      // that will be measured
  double seconds = 0;      // that measuring takes, at most LimitOptions::tune_budget_seconds
  double run_seconds = 0;  // of a run of the plan without measurements, by estimates
  // The share of a run that is likely to be saved, by what other models saved on this machine.
  // nullopt: fewer than three were measured.
  std::optional<double> gain_low = {};
  std::optional<double> gain_high = {};
  // So many runs save as much time as measuring takes; nullopt: not known, or nothing is saved.
  std::optional<int64_t> runs = {};
};

// The measurements of bind().
struct TuningDescription {
  int measured = 0;           // candidates and conversions
  int known = 0;              // those that had been measured before, or occur twice
  int refused = 0;            // how many of the measured ones were refused
  int reused = 0;             // prices of this graph that were known before measuring
  double reused_seconds = 0;  // minimum time that measuring those took
  int offered = 0;            // all candidates; those that cannot win are not measured
  bool is_stopped = false;
  bool is_out_of_time = false;  // LimitOptions::tune_budget_seconds ran out
  double seconds = 0;
  // The sum of the peak resident memory of this process and of the measuring process, which may
  // reach their peaks at different times.
  int64_t peak_bytes = 0;
  std::map<std::string, double> phases;  // seconds by activity: "build", "check", "time"...
  std::vector<std::string> notes;        // remarks, a sentence each
  // The estimate before measuring. nullopt: nothing was measured, or the graph takes so little time
  // that measuring it is over at once.
  std::optional<TuningQuote> quote = {};
  // The share of a run that the fastest plan saves, compared with the plan without measurements;
  // nullopt: the two were not compared.
  std::optional<double> gain = {};
};

// How a contender was found.
enum class ContenderKind {
  Chosen,   // the cheapest by the prices before whole plans ran
  Known,    // the plan of an earlier tuning
  Solved,   // the cheapest by the prices from those runs
  Greedy,   // by the same prices, but node by node
  InOrder,  // without prices, as if nothing were measured
  Alone,    // the cheapest that uses other backends only where one backend has no kernel
  Unsplit,  // the same in the largest groups of that backend
};

// A placement that was run as a whole, in turns with others.
struct ContenderDescription {
  // Its kind, backend and round in words: "solved", "in order", "mylib alone, round 2".
  std::string name = {};
  double seconds = 0;  // of a run
  double low = 0;      // its 95 % confidence interval
  double high = 0;
  ContenderKind kind = ContenderKind::Chosen;
  std::string backend = {};  // of Alone and Unsplit; "" for the other kinds
  int round = 1;             // 1, or the later round of runs whose prices it was found by
};

// The quality of the chosen placement. Prices only count kernels and conversions, so a run may take
// longer than the price or, if caches are warm, less.
struct PlacementDescription {
  double predicted_seconds = 0;  // price of the chosen placement, without build time
  // The price by the times of kernels that run alone, before they were timed in the context of the
  // plan.
  std::optional<double> isolated_seconds;
  std::optional<double> measured_seconds;  // of a run; nullopt: none was timed when binding
  // The time to build the chosen kernels one after the other, as far as it was measured.
  double build_seconds = 0;
  // No placement has a lower price. The price is the time of a run; with
  // TuningOptions::optimize_for "N-runs" plus the Nth part of the time to build its kernels.
  double lower_bound_seconds = 0;
  bool is_proven_optimal = false;  // the solver found a placement with that price
  double gap = 0;                  // relative distance of the price from the bound: 0.02
  double solve_seconds = 0;        // of the solver
  std::vector<ContenderDescription> contenders;  // the fastest first; empty: none was run
};

// A block of memory in the arena: a value together with those that share its memory, or a
// workspace.
struct MemoryBlock {
  std::string name;    // of the value, or of the step that has the workspace
  std::string text;    // "float32 1x64x56x56, nchw16c"; "" for a workspace
  int lower = 0;       // index of the first step that uses it
  int upper = 0;       // index after that of the last step that uses it
  int64_t bytes = 0;   // as its layout stores it
  int64_t offset = 0;  // in the arena
  bool is_workspace = false;
};

// The memory that a plan needs on a device with memory of its own.
struct DeviceMemoryDescription {
  std::string device;  // "mylib:1"
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;
  bool is_proven_smallest = false;
  int64_t weight_bytes = 0;  // of the constants that its steps read
};

// The positions of inner values and workspaces in the arena of the host. Inputs and outputs are not
// part of it, because their memory belongs to the caller of each run.
struct MemoryDescription {
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;    // largest sum of live blocks in this order of steps
  bool is_proven_smallest = false;  // no offsets for these steps give a smaller arena
  int64_t naive_bytes = 0;          // if no values and workspaces shared memory
  int64_t padding_bytes = 0;        // the part of naive_bytes that is padding
  int64_t weight_bytes = 0;         // of the constants that the steps read, packed or not
  int64_t output_bytes = 0;         // of outputs, as far as their sizes are known
  int64_t library_bytes = 0;        // memory that libraries keep
  int64_t total_bytes = 0;          // of arena, weights, outputs and libraries
  // The memory that the plan needs on devices, which the other figures do not include.
  std::vector<DeviceMemoryDescription> devices;
  std::vector<MemoryBlock> blocks;  // by first step
};

struct PlanDescription {
  std::vector<PlanStep> steps;
  // Those of nested graphs (If, Loop, Scan), which have plans of their own. Sizes that only a run
  // knows are planned in the first one.
  std::vector<PlanStep> nested_steps;
  // With costs (BindOptions::optimize or cost_table): all candidates and conversions with their
  // prices, and the quality of the placement.
  std::vector<CandidateDescription> candidates;
  std::vector<ConversionDescription> conversions;
  std::optional<PlacementDescription> placement;
  TuningDescription tuning;
  int64_t arena_bytes = 0;    // inner values and workspaces
  int64_t pack_bytes = 0;     // packed weights that this plan reads
  int64_t library_bytes = 0;  // memory that libraries keep
  MemoryDescription memory;
};

// An executor's plan for one set of input shapes.
struct ShapePlanDescription {
  std::map<std::string, std::vector<int64_t>> shapes;  // of the inputs whose shape is read
  int64_t arena_bytes = 0;                             // needed by this plan
  int64_t pack_bytes = 0;                              // packed weights, shared with other plans
  int kernels = 0;
  int reused_kernels = 0;  // those that another plan had built
  int loaded_kernels = 0;  // those that an earlier process had built and stored
  double seconds = 0;      // time to make the plan; 0 for that of bind()
};

struct ShapesDescription {
  std::vector<ShapePlanDescription> plans;  // most recently used first
  int64_t arena_bytes = 0;  // of the shared arena: the maximum that a plan ever needed
};

// Something that a process keeps in memory for later binds. The least recently used entries beyond
// its bounds are forgotten.
struct HeldCacheDescription {
  std::string name;       // "plans"
  int64_t count = 0;      // entries now
  int64_t max_count = 0;  // 0: no bound
  int64_t bytes = 0;      // of them; 0: not counted
  int64_t max_bytes = 0;  // 0: no bound
};

// The memory that an executor keeps now, and that the process keeps for all executors.
struct HeldMemoryDescription {
  int64_t plan_count = 0;      // for different shapes
  int64_t max_plan_count = 0;  // LimitOptions::most_shapes
  int64_t arena_bytes = 0;     // of the arena that the plans share
  int64_t scratch_bytes = 0;   // temporary memory of reference kernels, kept for later runs
  int64_t library_bytes = 0;   // memory that libraries keep for kernels of the plans
  int64_t pack_bytes = 0;      // packed weights of the model, which its executors share
  std::vector<HeldCacheDescription> caches;  // of the process, for all models on these backends
};

// The candidates of all backends for a model, with verdicts but without times and prices.
struct ModelVerification {
  std::vector<CandidateDescription> candidates;
  TuningDescription tuning;
};

}  // namespace tessera
