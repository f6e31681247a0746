// Tessera's C++ interface: load a model, bind it to shapes, run it.
//
//   const tessera::Model model = tessera::load("squeezenet.onnx");
//   tessera::Executor executor = model.bind();
//   const std::vector<tessera::Tensor> outputs = executor.run({{"data_0", picture}});
//
// Everything throws tessera::Error (tessera/error.h). A Model may be used from many threads at
// once; an Executor from one at a time. Executors share the weights of their model.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tessera/cache.h"
#include "tessera/data_type.h"
#include "tessera/error.h"
#include "tessera/sparse_tensor.h"
#include "tessera/tensor.h"

namespace tessera {

// Receives each distinct message once. The library itself never writes to stdout.
using LogCallback = std::function<void(const std::string& message)>;

class Model;
struct LoadOptions;

// Lists a library that can run models, for `tessera backends`.
struct BackendDescription {
  std::string name;
  std::string version;               // "" where it has not been opened
  std::vector<std::string> devices;  // "cpu"
  std::vector<std::string> layouts;  // that it brings
  std::vector<std::string> aliases;
  std::filesystem::path file;  // "" for what is built in or missing
  bool is_usable = false;
  std::string reason;    // why it is not usable, and what to install
  int64_t op_count = 0;  // of the reference: ops with a kernel
};

// The libraries that models may run on: what was built in, what lies in the folder of plug-ins
// beside the library, what TESSERA_BACKEND_PATH names (files or folders, separated by colons), and
// what is added here. Copies share one set. Safe from any thread. A plug-in is opened when it is
// first needed; one that cannot be opened is a line in describe(), never an error. What was
// measured with BindOptions::optimize is known to all models on the same set.
class Backends {
 public:
  Backends();

  // A plug-in, or a folder of them, to be opened when needed. Throws InvalidArgument where there is
  // no such file or folder.
  void add_path(const std::filesystem::path& path);
  // Opens a plug-in now. Throws Unsupported with the reason where it cannot be used.
  void load_backend(const std::filesystem::path& library);

  // All known ones, opened to see whether they can be used.
  std::vector<BackendDescription> describe() const;

 private:
  friend class Model;
  friend class Executor;
  friend Model load(const std::filesystem::path&, const LoadOptions&);
  struct State;
  std::shared_ptr<State> state_;
};

struct LoadOptions {
  // A declared shape of an inner value that contradicts the inferred one is an error, not a
  // warning.
  bool is_strict = false;
  // Every value of the model's file can be fetched: no pass removes one. Costs speed and memory.
  bool keeps_all_values = false;
  // Where warnings go; stderr if empty.
  LogCallback log = {};
  Backends backends = {};
  // Threads for the work at load (constants that are computed); 0 means all cores.
  int threads = 0;
};

// The least that float32 arithmetic may be done in. float32 stays float32 unless asked.
enum class Precision { Float32, BFloat16 };

// Forces nodes onto a backend, and onto one of its algorithms.
struct Pin {
  // A node's name; a prefix of names that ends with '*'; or a metadata property of the model's file
  // "key=value".
  std::string nodes;
  std::string backend;
  std::string algorithm;  // "": any; else a candidate whose algorithm begins so
};

// Keeps a backend from nodes.
struct Exclusion {
  std::string backend;
  std::string op;  // "": every op
};

// How far tuning has come.
struct TuneProgress {
  std::string what;  // "Conv+Relu mylib:winograd"
  size_t done = 0;   // of `total` candidates and conversions
  size_t total = 0;
  double best_seconds = 0;  // of the group of nodes that is measured; 0: none so far
  double seconds_left = 0;  // an estimate
};

// An input and an output that may lie in one memory: what a network remembers from run to run, such
// as past and present keys and values, or running statistics.
struct StatePair {
  std::string input;
  std::string output;
};

struct BindOptions {
  // The shapes of inputs, by name. Needed for inputs whose declared shape has unknown dimensions.
  std::map<std::string, std::vector<int64_t>> shapes = {};
  // Inner values to return after the outputs, by name. Where one no longer exists because a pass
  // removed it, load with keeps_all_values.
  std::vector<std::string> fetch = {};
  // Threads to use; 0 means all cores that the process may use.
  int threads = 0;
  // Where to run: the kind of a device. Only "cpu" so far.
  std::string device = "cpu";
  // The backends to use, best first; the reference is always last. Empty: TESSERA_BACKENDS of the
  // environment (names, separated by commas), else all, in the catalog's order.
  std::vector<std::string> backends = {};
  std::vector<Exclusion> exclusions = {};
  std::vector<Pin> pins = {};
  Precision precision = Precision::Float32;
  // Return every output of every step after `fetch`, without any effect on what is chosen.
  bool fetches_step_outputs = false;
  // In which layouts the caller gives inputs and gets outputs, by name: "row_major" (where not
  // named), "csr" or "row_sparse". Behind a sparse one ":<capacity>" says how many elements (csr)
  // or rows (row_sparse) it has room for; without, a tenth of all. With such, call run_any().
  std::map<std::string, std::string> layouts = {};
  // Outputs that may be bound to memory in which their input lies too (Executor::bind_output). Such
  // an output is written over the input when nothing reads that any more. Of one type and shape.
  std::vector<StatePair> state_pairs = {};
  // Compute with denormals, numbers too small for a normal exponent, as IEEE 754 says. Otherwise
  // all threads read and write them as zero while kernels run: some processors take a hundred
  // cycles for each.
  bool keeps_denormals = false;
  // A sparse value for which a kernel takes dense storage only is an error that names the node;
  // else it is converted, and the log told once.
  bool strict_storage = false;
  // The most that the plan may take; 0: no limit. All of MemoryDescription::total_bytes counts: the
  // arena (inner values and workspaces), the outputs as far as their sizes are known, the constants
  // that steps read, packed or not, and what libraries keep to themselves. Inputs do not count, nor
  // what measuring takes. Candidates that take less give way to faster ones only as far as they
  // fit; bind() throws OutOfMemory where no plan is found that does, with the smallest that was
  // found and whether that is proven to be the least.
  int64_t memory_budget_bytes = 0;
  // Measure what is not known yet and could win: check it against the reference, time it alone and
  // in the whole plan, and choose what is fastest. It takes seconds to a minute, once: what was
  // found out is known to all models on the same Backends, and through caches to other processes.
  // False measures, reads and writes nothing. Not set: true, but for TESSERA_OPTIMIZE=0 in the
  // environment and for binds with a cost_table.
  std::optional<bool> optimize = {};
  // With optimize, where to look for what was found out before (<last digits of the
  // fingerprint>.cache), and to keep what is. "": TESSERA_CACHE_DIR of the environment, else the
  // working folder. The user's folder comes second in both. What is damaged, or does not fit, is as
  // if it were not there.
  std::filesystem::path cache_dir = {};
  // With optimize, throws CacheMiss, which says what differs, instead of measuring; writes nothing.
  bool frozen = false;
  // With optimize, measures also what caches know, and replaces it there.
  bool retune = false;
  // A file with what Executor::costs() gave, to choose by; "": none. Throws InvalidArgument where
  // it cannot be read or is another machine's, Corrupt where it is damaged.
  std::filesystem::path cost_table = {};
  // For the true values that candidates are judged by, by name; empty: drawn.
  std::map<std::string, Tensor> tuning_inputs = {};
  // With optimize, measure everything that is offered, also what could not win.
  bool tune_all = false;
  // With optimize, how long to measure, the building of kernels included; 0: as long as it takes,
  // but for graphs that take less than a millisecond a tenth of a second, and for many of them on
  // the same Backends less. What is known when the time is spent decides.
  double tune_budget_seconds = 0;
  // With costs, how long one search for the cheapest choice may take. What is found by then is
  // chosen, and PlacementDescription::gap says how much dearer it may be. 0: what it takes, seconds
  // for the largest graphs.
  double solve_budget_seconds = 0;
  // A candidate that needs longer for one run is not used. Building one may take a minute, or
  // three times as long as its backend announces.
  double candidate_timeout_seconds = 10;
  // Measure in this process, which a library that hangs or crashes takes with it. Otherwise one of
  // its own is started for that (tessera-worker, installed beside the library); where it cannot be,
  // the log says so and this process does it. It ends with the thread that calls bind().
  bool in_process = false;
  // With costs: how long to look for what each candidate lacks to be chosen
  // (CandidateDescription::behind_seconds). A solution of the placement each; what comes next for
  // what was chosen first.
  double margin_search_seconds = 0;
  // Called often while measuring. Gives false to stop: what was measured counts.
  std::function<bool(const TuneProgress&)> on_progress = {};
};

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
  int rounds = 0;
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
  // Infinity: there is no choice with it. What is 0 and not chosen would gain less than noise.
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

// A choice of candidates that was run as a whole beside others.
struct ContenderDescription {
  std::string name;    // "solved", "greedy", "mylib alone"
  double seconds = 0;  // of a run
};

// How good the choice by price is. A price is of kernels and conversions alone, so a run may take
// longer or, where caches are warm, less.
struct PlacementDescription {
  double predicted_seconds = 0;  // the price of what was chosen
  // The same by what each kernel took alone, before it was timed amid the others.
  std::optional<double> isolated_seconds;
  std::optional<double> measured_seconds;  // of a run of it; nullopt: none was timed when binding
  double lower_bound_seconds = 0;          // no choice has a lower price
  bool is_proven_optimal = false;          // the solver found a choice whose price is that bound
  double gap = 0;            // the part by which predicted_seconds is above the bound: 0.02
  double solve_seconds = 0;  // that the solver took
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

// What the backends offer for a model, checked: candidates without times or prices.
struct ModelVerification {
  std::vector<CandidateDescription> candidates;
  TuningDescription tuning;
};

class Executor {
 public:
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;
  ~Executor();

  // Runs on `inputs`, by name, and gives the outputs in the model's order, then the fetched values.
  // Inputs that nothing reads may be left out. Throws InvalidArgument where an input is missing,
  // unknown, or not of the type and shape that was bound (naming both).
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs);

  // The same where BindOptions::layouts named sparse ones: such inputs and outputs are
  // SparseTensors, all others Tensors. Throws InvalidArgument also where more is stored than was
  // bound, and where an output becomes more than its layout has room for. run() gives no sparse
  // outputs.
  std::vector<AnyTensor> run_any(const std::map<std::string, AnyTensor>& inputs);

  // Has all later runs read an input, or write an output or a fetched value, in the caller's own
  // memory, which `memory` refers to (Tensor's constructor with an owner, Tensor::over) and keeps
  // alive. It may begin at any multiple of the element's size; where a kernel asks for more, the
  // values are copied. Not given to run() again; what run() is given counts for that run. Throws
  // InvalidArgument where the name is unknown, the type, shape or layout is not what was bound, and
  // for outputs that are sparse or whose size only running shows.
  void bind_input(const std::string& name, const AnyTensor& memory);
  void bind_output(const std::string& name, Tensor memory);
  // Ends that for all of them.
  void clear_bindings();

  // A run where all inputs that are read and all outputs are bound. It allocates nothing, but for
  // the first one after binding, and what libraries do. As run() does, it throws InvalidArgument
  // where bound memory of an output overlaps that of another output, or that of an input with which
  // it is no state pair. Nobody else writes to inputs.
  void run_bound();

  // Ends the run that is going on, if one is, before its next step: it throws Cancelled, and what
  // outputs hold is undefined. The executor is fit for the next run. From any thread, and from a
  // signal's handler.
  void cancel();
  // The same for every later run that takes longer than so many seconds; 0: none does. Throws
  // InvalidArgument below 0.
  void set_time_limit(double seconds);

  // What a step takes beside its kernel, measured for some milliseconds: all steps with an empty
  // function each, over their number; 0 without any.
  double measure_dispatch_ns();

  // Inputs and outputs with the bound shapes; outputs are followed by the fetched values.
  const std::vector<ValueDescription>& inputs() const;
  const std::vector<ValueDescription>& outputs() const;

  int threads() const;

  const PlanDescription& plan() const;
  // All costs that binding measured, read from a file, or knew of this graph's candidates, as JSON
  // (docs/formats/costs.md); "" without any.
  const std::string& costs() const;
  // What bind() did, in order.
  const std::vector<StageRecord>& stages() const;

  // Keeps what bind() found out, or knew: all of it, or of one `type`: "all", "plan", or a
  // backend's name or alias. In a file of the same fingerprint that replaces this type alone.
  // Throws InvalidArgument for an unknown type, for a file that is none of Tessera's, and where
  // this was bound without optimize; Unsupported for a backend that this machine does not have;
  // DeviceFailed where the file cannot be written.
  void save_cache(const std::filesystem::path& file, const std::string& type = "all") const;
  // Plans anew with what the file knows, and measures what is missing. Not while it runs. What was
  // bound to the caller's memory is not any more. Throws as
  // save_cache() does, InvalidArgument where the file is missing or does not fit (saying what
  // differs), and Corrupt; then all is as it was.
  void load_cache(const std::filesystem::path& file, const std::string& type = "all");
  const CacheReport& cache_report() const;

  // One record for each step of the newest run, in order. Recording is off until switched on.
  void record_steps(bool is_on);
  const std::vector<StepRecord>& steps() const;

 private:
  friend class Model;
  struct State;
  explicit Executor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Model {
 public:
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Plans for the given shapes. Throws InvalidArgument (unknown name, shape that contradicts the
  // model, dimension still unknown), InvalidModel (shapes that do not fit together) or OutOfMemory
  // (more than the machine has, found before anything is allocated).
  Executor bind(const BindOptions& options = {}) const;

  // Checks everything that the backends offer for these shapes against the reference, on the
  // tuning inputs. Throws as bind() does.
  ModelVerification verify(const BindOptions& options = {}) const;

  // The graph that bind() plans for `options`, rewritten and with its weights, as the bytes of an
  // ONNX file. `notes` are added to the metadata_props of its nodes, by the node's name; what no
  // node is called is passed over. Throws as bind() does, and Unsupported where the graph has no
  // form as a file.
  std::string to_onnx(
      const BindOptions& options,
      const std::map<std::string, std::map<std::string, std::string>>& notes = {}) const;

  // What the newest bind() with optimize found out, as Executor::save_cache() has it. Throws
  // InvalidArgument where there was none.
  void save_cache(const std::filesystem::path& file, const std::string& type = "all") const;
  // For the binds that follow, which take what fits them; several files add up. Throws as
  // Executor::load_cache() does; what depends on shapes and options only a bind finds out, which
  // then tells the log.
  void load_cache(const std::filesystem::path& file, const std::string& type = "all");
  // Of the newest bind() with optimize; empty before.
  CacheReport cache_report() const;
  // What a bind with optimize would find: nothing is bound or measured, and nobody waited for.
  CacheReport find_cache(const BindOptions& options = {}) const;

  ModelDescription describe() const;
  // What load() did, in order.
  const std::vector<StageRecord>& stages() const;
  // The same with shapes bound, so that sizes and work are known.
  ModelDescription describe(const std::map<std::string, std::vector<int64_t>>& shapes) const;

 private:
  friend Model load(const std::filesystem::path&, const LoadOptions&);
  friend class Executor;
  struct State;
  explicit Model(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Loads an ONNX file. Throws InvalidArgument (cannot be read), InvalidModel, Unsupported (an op or
// version that this build does not know), OutOfMemory.
Model load(const std::filesystem::path& file, const LoadOptions& options = {});

// "0.1.0"
std::string version();

}  // namespace tessera
