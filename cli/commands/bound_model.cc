#include "cli/commands/bound_model.h"

#include <unistd.h>

#include "api/options/argument_text.h"
#include "api/options/shape_ranges.h"
#include "cli/commands/command.h"
#include "cli/inputs/model_source.h"
#include "cli/output/text_table.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kDefaultSeed = 0;

// Printed above the progress line, and only on a terminal.
void say_information(const std::string& message) {
  if (isatty(STDERR_FILENO) == 1) say_warning(message);
}

}  // namespace

WatchedTuning::WatchedTuning(BindOptions& options, Progress& progress, std::string when_stopped)
    : progress_(progress), when_stopped_(std::move(when_stopped)) {
  options.on_progress = [this](const TuneProgress& now) { return goes_on(now); };
  progress_.set_watch([this] { report_once(); });
}

WatchedTuning::~WatchedTuning() {
  progress_.set_watch({});
  report_once();
}

bool WatchedTuning::goes_on(const TuneProgress& now) {
  if (now.can_stop && now.phase != BindPhase::Waiting) has_measured_ = true;
  // Without measurements there is nothing to save, so stop immediately.
  if (!has_measured_) Termination::check();
  const bool is_stopped =
      Termination::was_requested() || (may_be_stopped_ && Interrupt::was_requested());
  // bind() keeps measurements at its end.
  const bool may_be_stopped = now.can_stop || has_measured_;
  if (!is_stopped && may_be_stopped != may_be_stopped_) {
    may_be_stopped_ = false;
    interrupt_.reset();
    if (may_be_stopped) interrupt_.emplace();
    may_be_stopped_ = may_be_stopped;
  }
  report_once();
  progress_.show(now);
  return !is_stopped;
}

void WatchedTuning::report_once() {
  const bool is_interrupted = may_be_stopped_ && Interrupt::was_requested();
  if (!is_interrupted && !(has_measured_ && Termination::was_requested())) return;
  if (is_reported_.exchange(true)) return;
  Progress::say(Termination::was_requested() ? "stopped early; what was measured is kept"
                                             : when_stopped_);
}

void add_model_options(CommandOptions command, CommandBits of, ModelArguments& arguments,
                       MissingInputs missing) {
  command.add_positional("MODEL", arguments.model, kModelHelp);
  add_load_options(command, of, arguments, missing);
}

void add_load_options(CommandOptions command, CommandBits of, ModelArguments& arguments,
                      MissingInputs missing) {
  command.add_repeatable("--input", arguments.inputs,
                         "NAME=FILE: an input from a .npy or .pb file; NAME may be #<index>;\n"
                         "once for each tensor of a list");
  command.add_option("--random", arguments.seed,
                     missing == MissingInputs::AreErrors
                         ? "SEED: use random numbers for inputs without a file"
                         : "SEED: a seed of random numbers for inputs without a file (default 0)");
  command.add_repeatable(
      "--shape", arguments.shapes,
      std::string("NAME=SHAPE: the shape of an input, e.g. 1x3x224x224 or scalar") +
          (of == kBenchCommand ? "; 1x8..128 draws a size for each request" : ""));
  command.add_flag("--strict", arguments.is_strict,
                   "fail if a shape declared inside the model is wrong");
  command.add_flag("--copy-weights", arguments.copies_weights,
                   "copy weights from files beside the model, which may then change");
  command.add_flag(
      "--strict-stamps", arguments.strict_stamps,
      "store the loaded model only if the system confirms that no process was writing to "
      "its files");
  add_bind_options(command, of, arguments.bind);
}

ModelRequest::ModelRequest(const ModelArguments& arguments, MissingInputs missing,
                           const BindOptions& preset, Measuring measuring)
    : arguments_(arguments),
      options_(bind_options_of(arguments.bind, preset)),
      backends_(backends_of(arguments.bind.backend_paths)) {
  if (arguments.seed) seed_ = parse_whole_number("--random", *arguments.seed);
  if (!seed_ && missing == MissingInputs::AreRandom) seed_ = kDefaultSeed;
  // Behind takes the plan of a cache. It would measure only after the first of several runs.
  const bool is_default = !options_.optimize && optimize_of(options_) == Optimize::Now;
  if (is_default && measuring == Measuring::IfAsked) options_.optimize = Optimize::Behind;
}

LoadedModel ModelRequest::load(Clock::time_point origin, bool keeps_all_values) const {
  Span span;
  progress_->show("loading " + arguments_.model);
  Model model = timed(origin, span, [&] {
    return load_model(arguments_.model, {.is_strict = arguments_.is_strict,
                                         .keeps_all_values = keeps_all_values,
                                         .log = say_warning,
                                         .information_log = say_information,
                                         .backends = backends_,
                                         .threads = options_.threads,
                                         .keeps_index = optimize_of(options_) != Optimize::Off,
                                         .strict_stamps = arguments_.strict_stamps,
                                         .copies_weights = arguments_.copies_weights});
  });
  ModelDescription description = model.describe();
  NamedShapes shapes = parse_shapes(arguments_.shapes, description.inputs);
  NamedTensors inputs = read_inputs(arguments_.inputs, description.inputs, shapes);
  if (!seed_) check_all_given(description.inputs, inputs);
  return {.model = std::move(model),
          .description = std::move(description),
          .shapes = std::move(shapes),
          .inputs = std::move(inputs),
          .load = span};
}

BindOptions ModelRequest::options_for(const LoadedModel& loaded) const {
  BindOptions options = options_;
  options.shapes = shapes_to_bind(loaded.shapes, loaded.inputs);
  options.shape_ranges = loaded.shape_ranges;
  options.tune.tuning_inputs = loaded.inputs;
  return options;
}

CacheReport ModelRequest::find_cache(const LoadedModel& loaded) const {
  return loaded.model.find_cache(options_for(loaded));
}

TuningQuote ModelRequest::quote_tuning(const LoadedModel& loaded) const {
  return loaded.model.quote_tuning(options_for(loaded));
}

ModelVerification ModelRequest::verify(const LoadedModel& loaded) const {
  BindOptions options = options_for(loaded);
  const WatchedTuning watched(options, *progress_, "stopped early; not all is checked");
  ModelVerification verification = loaded.model.verify(options);
  Termination::check();
  return verification;
}

std::string ModelRequest::to_onnx(
    const LoadedModel& loaded,
    const std::map<std::string, std::map<std::string, std::string>>& notes) const {
  return loaded.model.to_onnx(options_for(loaded), notes);
}

void ask_for_shapes(const Model& model, const BindOptions& options) {
  try {
    model.describe(with_shapes_at(options, kMiddle).shapes);
  } catch (const Error& error) {
    throw Error(error.kind(), error.where(), error.message() + ", by --shape");
  }
  throw Error(ErrorKind::InvalidArgument, "option '--shape'", "expected shapes of all inputs");
}

void ModelRequest::save_bundle(const LoadedModel& loaded, const std::filesystem::path& file,
                               const std::vector<std::vector<std::string>>& shape_sets) const {
  BindOptions common = options_for(loaded);
  const WatchedTuning watched(common, *progress_, "stopped early; no bundle is written");
  std::vector<BindOptions> binds;
  for (const std::vector<std::string>& set : shape_sets) {
    BindOptions& options = binds.emplace_back(common);
    options.shapes = shapes_to_bind(parse_shapes(set, loaded.description.inputs), loaded.inputs);
  }
  loaded.model.save_bundle(file, binds);
  Termination::check();
}

BoundModel ModelRequest::bind(const LoadedModel& loaded, Clock::time_point origin,
                              const std::vector<std::string>& fetch, bool fetches_step_outputs,
                              bool exits_on_signal) const {
  BindOptions options = options_for(loaded);
  options.fetch = fetch;
  options.run.fetches_step_outputs = fetches_step_outputs;
  Span span;
  Executor executor = timed(origin, span, [&] {
    const WatchedTuning watched(options, *progress_);
    Executor bound = loaded.model.bind(options);
    if (!bound.has_shapes()) ask_for_shapes(loaded.model, options);
    return bound;
  });
  if (exits_on_signal) Termination::check();
  progress_->show("preparing inputs");
  BoundModel bound{std::move(executor), {}, {}, span};
  give_inputs(loaded, bound.executor.inputs(), bound);
  return bound;
}

void ModelRequest::give_inputs(const LoadedModel& loaded,
                               const std::vector<ValueDescription>& inputs,
                               BoundModel& bound) const {
  bound.inputs = loaded.inputs;
  if (seed_) add_random(inputs, *seed_, bound.inputs);
  bound.feeds = feeds_of(inputs, bound.inputs, backends_);
}

}  // namespace tessera::cli
