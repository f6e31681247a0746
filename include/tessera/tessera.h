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
#include <string_view>
#include <vector>

#include "tessera/cache.h"
#include "tessera/descriptions.h"
#include "tessera/error.h"
#include "tessera/sparse_tensor.h"
#include "tessera/tensor.h"

namespace tessera {

// Receives each distinct message once. The library itself never writes to stdout.
using LogCallback = std::function<void(const std::string& message)>;

class Model;
struct LoadOptions;
struct ModelBytes;

// Why a library can or cannot run models.
enum class BackendStatus {
  Usable,
  NotBuilt,        // Tessera was built without its plug-in, or the plug-in's file is missing
  LibraryMissing,  // the library itself is not installed, or too old
  Refused,         // the plug-in was found, and cannot be used
};

// "usable", "not built", "library missing", "refused".
const char* name(BackendStatus status);

// Lists a library that can run models, for `tessera backends`.
struct BackendDescription {
  std::string name;
  std::string version;               // "" where it has not been opened
  std::vector<std::string> devices;  // "cpu"
  std::vector<std::string> layouts;  // that it brings
  std::vector<std::string> aliases;
  std::filesystem::path file;  // "" for what is built in or missing
  bool is_usable = false;
  BackendStatus status = BackendStatus::Refused;
  std::string reason;    // why it is not usable
  std::string remedy;    // what to install, or which command builds it; "" where nothing helps
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
  friend Model load(ModelBytes, const LoadOptions&);
  struct State;
  std::shared_ptr<State> state_;
};

// A model that is in memory already.
struct ModelBytes {
  std::string bytes;  // of an ONNX file
  // How errors and ModelDescription::file call it.
  std::string name = "the given bytes";
  // Where its external data is looked for; "": in the working folder.
  std::filesystem::path folder = {};
};

struct LoadOptions {
  // A declared shape of an inner value that contradicts the inferred one is an error, not a
  // warning.
  bool is_strict = false;
  // Every value of the model's file can be fetched: no pass removes one. Costs speed and memory.
  bool keeps_all_values = false;
  // Where warnings go; stderr if empty.
  LogCallback log = {};
  // Where goes what is good to know; nowhere if empty. Before this process measures for the first
  // time, and that takes more than a second: for about how long, where the plan is kept, and how to
  // switch it off.
  LogCallback information_log = {};
  Backends backends = {};
  // Threads for the work at load (constants that are computed); 0 means all cores.
  int threads = 0;
  // Keep in the user's folder what the model came to, with its packed weights, once a bind with
  // optimize has found a plan; and take it from there as long as the model's files are as they
  // were. Not set: true, but for TESSERA_OPTIMIZE=0 in the environment.
  std::optional<bool> keeps_index = {};
  // Keep and use that only where the system granted a read lease on every file of the model
  // (fcntl(2), F_SETLEASE) while it was read: nobody had it open for writing. Only the owner of a
  // file gets one, and not on every file system. Not set: a writer who is seen keeps it from being
  // kept, but what the system cannot tell does not.
  bool strict_stamps = false;
  // Copy weights from files beside the model into memory instead of mapping these files. It costs
  // as much memory as there are weights, and the time to read them. A mapped file must not be
  // written to or cut as long as the model or an executor of it lives: bind() finds that and throws
  // DeviceFailed, but while bind() or a run reads it, the values change, or the system ends the
  // process (SIGBUS). To replace a file by renaming another one does no harm.
  bool copies_weights = false;
};

// The least that float32 arithmetic may be done in. float32 stays float32 unless asked.
enum class Precision { Float32, BFloat16 };

// What kernels may do with NaN and infinities. Exact: where the ops' definitions give NaN, so
// does every kernel; where they give an infinity, an infinity or NaN; and elements that read none
// are what they are without; but for convolutions by Winograd's algorithm, where what is read by
// one element reaches those of the same tile of 4 x 4. Fast: kernels that give a finite number
// there are allowed too, such as a maximum that drops NaN.
enum class NanMode { Exact, Fast };

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

// What binding is doing. Which phases come, and how often, depends on the model and on what is
// known; from Starting to Comparing they belong to measuring.
enum class BindPhase : uint8_t {
  Waiting,      // for another process, which measures this model
  Preparing,    // caches are read, shapes set, backends asked what they can do
  Starting,     // the process that measures, and how fast the processor is
  Reference,    // reference kernels compute the values that candidates are compared with
  Measuring,    // candidates and conversions
  Checking,     // whether candidates agree with the reference, by verify(), which measures nothing
  Choosing,     // the cheapest placement
  Building,     // kernels
  TimingSteps,  // runs of a whole plan, for the time of each of its steps
  Comparing,    // runs of whole plans by turns
  Margins,      // what each candidate lacks to be chosen
  Packing,      // the plan is laid out, and weights are packed
  Storing,      // what was found out is written down
};

// "measuring candidates", "comparing whole plans".
std::string_view name(BindPhase phase);

// How far binding has come.
struct TuneProgress {
  std::string what;         // "Conv+Relu mylib:winograd"; "" where there is nothing to name
  size_t done = 0;          // of `total`, in this phase
  size_t total = 0;         // as far as is known now; 0: not known
  double best_seconds = 0;  // of the group of nodes that is measured; 0: none so far
  // That the phase still takes, judged by what of it was done. Not set where nothing was, and where
  // it takes longer than was estimated.
  std::optional<double> seconds_left = {};
  BindPhase phase = BindPhase::Measuring;
  // That the phase may take at most, by tune_budget_seconds or another limit; not set: no limit
  // that it keeps to.
  std::optional<double> seconds_allowed = {};
  // Whether measuring goes on, which ends early where the callback gives false.
  bool can_stop = false;
  // Whether what is found may add to `total`, and so to seconds_left.
  bool may_grow = false;
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
  NanMode nan = NanMode::Exact;
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
  // With costs, what the choice is to be the best for. "latency": the time of a run. "N-runs", with
  // N from 1 to 1,000,000,000: the time of a process that builds the chosen kernels and runs N
  // times, so that a kernel that is slow to build has to earn that. "start": "1-runs".
  std::string optimize_for = "latency";
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
  // Where a cache knows the plan, and that its kernels are slow to build: begin with another one
  // that it has of this graph, build the faster one beside the runs after the first, and change
  // over between two runs. Outputs differ from then on as much as kernels do; Executor::stages()
  // says when. Not with fetches_step_outputs, describes_candidates or a memory_budget. False:
  // outputs are equal to the bit from the first run on.
  bool swap = true;
  // With optimize, describe in Executor::plan() all candidates with their prices, and what others
  // refused, also where a cache knows the plan. Otherwise a bind that finds its plan asks for
  // nothing else, which is what makes it quick.
  bool describes_candidates = false;
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
  // Run only on inputs of the shapes that were bound; others are an error that names both. Else a
  // run on other shapes switches to a plan for these.
  bool fixed_shapes = false;
  // For how many sets of input shapes an executor keeps plans; at least 1. With one more, that goes
  // whose last run was the longest ago.
  int most_shapes = 8;
  // Called, on the thread that binds, when a phase begins and often while measuring. Gives false to
  // stop: what was measured counts, and nothing more is measured.
  std::function<bool(const TuneProgress&)> on_progress = {};
};

class Executor {
 public:
  Executor(Executor&&) noexcept;
  Executor& operator=(Executor&&) noexcept;
  ~Executor();

  // Runs on `inputs`, by name, and gives the outputs in the model's order, then the fetched values.
  // Inputs that nothing reads may be left out. Throws InvalidArgument where an input is missing,
  // unknown, or not of the type that was bound (naming both).
  //
  // Inputs of other shapes, where the model leaves them open, switch the executor to a plan for
  // these: in microseconds where it has one, else it plans as bind() does, but measures nothing.
  // What was chosen stays chosen where it is offered for the new shapes; the rest is chosen by the
  // known prices in proportion to the work, or by a plan that caches know. All plans share one
  // arena, the weights, and the kernels that are not built for what differs. Then inputs(),
  // outputs(), plan() and steps() are those of the newest run, and what they gave before is gone.
  // Throws as Model::bind() does where a shape contradicts the model; the executor is as it was.
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs);

  // The same where BindOptions::layouts named sparse ones: such inputs and outputs are
  // SparseTensors, all others Tensors. Throws InvalidArgument also where more is stored than was
  // bound, and where an output becomes more than its layout has room for. run() gives no sparse
  // outputs.
  std::vector<AnyTensor> run_any(const std::map<std::string, AnyTensor>& inputs);

  // Has all later runs read an input, or write an output or a fetched value, in the caller's own
  // memory, which `memory` refers to (Tensor's constructor with an owner, Tensor::over) and keeps
  // alive. It may begin at any multiple of the element's size; where a kernel asks for more, the
  // values are copied. Not given to run() again; what run() is given counts for that run. Memory of
  // another shape is for runs that come to it: the shapes of a run are those of all that it is
  // given, or that is bound, and it throws InvalidArgument where an output is bound to memory of
  // another shape than these lead to. Throws InvalidArgument where the name is unknown, the type
  // or layout is not what was bound, nor the shape where there is no other, and for outputs that
  // are sparse or whose size only running shows.
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
  // The same for every later run that takes longer than so many seconds, planning for new shapes
  // included; 0: none does. What was planned stays. Throws InvalidArgument below 0.
  void set_time_limit(double seconds);

  // Waits for the plan that BindOptions::swap is about, and has the next run take it. Nothing to
  // wait for where none is to come.
  void wait_for_swap();

  // What a step takes beside its kernel, measured for some milliseconds: all steps with an empty
  // function each, over their number; 0 without any.
  double measure_dispatch_ns();

  // Inputs and outputs with the shapes of the newest run, before any those that were bound; outputs
  // are followed by the fetched values.
  const std::vector<ValueDescription>& inputs() const;
  const std::vector<ValueDescription>& outputs() const;

  int threads() const;

  // For the same shapes.
  const PlanDescription& plan() const;
  // The sets of input shapes that there are plans for.
  ShapesDescription shapes() const;
  // All costs that binding measured, read from a file, or knew of this graph's candidates, as JSON
  // (docs/formats/costs.md); "" without any.
  const std::string& costs() const;
  // What bind() did, in order.
  const std::vector<StageRecord>& stages() const;

  // Keeps what bind() found out, or knew: all of it, or of one `type`: "all", "plan", or a
  // backend's name or alias: its prices and verdicts, and its compiled kernels. In a file of the
  // same model that replaces this alone. Throws InvalidArgument for an unknown type, for a file
  // that is none of Tessera's, where there is nothing of this type to save, and where this was
  // bound without optimize; Unsupported for a backend that this machine does not have; DeviceFailed
  // where the file cannot be written. With `include_packs` also the packed weights, which only the
  // same user on a machine with the same processor and key can use.
  void save_cache(const std::filesystem::path& file, const std::string& type = "all",
                  bool include_packs = false) const;
  // Plans anew, for the shapes that bind() was given, with what the file knows, and measures what
  // is missing. Not while it runs. What was bound to the caller's memory is not any more. Throws as
  // save_cache() does, InvalidArgument where the file is missing or does not fit (saying what
  // differs), and Corrupt; then all is as it was.
  void load_cache(const std::filesystem::path& file, const std::string& type = "all");
  // Of the plan that runs now, where it was bound with optimize.
  CacheReport cache_report() const;

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
  // model, dimension still unknown), InvalidModel (shapes that do not fit together), OutOfMemory
  // (more than the machine has, found before anything is allocated) or DeviceFailed (a file of the
  // model has changed since load(), and is needed again).
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
  void save_cache(const std::filesystem::path& file, const std::string& type = "all",
                  bool include_packs = false) const;
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
  friend Model load(ModelBytes, const LoadOptions&);
  friend class Executor;
  struct State;
  explicit Model(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Loads an ONNX file. Throws InvalidArgument (cannot be read), InvalidModel, Unsupported (an op or
// version that this build does not know), OutOfMemory.
Model load(const std::filesystem::path& file, const LoadOptions& options = {});

// The same from memory. The Model keeps the bytes, because a bind may read weights again. Plans and
// prices are cached as for a file, but no index is kept (LoadOptions::keeps_index).
Model load(ModelBytes model, const LoadOptions& options = {});

// "0.1.0"
std::string version();

}  // namespace tessera
