#include "api/options/option_table.h"

#include <algorithm>
#include <type_traits>

#include "api/options/bind_options.h"
#include "api/options/cache_ingredients.h"
#include "base/errors/check.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The part of BindOptions that is a struct of this type, and its name.
template <class Group, class Options>
auto& group_of(Options& options) {
  if constexpr (std::is_same_v<Group, RunOptions>) {
    return options.run;
  } else if constexpr (std::is_same_v<Group, TuningOptions>) {
    return options.tune;
  } else if constexpr (std::is_same_v<Group, CacheOptions>) {
    return options.cache;
  } else if constexpr (std::is_same_v<Group, LimitOptions>) {
    return options.limits;
  } else {
    return options;
  }
}

template <class Group>
constexpr std::string_view kGroupName = {};
template <>
constexpr std::string_view kGroupName<RunOptions> = "run";
template <>
constexpr std::string_view kGroupName<TuningOptions> = "tune";
template <>
constexpr std::string_view kGroupName<CacheOptions> = "cache";
template <>
constexpr std::string_view kGroupName<LimitOptions> = "limits";

template <auto kMember, class Group, class T>
constexpr OptionField field_at(T Group::* /*member*/) {
  return {.group = kGroupName<Group>,
          .typed = Field<T>{.get = [](const BindOptions& options) -> const T& {
                              return group_of<Group>(options).*kMember;
                            },
                            .edit = [](BindOptions& options) -> T& {
                              return group_of<Group>(options).*kMember;
                            }}};
}

// field<&RunOptions::nan>()
template <auto kMember>
constexpr OptionField field() {
  return field_at<kMember>(kMember);
}

constexpr std::string_view kWhere = "Where and how it runs";
constexpr std::string_view kHow = "How the plan is chosen";

// Sets of commands. Those of kChoosing choose a plan by measured times, and run it or describe it.
// Commands of kMeasuring may measure. Commands of kCaching use caches.
constexpr uint16_t kChoosing =
    kRunCommand | kBenchCommand | kExplainCommand | kDiffCommand | kInspectCommand;
constexpr uint16_t kRunning = kChoosing | kTuneCommand | kBundleCommand;
constexpr uint16_t kMeasuring = kRunning | kVerifyCommand;
constexpr uint16_t kCaching = kRunning | kCacheCommand;
constexpr uint16_t kAll = kMeasuring | kCacheCommand;

// Names of enumerators in their order.
constexpr std::string_view kOptimizeModes[] = {"off", "now", "behind"};
constexpr std::string_view kPrecisions[] = {"float32", "bfloat16"};
constexpr std::string_view kNanModes[] = {"exact", "fast"};
constexpr std::string_view kAccuracies[] = {"bounded", "fast"};
constexpr std::string_view kOffOn[] = {"off", "on"};

// As ThreadPool has at most.
constexpr uint32_t kMaxThreads = 4096;

constexpr uint32_t kMaxBulkSteps = 1'000'000'000;

constexpr Range kNoLimitOrMore = {.min = 0, .expected = "0 (no limit) or more"};
constexpr Range kNoneOrMore = {.min = 0, .expected = "0 (none) or more"};

void check_optimize_for(const BindOptions& options) { runs_per_build(options.tune.optimize_for); }

constexpr BindOption kOptions[] = {
    {.name = "shapes",
     .keyword = "shapes",
     .field = field<&BindOptions::shapes>(),
     .help =
         "The shapes of inputs, by name, where the model leaves dimensions open; a size may be a "
         "range, such as range(1, 513), and a list of such dictionaries plans for each. Without "
         "shapes, the first run decides.",
     .ingredient = {.position = 1, .name = "inputs", .write = inputs_text}},
    {.name = "shape_ranges",
     .field = field<&BindOptions::shape_ranges>(),
     .help = "Shapes of inputs whose sizes lie in ranges, by name. In Python, they are in shapes."},
    {.name = "more_shapes",
     .field = field<&BindOptions::more_shapes>(),
     .help = "More sets of shapes, each with a plan of its own. In Python, shapes is a list then."},
    {.name = "fetch",
     .keyword = "fetch",
     .field = field<&BindOptions::fetch>(),
     .help = "Names of inner values to return after the outputs.",
     .ingredient = {.position = 2, .name = "fetch", .write = fetch_text}},
    {.name = "threads",
     .keyword = "threads",
     .field = field<&BindOptions::threads>(),
     .help = "Threads to use; 0 means all cores that the process may use.",
     .flag = {.name = "--threads",
              .value = "N",
              .help = "threads to use (default 0: all cores)",
              .heading = kWhere,
              .commands = kAll,
              .max = kMaxThreads},
     .ingredient = {.position = 15, .name = "threads", .write = threads_text}},
    {.name = "backends",
     .keyword = "backends",
     .field = field<&BindOptions::backends>(),
     .help = "Names of the backends to use, best first; the reference is always last. Empty: "
             "TESSERA_BACKENDS of the environment, else all.",
     .flag = {.name = "--backends",
              .value = "LIST",
              .help = "use only these, preferred ones first, e.g. native,reference; reference is "
                      "always added at the end (default: the environment's TESSERA_BACKENDS, else "
                      "all that 'tessera backends' lists)",
              .heading = kWhere,
              .commands = kAll},
     .ingredient = {.position = 8, .name = "backends", .write = backends_text}},
    {.name = "pins",
     .keyword = "pins",
     .field = field<&RunOptions::pins>(),
     .help = "Pin objects, each of which forces nodes onto a backend.",
     .flag = {.name = "--pin",
              .value = "NODES=BACKEND[:ALGORITHM]",
              .help = "run these nodes on this backend. NODES: a node's name, the beginning of "
                      "names and '*', or a metadata property key=value; the last '=' ends it. "
                      "ALGORITHM: its beginning is enough. E.g. conv1=native:winograd, "
                      "'layer1/*=reference', stage=head=native",
              .heading = kWhere,
              .commands = kAll,
              .is_repeatable = true},
     .ingredient = {.position = 9, .name = "pins"}},
    {.name = "exclusions",
     .keyword = "exclude",
     .field = field<&RunOptions::exclusions>(),
     .help = "Exclusion objects, each of which keeps a backend from nodes.",
     .flag = {.name = "--exclude",
              .value = "BACKEND[:OP]",
              .help = "do not use this backend, or not for this op, e.g. native:Conv",
              .heading = kWhere,
              .commands = kAll,
              .is_repeatable = true},
     .ingredient = {.position = 10, .name = "exclusions"}},
    {.name = "precision",
     .keyword = "precision",
     .field = field<&RunOptions::precision>(),
     .help = "The lowest precision that float32 may be computed in: 'float32' or 'bfloat16'.",
     .flag = {.name = "--precision",
              .value = "TYPE",
              .help = "float32 (default) or bfloat16, the lowest precision that float32 may be "
                      "computed in",
              .heading = kWhere,
              .commands = kAll},
     .choices = kPrecisions,
     .ingredient = {.position = 13, .name = "precision"}},
    {.name = "nan",
     .keyword = "nan",
     .field = field<&RunOptions::nan>(),
     .help = "'exact': NaN stays NaN, no kernel gives a finite number if the op's definition gives "
             "an infinity, and other elements are not affected (with a lower precision, "
             "a second row or column may be). 'fast': kernels that may lose NaN and infinities are "
             "allowed too, such as a Relu that returns 0 for NaN.",
     .flag = {.name = "--nan",
              .value = "MODE",
              .help = "exact (default): NaN stays NaN, and no kernel gives a finite number for an "
                      "infinity; fast: also kernels that may lose NaN and infinities",
              .heading = kWhere,
              .commands = kAll},
     .choices = kNanModes,
     .ingredient = {.position = 14, .name = "nan"}},
    {.name = "accuracy",
     .keyword = "accuracy",
     .field = field<&RunOptions::accuracy>(),
     .help = "'bounded': the error of each kernel is at most the bound that its op states "
             "(docs/accuracy.md). 'fast': kernels whose errors exceed it on some inputs are "
             "allowed too, such as convolutions in which one large element disturbs its "
             "neighbours.",
     .flag = {.name = "--accuracy",
              .value = "MODE",
              .help = "bounded (default): errors are at most the bounds that ops state; fast: also "
                      "kernels that exceed them on some inputs",
              .heading = kWhere,
              .commands = kAll},
     .choices = kAccuracies,
     .ingredient = {.position = 17, .name = "accuracy"}},
    {.name = "devices",
     .keyword = "devices",
     .field = field<&RunOptions::devices>(),
     .help = "Names of the devices that may be used besides the processor, such as 'mylib:1'. "
             "Empty: all that the backends have. ['cpu']: none.",
     .flag = {.name = "--device",
              .value = "LIST",
              .help = "devices that may be used besides the processor, e.g. mylib,mylib:1; cpu for "
                      "none (default: all that the backends have)",
              .heading = kWhere,
              .commands = kAll},
     .ingredient = {.position = 5, .name = "device", .write = devices_text}},
    {.name = "max_bulk_steps",
     .keyword = "max_bulk_steps",
     .field = field<&RunOptions::max_bulk_steps>(),
     .help =
         "How many steps of a device may be enqueued before the host waits for them. 0: as many "
         "as the results allow.",
     .flag = {.name = "--max-bulk",
              .value = "N",
              .help = "steps of a device to enqueue before waiting for them (default 0: as many as "
                      "the results allow)",
              .heading = kWhere,
              .commands = kChoosing,
              .max = kMaxBulkSteps},
     .range = kNoLimitOrMore},
    {.name = "layouts",
     .keyword = "layouts",
     .field = field<&RunOptions::layouts>(),
     .help = "Layouts of inputs and outputs, by name: 'row_major' (the default), 'csr' or "
             "'row_sparse'; 'row_major@<device>' in memory of a device. A sparse one may end in "
             "':<capacity>', the number of elements or rows "
             "to make room for; the default is a tenth of all.",
     .flag = {.name = "--layout",
              .value = "NAME=LAYOUT[:CAPACITY]",
              .help =
                  "store an input or output in this sparse layout, csr or row_sparse, with room "
                  "for CAPACITY elements or rows (default: a tenth of all), or with "
                  "row_major@DEVICE in memory of that device",
              .heading = kWhere,
              .commands = kAll,
              .is_repeatable = true},
     .ingredient = {.position = 3, .name = "layouts"}},
    {.name = "strict_storage",
     .keyword = "strict_storage",
     .field = field<&RunOptions::strict_storage>(),
     .help = "Fail if a kernel needs a sparse value as a dense tensor. Otherwise the value is "
             "converted, and the log gets one message.",
     .flag = {.name = "--strict-storage",
              .help = "fail if a kernel needs a sparse value as a dense tensor",
              .heading = kWhere,
              .commands = kAll},
     .ingredient = {.position = 4, .name = "strict storage"}},
    {.name = "keeps_denormals",
     .keyword = "keep_denormals",
     .field = field<&RunOptions::keeps_denormals>(),
     .help = "Compute with denormals, numbers too small for a normal exponent, as IEEE 754 says. "
             "Otherwise all threads read and write them as zero while kernels run.",
     .flag = {.name = "--keep-denormals",
              .help = "compute with denormal numbers (default: they are set to zero)",
              .heading = kWhere,
              .commands = kAll},
     .ingredient = {.position = 12, .name = "denormals", .write = denormals_text}},
    {.name = "fuse",
     .keyword = "fuse",
     .field = field<&RunOptions::fuse>(),
     .help = "Offer kernels that are compiled for several nodes at once. False: only the groups of "
             "nodes for which libraries have kernels.",
     .flag = {.name = "--fuse",
              .help = "offer kernels that are compiled for groups of nodes (default)",
              .heading = kHow,
              .commands = kMeasuring,
              .negation = "--no-fuse",
              .negation_help = "offer only the groups for which libraries have kernels"},
     .ingredient = {.position = 16, .name = "fuse"}},
    {.name = "state_pairs",
     .keyword = "state_pairs",
     .field = field<&RunOptions::state_pairs>(),
     .help = "Pairs of an input and an output that bind_input() and bind_output() will give one "
             "memory: what a network remembers from run to run. Checks that they have one type and "
             "shape. Any output may share memory with inputs, without being declared.",
     .ingredient = {.position = 11, .name = "state pairs"}},
    {.name = "fetches_step_outputs",
     .keyword = "fetch_step_outputs",
     .field = field<&RunOptions::fetches_step_outputs>(),
     .help = "Return every output of every step after those of `fetch`."},
    {.name = "fixed_shapes",
     .keyword = "fixed_shapes",
     .field = field<&RunOptions::fixed_shapes>(),
     .help = "Run only on inputs of the bound shapes; others are an error."},
    {.name = "families",
     .keyword = "families",
     .field = field<&RunOptions::families>(),
     .help = "Run inputs of other shapes than the bound ones by one plan for all of them, if there "
             "can be one, whose kernels take sizes when they run. False: by a plan for each."},
    {.name = "memory_budget_bytes",
     .keyword = "memory_budget_bytes",
     .field = field<&LimitOptions::memory_budget_bytes>(),
     .help =
         "The most that MemoryDescription.total_bytes of a plan may be; smaller kernels replace "
         "faster ones if necessary. 0: no limit. If there are plans for several shapes, it "
         "holds for each.",
     .flag = {.name = "--memory-budget",
              .value = "SIZE",
              .help = "what intermediate values, workspaces, outputs, weights and libraries may "
                      "take together, e.g. 512M or 1.5G; faster kernels are replaced by smaller "
                      "ones if necessary; K is 1024 bytes, M 1024 K, and so on (default: no limit)",
              .heading = kWhere,
              .commands = kRunning},
     .range = kNoLimitOrMore,
     .ingredient = {.position = 6, .name = "memory budget"}},
    {.name = "most_shapes",
     .keyword = "most_shapes",
     .field = field<&LimitOptions::most_shapes>(),
     .help = "For how many sets of input shapes an executor keeps plans. The least recently used "
             "one is evicted.",
     .range = Range{.min = 1, .expected = "at least 1"}},
    {.name = "max_iterations",
     .keyword = "max_iterations",
     .field = field<&LimitOptions::max_iterations>(),
     .help = "The most iterations of one execution of a Loop or Scan; one more is an error. 0: no "
             "limit. Loops of a few iterations whose number the model says are unrolled, and do "
             "not count.",
     .range = kNoLimitOrMore},
    {.name = "optimize",
     .keyword = "optimize",
     .field = field<&BindOptions::optimize>(),
     .help =
         "'now' or True: check the kernels that could win against the reference, time them alone "
         "and in whole plans, and choose what is fastest, unless a cache has the plan. All models "
         "on the same Backends share the results, and Executor.costs returns them. 'behind': "
         "return at once, with the plan of a cache or else with that of 'off'; from the second run "
         "on, measure at low priority while no run is going on, and swap to the fastest plan. "
         "'off' or False: measure, read and write nothing. None: 'now', but 'off' with a "
         "cost_table and with TESSERA_OPTIMIZE=0 in the environment.",
     .flag = {.name = "--optimize",
              .help =
                  "measure the kernels that could be fastest and choose by time, unless a cache "
                  "has the plan (default, unless --costs or TESSERA_OPTIMIZE=0 is given; run only "
                  "uses what a cache has)",
              .heading = kHow,
              .commands = kChoosing | kBundleCommand,
              .negation = "--no-optimize",
              .negation_help = "measure nothing; read and write no cache"},
     .choices = kOptimizeModes},
    {.name = "frozen",
     .keyword = "frozen",
     .field = field<&CacheOptions::frozen>(),
     .help = "With optimize: raise CacheMiss instead of measuring, and write nothing.",
     .flag = {.name = "--frozen",
              .help = "fail if no cache has the plan, instead of measuring",
              .heading = kHow,
              .commands = kChoosing}},
    {.name = "optimize_for",
     .keyword = "optimize_for",
     .field = field<&TuningOptions::optimize_for>(),
     .help =
         "With costs, what the plan minimises: 'latency', the time of a run; 'N-runs', the time "
         "of a process that builds the chosen kernels and runs N times; 'start', the same as "
         "'1-runs'.",
     .flag = {.name = "--optimize-for",
              .value = "GOAL",
              .help =
                  "latency, the fastest run (default); N-runs, e.g. 100-runs, the shortest time "
                  "to build kernels and run N times; start, the same as 1-runs",
              .heading = kHow,
              .commands = kCaching},
     .check = check_optimize_for,
     .ingredient = {.position = 7, .name = "optimize for", .write = optimize_for_text}},
    {.name = "cache_dir",
     .keyword = "cache_dir",
     .field = field<&CacheOptions::cache_dir>(),
     .help =
         "With optimize: where to look for what was found out before, and to keep what is found "
         "out now. '': TESSERA_CACHE_DIR of the environment, else the working folder. The "
         "user's folder comes second.",
     .flag = {.name = "--cache-dir",
              .value = "DIR",
              .help = "read and write caches there (default: the environment's TESSERA_CACHE_DIR, "
                      "else the working folder; then the user's cache folder)",
              .heading = kHow,
              .commands = kCaching}},
    {.name = "cost_table",
     .keyword = "cost_table",
     .field = field<&TuningOptions::cost_table>(),
     .help = "A file with what Executor.costs gave, to choose by.",
     .flag = {.name = "--costs",
              .value = "FILE",
              .help = "choose by the measured times in it, which 'tessera tune --output' wrote",
              .heading = kHow,
              .commands = kChoosing}},
    {.name = "candidate_timeout_seconds",
     .keyword = "candidate_timeout_seconds",
     .field = field<&LimitOptions::candidate_timeout_seconds>(),
     .help = "A candidate that needs longer for one run is not used.",
     .flag = {.name = "--candidate-timeout",
              .value = "SECONDS",
              .help = "the longest time that one run of a candidate may take (default 10)",
              .heading = kHow,
              .commands = kMeasuring},
     .range = Range{.min = 0, .excludes_min = true, .expected = "more than 0"}},
    {.name = "tune_budget_seconds",
     .keyword = "tune_budget_seconds",
     .field = field<&LimitOptions::tune_budget_seconds>(),
     .help = "The time limit of measuring, building kernels included. After it, the plan is chosen "
             "by what is known. 0: no limit.",
     .flag = {.name = "--tune-budget",
              .value = "SECONDS",
              .help = "time limit of measuring, building kernels included; the plan is then chosen "
                      "by what is known (default: no limit)",
              .heading = kHow,
              .commands = kMeasuring},
     .range = kNoLimitOrMore},
    {.name = "solve_budget_seconds",
     .keyword = "solve_budget_seconds",
     .field = field<&LimitOptions::solve_budget_seconds>(),
     .help = "How long one search for the cheapest choice may take. Then the best choice that was "
             "found is taken, and plan().placement.gap says how far it may be from the optimum. 0: "
             "no limit.",
     .flag = {.name = "--solve-budget",
              .value = "SECONDS",
              .help = "what one search for the cheapest plan may take; then the best plan found is "
                      "used (default: no limit)",
              .heading = kHow,
              .commands = kMeasuring},
     .range = kNoLimitOrMore},
    {.name = "in_process",
     .keyword = "in_process",
     .field = field<&TuningOptions::in_process>(),
     .help = "Measure in this process, which ends if a library crashes. Otherwise a process is "
             "started to measure in.",
     .flag = {.name = "--in-process",
              .help = "measure in this process, which ends if a library crashes (default: in a "
                      "separate process, tessera-worker)",
              .heading = kHow,
              .commands = kMeasuring}},
    {.name = "swap",
     .keyword = "swap",
     .field = field<&CacheOptions::swap>(),
     .help =
         "If a cache knows the plan, and that its kernels are slow to build: start with another "
         "plan, build the fastest one in the background after the first run, and switch "
         "between two runs. Outputs differ from then on as much as kernels do. False: all "
         "outputs are equal to the bit.",
     .flag = {.name = "--swap",
              .value = "on|off",
              .help = "on, start with a plan that is built quickly, if a cache has one, and switch "
                      "to the fastest plan when it is built (default); off, wait for the fastest "
                      "plan, so that outputs of all runs are equal to the bit",
              .heading = kHow,
              .commands = kRunCommand | kBenchCommand},
     .choices = kOffOn},
    {.name = "retune",
     .keyword = "retune",
     .field = field<&CacheOptions::retune>(),
     .help = "With optimize: measure also what caches know, and replace it there."},
    {.name = "tune_all",
     .keyword = "tune_all",
     .field = field<&TuningOptions::tune_all>(),
     .help = "Measure everything that is offered, also what could not win.",
     .flag = {.name = "--all",
              .help = "measure all candidates and conversions, also those that cannot win"}},
    {.name = "tuning_inputs",
     .keyword = "tuning_inputs",
     .field = field<&TuningOptions::tuning_inputs>(),
     .help = "Arrays by input, on which candidates are compared with the reference. Others are "
             "random."},
    {.name = "margin_search_seconds",
     .keyword = "margin_search_seconds",
     .field = field<&TuningOptions::margin_search_seconds>(),
     .help = "With costs, how long to compute margins: how much faster each candidate would have "
             "to be to be chosen.",
     .range = kNoneOrMore},
    {.name = "describes_candidates",
     .field = field<&TuningOptions::describes_candidates>(),
     .help = "With optimize: describe all candidates with their prices, even if a cache knows the "
             "plan."},
    {.name = "on_progress",
     .keyword = "on_progress",
     .field = field<&BindOptions::on_progress>(),
     .help = "Called with a TuneProgress when a phase begins and often while measuring. False "
             "stops: what was measured counts. `total` is 0 and `seconds_left` None while they are "
             "not known."},
};

// As Python writes a value.
struct PythonText {
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(const std::optional<Optimize>& value) const {
    return value ? (*this)(*value) : "None";
  }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(int value) const { return std::to_string(value); }
  std::string operator()(double value) const {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    return text.ends_with('.') ? text + "0" : text;
  }
  std::string operator()(const std::string& value) const { return "'" + value + "'"; }
  std::string operator()(const std::filesystem::path& value) const {
    return (*this)(value.string());
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  std::string operator()(Enum value) const {
    return (*this)(std::string(choices[static_cast<size_t>(value)]));
  }
  template <class Item>
  std::string operator()(const std::vector<Item>& /*empty*/) const {
    return "()";
  }
  std::string operator()(const std::map<std::string, Tensor>& /*empty*/) const { return "{}"; }
  // Maps of texts and of shapes, functions.
  template <class Other>
    requires(!std::is_enum_v<Other>)
  std::string operator()(const Other& /*empty*/) const {
    return "None";
  }

  std::span<const std::string_view> choices;
};

void check_range(const BindOption& option, const BindOptions& options) {
  std::visit(
      [&]<class T>(const Field<T>& value_field) {
        if constexpr (std::is_arithmetic_v<T>) {
          const T value = value_field.get(options);
          const auto number = static_cast<double>(value);
          const Range& range = *option.range;
          // Not a number is in no range.
          if (range.excludes_min ? number > range.min : number >= range.min) return;
          throw Error(
              ErrorKind::InvalidArgument, std::string(option.name),
              "expected " + std::string(range.expected) + ", found " + std::to_string(value));
        }
      },
      option.field.typed);
}

}  // namespace

std::span<const BindOption> bind_options() { return kOptions; }

const BindOption& bind_option(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kOptions), std::end(kOptions),
                   [&](const BindOption& option) { return option.name == name; });
  TESSERA_CHECK(found != std::end(kOptions), "options are asked for by names of the table");
  return *found;
}

std::string path_of(const BindOption& option) {
  return (option.field.group.empty() ? "" : std::string(option.field.group) + ".") +
         std::string(option.name);
}

std::string default_text(const BindOption& option) {
  const BindOptions defaults;
  return std::visit(
      [&](const auto& value_field) {
        return PythonText{option.choices}(value_field.get(defaults));
      },
      option.field.typed);
}

void check_options(const BindOptions& options) {
  for (const BindOption& option : kOptions) {
    if (option.range) check_range(option, options);
    if (option.check != nullptr) option.check(options);
  }
}

}  // namespace tessera
