#include "cli/bound_model.h"

#include "cli/command.h"
#include "cli/named_argument.h"

namespace tessera::cli {
namespace {

constexpr uint64_t kDefaultSeed = 0;

}  // namespace

void add_model_options(CLI::App& command, ModelArguments& arguments, MissingInputs missing) {
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
                                            .threads = options_.threads});
  });
  ModelDescription description = model.describe();
  const NamedShapes shapes = parse_shapes(arguments_.shapes, description.inputs);
  NamedTensors inputs = read_inputs(arguments_.inputs, description.inputs, shapes);
  if (!seed_) check_all_given(description.inputs, inputs);
  return {std::move(model), std::move(description), std::move(inputs), span};
}

BoundModel ModelRequest::bind(const LoadedModel& loaded, Clock::time_point origin,
                              const std::vector<std::string>& fetch,
                              bool fetches_step_outputs) const {
  BindOptions options = options_;
  options.shapes =
      shapes_to_bind(parse_shapes(arguments_.shapes, loaded.description.inputs), loaded.inputs);
  options.fetch = fetch;
  options.fetches_step_outputs = fetches_step_outputs;
  Span span;
  Executor executor = timed(origin, span, [&] { return loaded.model.bind(options); });
  NamedTensors inputs = loaded.inputs;
  if (seed_) add_random(executor.inputs(), *seed_, inputs);
  NamedFeeds feeds = feeds_of(executor.inputs(), inputs);
  return {std::move(executor), std::move(inputs), std::move(feeds), span};
}

}  // namespace tessera::cli
