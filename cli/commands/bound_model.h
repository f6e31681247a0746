// Shared by `run`, `bench` and `explain`: loading a model, reading its inputs, binding it.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/bind_arguments.h"
#include "cli/arguments/command_options.h"
#include "cli/inputs/run_inputs.h"
#include "cli/output/span.h"
#include "cli/process/interrupt.h"
#include "cli/reports/progress.h"
#include "tessera/tessera.h"

namespace tessera::cli {

struct ModelArguments {
  std::string model;
  std::vector<std::string> inputs;
  std::optional<std::string> seed;  // as given: "-1" and "0x1" are rejected later
  std::vector<std::string> shapes;
  bool is_strict = false;
  bool copies_weights = false;
  bool strict_stamps = false;
  BindArguments bind;

  bool operator==(const ModelArguments&) const = default;
};

// Whether inputs without a file are errors (unless --random is given), or get random numbers.
enum class MissingInputs : uint8_t { AreErrors, AreRandom };

// Whether a bind without --optimize or --no-optimize waits for measuring, if no cache has the plan.
enum class Measuring : uint8_t { ByDefault, IfAsked };

// Adds --input, --random, --shape, --strict, --copy-weights, --strict-stamps and those of
// add_bind_options().
void add_load_options(CommandOptions command, CommandBits of, ModelArguments& arguments,
                      MissingInputs missing);

// Adds MODEL and those of add_load_options().
void add_model_options(CommandOptions command, CommandBits of, ModelArguments& arguments,
                       MissingInputs missing);

// While a WatchedTuning exists, binding with its options shows progress, and Ctrl-C, SIGTERM and
// SIGHUP end measuring early, so that the measurements are saved; then the line `when_stopped` is
// written to stderr. Before anything was measured, Ctrl-C ends the program, and SIGTERM and SIGHUP
// make bind() throw Cancelled.
class WatchedTuning {
 public:
  WatchedTuning(BindOptions& options, Progress& progress,
                std::string when_stopped = "stopped early; using what is known");
  ~WatchedTuning();
  WatchedTuning(const WatchedTuning&) = delete;
  WatchedTuning& operator=(const WatchedTuning&) = delete;

 private:
  bool goes_on(const TuneProgress& now);
  void report_once();

  Progress& progress_;
  std::string when_stopped_;
  Termination termination_;
  std::optional<Interrupt> interrupt_;
  std::atomic<bool> has_measured_ = false;
  std::atomic<bool> may_be_stopped_ = false;
  std::atomic<bool> is_reported_ = false;
};

struct LoadedModel {
  Model model;
  ModelDescription description;
  NamedShapes shapes;                                               // of the --shape arguments
  std::map<std::string, std::vector<SizeRange>> shape_ranges = {};  // the same
  NamedTensors inputs;  // inputs that were read from files
  Span load;
};

// Throws InvalidArgument for an executor that was bound without all shapes: a command has no first
// run that could decide.
[[noreturn]] void ask_for_shapes(const Model& model, const BindOptions& options);

// An executor with all its inputs.
struct BoundModel {
  Executor executor;
  NamedTensors inputs;
  NamedFeeds feeds;  // the same tensors, in the layouts in which inputs are bound
  Span bind;
};

// Arguments that were parsed, so that mistakes in them are reported before the model is loaded.
class ModelRequest {
 public:
  // Options that were not given are as in `preset`. Throws InvalidArgument if one cannot be parsed.
  ModelRequest(const ModelArguments& arguments, MissingInputs missing,
               const BindOptions& preset = without_swap(),
               Measuring measuring = Measuring::ByDefault);

  // Times are measured from `origin`. Throws Error.
  LoadedModel load(Clock::time_point origin, bool keeps_all_values) const;

  // Reports what a bind with `optimize` would find in caches.
  CacheReport find_cache(const LoadedModel& loaded) const;

  // The expected time and gain of a bind with optimize.
  TuningQuote quote_tuning(const LoadedModel& loaded) const;

  // Checks the candidates of all backends, with the options with which bind() binds.
  ModelVerification verify(const LoadedModel& loaded) const;

  // The graph that bind() plans, as the bytes of an ONNX file. `notes` are added to the nodes with
  // these names.
  std::string to_onnx(const LoadedModel& loaded,
                      const std::map<std::string, std::map<std::string, std::string>>& notes) const;

  // Writes a bundle; each of the sets of --shape arguments is bound for it, in place of the shapes
  // of the arguments. Throws Error; Cancelled if the user stops it.
  void save_bundle(const LoadedModel& loaded, const std::filesystem::path& file,
                   const std::vector<std::vector<std::string>>& shape_sets) const;

  // Binds to the shapes of `loaded` and of the inputs' files; `fetch` and
  // `fetches_step_outputs` are those of BindOptions. Throws Error; also Cancelled if SIGTERM or
  // SIGHUP came meanwhile, unless `exits_on_signal` is false.
  BoundModel bind(const LoadedModel& loaded, Clock::time_point origin,
                  const std::vector<std::string>& fetch = {}, bool fetches_step_outputs = false,
                  bool exits_on_signal = true) const;

  // Gives `bound` the inputs of a run: those from files, and random ones with the shapes of
  // `inputs`.
  void give_inputs(const LoadedModel& loaded, const std::vector<ValueDescription>& inputs,
                   BoundModel& bound) const;

  // The seed of random inputs; nullopt: there are none.
  std::optional<uint64_t> seed() const { return seed_; }

  // The backends that the model may run on.
  const Backends& backends() const { return backends_; }

  // The progress line of all stages.
  Progress& progress() const { return *progress_; }

 private:
  BindOptions options_for(const LoadedModel& loaded) const;

  std::unique_ptr<Progress> progress_ = std::make_unique<Progress>();
  ModelArguments arguments_;
  BindOptions options_;
  Backends backends_;
  std::optional<uint64_t> seed_;
};

}  // namespace tessera::cli
