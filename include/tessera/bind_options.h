// The options of Model::bind(). docs/options.md lists them with their command-line flags and Python
// keywords, which come from the table in src/api/options/option_table.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/descriptions.h"
#include "tessera/tensor.h"

namespace tessera {

// The lowest precision in which float32 arithmetic may be done.
enum class Precision { Float32, BFloat16 };

// How kernels may treat NaN and infinities. Exact: if an op's definition gives NaN, so does every
// kernel; if it gives an infinity, a kernel gives an infinity or NaN; elements that read neither
// are not affected. Exception: in products by Strassen's algorithm, which only a lower precision
// allows, NaN and infinities in one row or column reach a second one. Fast: kernels may give a
// finite number instead, such as a maximum that drops NaN.
enum class NanMode { Exact, Fast };

// How large errors of kernels may be. Bounded: at most the bound that each op states
// (docs/accuracy.md). Fast: also kernels whose errors exceed it on some inputs, such as large
// values beside small ones.
enum class Accuracy { Bounded, Fast };

// Forces nodes onto a backend, and onto one of its algorithms.
struct Pin {
  // A node's name; a prefix of names that ends with '*'; or a metadata property of the model's file
  // "key=value".
  std::string nodes;
  std::string backend;
  std::string algorithm;  // the beginning of the algorithm's name; "": any
};

// Forbids a backend to compute nodes.
struct Exclusion {
  std::string backend;
  std::string op;  // "": every op
};

// An input and an output that may share memory. They hold state that lasts from run to run, such as
// past and present keys and values, or running statistics.
struct StatePair {
  std::string input;
  std::string output;
};

// A phase of binding. The model and earlier results decide which phases come, and how often; the
// phases from Starting to Comparing belong to measuring.
enum class BindPhase : uint8_t {
  Waiting,      // for a process that measures this model, or for others to compute less
  Preparing,    // caches are read, shapes set, backends asked what they can do
  Starting,     // the process that measures, and how fast the processor is
  Reference,    // reference kernels compute the values that candidates are compared with
  Measuring,    // candidates and conversions
  Checking,     // whether candidates agree with the reference, by verify(), which measures nothing
  Choosing,     // the cheapest placement
  Building,     // kernels
  TimingSteps,  // runs of a whole plan, for the time of each of its steps
  Comparing,    // runs of whole plans by turns
  Margins,      // how far each candidate is from being chosen
  Packing,      // the plan is laid out, and weights are packed
  Storing,      // results are written to files
};

// "measuring candidates", "comparing whole plans".
std::string_view name(BindPhase phase);

// The progress of a bind.
struct TuneProgress {
  std::string what;         // "Conv+Relu mylib:winograd"; "" if there is nothing to name
  size_t done = 0;          // of `total`, in this phase
  size_t total = 0;         // as far as is known now; 0: not known
  double best_seconds = 0;  // of the group of nodes that is measured; 0: none so far
  // Estimated time for the rest of the phase, based on its progress. Not set before the first
  // progress, and if the phase takes longer than was estimated.
  std::optional<double> seconds_left = {};
  BindPhase phase = BindPhase::Measuring;
  // How long the phase may still take, by tune_budget_seconds or another limit; not set: no limit.
  std::optional<double> seconds_allowed = {};
  // Whether measuring is going on, which ends early if the callback returns false.
  bool can_stop = false;
  // Whether results may add to `total`, and so to seconds_left.
  bool may_grow = false;
  // In phase Starting: the expected duration and gain of measuring. Not set in other phases.
  std::optional<TuningQuote> quote = {};
  // In phase Comparing: the contender whose plan runs; its times are not known yet, and are 0. Not
  // set in other phases.
  std::optional<ContenderDescription> contender = {};
};

// The devices to run on, and rules for how kernels may compute.
struct RunOptions {
  // The devices that may be used besides the processor, by name ("mylib", "mylib:1"). Empty: all
  // that the backends have. {"cpu"}: none. With costs, a device is used where it pays.
  std::vector<std::string> devices = {};
  // How many steps of a device may be enqueued before the host waits for them; 0: as many as the
  // results allow, so the host waits only for what it reads.
  int max_bulk_steps = 0;
  std::vector<Exclusion> exclusions = {};
  std::vector<Pin> pins = {};
  Precision precision = Precision::Float32;
  NanMode nan = NanMode::Exact;
  Accuracy accuracy = Accuracy::Bounded;
  // Offer kernels that compute several nodes in one pass and that are compiled for them. False:
  // only the groups that libraries have kernels for.
  bool fuse = true;
  // In which layouts the caller gives inputs and gets outputs, by name: "row_major" (the default),
  // "csr" or "row_sparse". "row_major@<device>": in memory of a device (Backends::new_tensor()). A
  // sparse one may end in ":<capacity>", the number of elements (csr) or rows (row_sparse) to make
  // room for; without, a tenth of all. With sparse ones, call run_any().
  std::map<std::string, std::string> layouts = {};
  // A sparse value for which a kernel takes dense storage only is an error that names the node.
  // Otherwise the value is converted, and the log gets one message.
  bool strict_storage = false;
  // Compute with denormals, numbers too small for a normal exponent, as IEEE 754 says. Otherwise
  // all threads read and write them as zero while kernels run: some processors take a hundred
  // cycles for each.
  bool keeps_denormals = false;
  // Outputs that may be bound to the memory of an input (Executor::bind_output). Such an output is
  // written over the input once nothing reads that any more. Both have one type and shape.
  std::vector<StatePair> state_pairs = {};
  // Return every output of every step after `fetch`, without any effect on what is chosen.
  bool fetches_step_outputs = false;
  // Run only on inputs of the bound shapes; others are an error that names both. Otherwise a run on
  // other shapes switches to a plan for these.
  bool fixed_shapes = false;
  // Run inputs of other shapes than the bound ones by one plan for all of them, if there can be
  // one: its kernels take sizes when they run, so a new shape costs microseconds. False: by a plan
  // for each set of shapes.
  bool families = true;
};

// Options for measuring, and for the choice among candidates.
struct TuningOptions {
  // With costs, what the chosen plan minimises. "latency": the time of a run. "N-runs", with N from
  // 1 to 1,000,000,000: the time of a process that builds the chosen kernels and runs N times, so
  // a kernel that is slow to build has to pay for that. "start": the same as "1-runs".
  std::string optimize_for = "latency";
  // A file with the text that Executor::costs() returned, to choose by; "": none. bind() throws
  // InvalidArgument if it cannot be read or is of another machine, Corrupt if it is damaged.
  std::filesystem::path cost_table = {};
  // Values of inputs, by name, on which candidates are compared with the reference. Others are
  // random.
  std::map<std::string, Tensor> tuning_inputs = {};
  // With optimize, measure all offered candidates, also those that could not win.
  bool tune_all = false;
  // Measure in this process, which ends if a library hangs or crashes. Otherwise a process is
  // started to measure in (tessera-worker, installed beside the library); if it cannot be started,
  // the log says so and this process measures. It ends with the thread that calls bind().
  bool in_process = false;
  // With optimize, describe in Executor::plan() all candidates with their prices, and all refusals
  // of backends, even if a cache knows the plan. Otherwise a bind that finds its plan asks the
  // backends for nothing else, which makes it fast.
  bool describes_candidates = false;
  // With costs: how long to compute how far each candidate is from being chosen
  // (CandidateDescription::behind_seconds). Each takes one solution of the placement; the closest
  // rivals of what was chosen come first.
  double margin_search_seconds = 0;
};

// Options for reading and writing caches. For binds with `optimize`.
struct CacheOptions {
  // The folder in which to look for earlier results (<last digits of the fingerprint>.cache) and to
  // keep new ones. "": TESSERA_CACHE_DIR of the environment, else the working folder. The user's
  // folder comes second in both cases. A damaged or unfit file counts as missing.
  std::filesystem::path cache_dir = {};
  // Throw CacheMiss, which says what differs, instead of measuring; write nothing.
  bool frozen = false;
  // Measure again even if caches know the results, and replace these there.
  bool retune = false;
  // If a cache knows the plan, and that its kernels are slow to build: start with another plan that
  // it has for this graph, build the faster one in the background after the first run, and switch
  // between two runs. Outputs differ from then on as much as kernels do; Executor::stages() says
  // when. Not with fetches_step_outputs, describes_candidates or a memory_budget. False: outputs
  // are equal to the bit from the first run on.
  bool swap = true;
};

// Limits of the memory and the time for binding and running.
struct LimitOptions {
  // The maximum size of the plan; 0: no limit. It limits MemoryDescription::total_bytes: the arena
  // (inner values and workspaces), the outputs as far as their sizes are known, the constants that
  // steps read, packed or not, and the memory that libraries keep for themselves. Inputs and memory
  // for measuring do not count. Smaller candidates replace faster ones as far as necessary; if no
  // plan fits, bind() throws OutOfMemory with the smallest that was found, and whether that is
  // proven to be the minimum.
  int64_t memory_budget_bytes = 0;
  // With optimize, how long to measure, including building kernels; then the known prices decide.
  // 0: as long as it takes, but half a second for graphs that take less than 0.2 ms, and less
  // for many of these on the same Backends.
  double tune_budget_seconds = 0;
  // With costs, how long one search for the cheapest choice may take. Then the best choice that was
  // found is taken, and PlacementDescription::gap says how far it may be from the optimum. 0: no
  // limit; the largest graphs take seconds.
  double solve_budget_seconds = 0;
  // A candidate that needs longer for one run is not used. Building one may take a minute, or
  // three times as long as its backend announces.
  double candidate_timeout_seconds = 10;
  // For how many sets of input shapes an executor keeps plans; at least 1. The least recently used
  // one is evicted.
  int most_shapes = 8;
  // The most iterations of one execution of a Loop or Scan; one more is InvalidArgument. 0: no
  // limit. Loops of a few iterations whose number the model says are unrolled, and do not count.
  int64_t max_iterations = 0;
};

// Whether and when binding measures results that are not known yet: kernels that could win are
// checked against the reference and timed alone, then whole plans run against each other, and the
// fastest wins. That takes seconds, once: results are known to all models on the same Backends, and
// through caches to other processes.
enum class Optimize : uint8_t {
  Off,  // measure, read and write nothing; choose by the order of backends
  Now,  // bind() waits for it, unless a cache has the plan
  // bind() returns at once: with the plan of a cache, or else with that of Off. From the second run
  // on, a thread of low priority measures while no run is going on, and the fastest plan replaces
  // the first one, as with CacheOptions::swap. Without swap, nothing is measured.
  Behind,
};

// The sizes that a dimension of an input may have: `low`, and every `step` from there on up to
// `high`, which is one of them.
struct SizeRange {
  int64_t low = 0;
  int64_t high = 0;
  int64_t step = 1;

  bool is_single() const { return low == high; }
  bool contains(int64_t size) const {
    return low <= size && size <= high && (size - low) % step == 0;
  }
  bool operator==(const SizeRange&) const = default;
};

// The most frequently used options are at the top; the others are in groups:
//   model.bind({.shapes = {{"x", {1, 3}}}, .threads = 1});
//   model.bind({.threads = 1, .run = {.nan = NanMode::Fast}, .cache = {.frozen = true}});
struct BindOptions {
  // The shapes of inputs, by name. Without those of inputs whose declared shape has unknown
  // dimensions, the first run decides.
  std::map<std::string, std::vector<int64_t>> shapes = {};
  // Shapes of inputs whose sizes lie in ranges, by name; a single size is a range with equal ends.
  // bind() makes a plan for the middle of the ranges (their geometric mean; the largest sizes if
  // the model refuses those), and one for all other sizes, if there can be one, whose memory
  // suffices for the largest ones. A run with a size outside of its range throws InvalidArgument.
  // Dimensions to which the model gives one name have one range.
  std::map<std::string, std::vector<SizeRange>> shape_ranges = {};
  // More sets of shapes, each of which gets a plan in bind(), as `shapes` does.
  std::vector<std::map<std::string, std::vector<int64_t>>> more_shapes = {};
  // Inner values to return after the outputs, by name. If a pass removed one, load with
  // keeps_all_values.
  std::vector<std::string> fetch = {};
  // Threads to use; 0 means all cores that the process may use.
  int threads = 0;
  // The backends to use, best first; the reference is always last. Empty: TESSERA_BACKENDS of the
  // environment (names, separated by commas), else all, in the catalog's order, except those that
  // backends/catalog.json marks "only_if_named".
  std::vector<std::string> backends = {};
  // Not set: Now, but Off for binds with a cost_table and with TESSERA_OPTIMIZE=0 in the
  // environment; see optimize_of().
  std::optional<Optimize> optimize = {};
  RunOptions run = {};
  TuningOptions tune = {};
  CacheOptions cache = {};
  LimitOptions limits = {};
  // Called, on the thread that binds, when a phase begins and often while measuring. Return false
  // to stop measuring: the results so far are used, and nothing more is measured. Not called by a
  // first run that binds: cancel() stops it.
  std::function<bool(const TuneProgress&)> on_progress = {};
};

// BindOptions::optimize, or its default if it is not set.
Optimize optimize_of(const BindOptions& options);

}  // namespace tessera
