#include "cli/bound_model.h"

#include "cli/command.h"
#include "cli/named_argument.h"
#include "cli/text_table.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kDefaultSeed = 0;
// A line that is written over must not wrap.
constexpr size_t kProgressColumns = 79;

}  // namespace

WatchedTuning::WatchedTuning(BindOptions& options) {
  options.on_progress = [this](const TuneProgress& progress) {
    std::string text = "measuring " + std::to_string(progress.done + 1) + " of " +
                       std::to_string(progress.total) + ", about " +
                       decimal_text(progress.seconds_left, 0) +
                       " s left: " + printable(progress.what);
    if (progress.best_seconds > 0) {
      text += ", best " + decimal_text(progress.best_seconds * 1e6, 1) + " us";
    }
    progress_.show(shorten(text, kProgressColumns));
    return !interrupt_.is_interrupted();
  };
}

void add_model_options(CLI::App& command, ModelArguments& arguments, MissingInputs missing,
                       Prices prices) {
  command.add_option("MODEL", arguments.model, "an ONNX file")->required();
  add_repeatable(command, "--input", arguments.inputs,
                 "NAME=FILE.npy or NAME=FILE.pb; NAME may be #<index>");
  command.add_option("--random", arguments.seed,
                     missing == MissingInputs::AreErrors
                         ? "SEED: random numbers for the inputs that have no file"
                         : "SEED of the random numbers for inputs without a file (default 0)");
  add_repeatable(command, "--shape", arguments.shapes,
                 "NAME=1x3x224x224 or NAME=scalar: the shape of an input");
  command.add_flag("--strict", arguments.is_strict,
                   "a declared inner shape that is wrong is an error");
  add_bind_options(command, arguments.bind);
  if (prices == Prices::AreOptions) add_price_options(command, arguments.bind);
}

ModelRequest::ModelRequest(const ModelArguments& arguments, MissingInputs missing)
    : arguments_(arguments),
      options_(bind_options_of(arguments.bind)),
      backends_(backends_of(arguments.bind.backend_paths)) {
  if (arguments.seed) seed_ = parse_whole_number("--random", *arguments.seed);
  if (!seed_ && missing == MissingInputs::AreRandom) seed_ = kDefaultSeed;
}

LoadedModel ModelRequest::load(Clock::time_point origin, bool keeps_all_values) const {
  Span span;
  Model model = timed(origin, span, [&] {
    return tessera::load(arguments_.model, {.is_strict = arguments_.is_strict,
                                            .keeps_all_values = keeps_all_values,
                                            .backends = backends_,
                                            .threads = options_.threads,
                                            .keeps_index = options_.optimize});
  });
  ModelDescription description = model.describe();
  const NamedShapes shapes = parse_shapes(arguments_.shapes, description.inputs);
  NamedTensors inputs = read_inputs(arguments_.inputs, description.inputs, shapes);
  if (!seed_) check_all_given(description.inputs, inputs);
  return {std::move(model), std::move(description), std::move(inputs), span};
}

BindOptions ModelRequest::options_for(const LoadedModel& loaded) const {
  BindOptions options = options_;
  options.shapes =
      shapes_to_bind(parse_shapes(arguments_.shapes, loaded.description.inputs), loaded.inputs);
  options.tuning_inputs = loaded.inputs;
  return options;
}

CacheReport ModelRequest::find_cache(const LoadedModel& loaded) const {
  return loaded.model.find_cache(options_for(loaded));
}

ModelVerification ModelRequest::verify(const LoadedModel& loaded) const {
  BindOptions options = options_for(loaded);
  const WatchedTuning watched(options);
  return loaded.model.verify(options);
}

std::string ModelRequest::to_onnx(
    const LoadedModel& loaded,
    const std::map<std::string, std::map<std::string, std::string>>& notes) const {
  return loaded.model.to_onnx(options_for(loaded), notes);
}

BoundModel ModelRequest::bind(const LoadedModel& loaded, Clock::time_point origin,
                              const std::vector<std::string>& fetch,
                              bool fetches_step_outputs) const {
  BindOptions options = options_for(loaded);
  options.fetch = fetch;
  options.fetches_step_outputs = fetches_step_outputs;
  std::optional<WatchedTuning> watched;
  if (options.optimize != false) watched.emplace(options);
  Span span;
  Executor executor = timed(origin, span, [&] { return loaded.model.bind(options); });
  NamedTensors inputs = loaded.inputs;
  if (seed_) add_random(executor.inputs(), *seed_, inputs);
  NamedFeeds feeds = feeds_of(executor.inputs(), inputs);
  return {std::move(executor), std::move(inputs), std::move(feeds), span};
}

}  // namespace tessera::cli
