// `tessera inspect`: describes a model without running it.
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments/bind_arguments.h"
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/inputs/model_source.h"
#include "cli/inputs/run_inputs.h"
#include "cli/output/staged_files.h"
#include "cli/plans/memory_report.h"
#include "cli/reports/bundle_report.h"
#include "cli/reports/inspect_report.h"
#include "cli/reports/operators_report.h"
#include "tessera/inspect.h"
#include "tessera/tessera.h"
#include "verify/offered_ops.h"

namespace tessera::cli {
namespace {

struct InspectOptions {
  std::string model;
  std::vector<std::string> shapes;
  InspectParts parts;
  BindArguments bind;
  bool shows_memory = false;
  std::string svg_file;  // "" for none
  bool lists_operators = false;
  bool is_strict = false;
  bool is_json = false;
};

NamedShapes shapes_of(const InspectOptions& options, const ModelDescription& description) {
  return parse_shapes(options.shapes, description.inputs);
}

// Binds the model, because backends and memory are known only after binding.
CommandResult inspect_memory(const InspectOptions& options) {
  if (options.parts.has_passes || options.parts.has_weights) {
    throw Error(ErrorKind::InvalidArgument, "command line",
                "expected --passes and --weights without --memory and --svg, found both");
  }
  BindOptions bind = bind_options_of(options.bind);
  check_writable_file("--svg", options.svg_file);
  Progress progress;
  progress.show("loading " + options.model);
  const Model model =
      load_model(options.model, {.is_strict = options.is_strict,
                                 .log = say_warning,
                                 .backends = backends_of(options.bind.backend_paths),
                                 .threads = bind.threads});
  bind.shapes = shapes_of(options, model.describe());
  MemoryReport report = [&] {
    const WatchedTuning watched(bind, progress);
    const Executor executor = model.bind(bind);
    if (!executor.has_shapes()) ask_for_shapes(model, bind);
    Termination::check();
    return memory_report_of(executor);
  }();
  report.model = model.describe().file;
  if (!options.svg_file.empty()) {
    StagedFiles files;
    files.write_text(options.svg_file, memory_svg(report));
    files.commit();
  }
  if (options.is_json) return {kFine, json_text(memory_json(report))};
  std::string text = memory_text(report, stdout_style());
  if (!options.svg_file.empty()) text += wrapped("wrote " + options.svg_file, stdout_style());
  return {kFine, text};
}

// An option without any effect is an error, with any value.
void check_binds_nothing(BindArguments arguments) {
  arguments.backend_paths.clear();  // needed for the ops of plug-ins
  if (arguments == BindArguments{}) return;
  throw Error(ErrorKind::InvalidArgument, "command line",
              "expected --memory or --svg beside options that decide where and how a model runs, "
              "found neither");
}

CommandResult list_operators(const InspectOptions& options) {
  Progress progress;
  OpsByBackend ops;
  for (const BackendDescription& backend : backends_of(options.bind.backend_paths).describe()) {
    if (!backend.is_usable || backend.file.empty()) continue;
    progress.show("asking " + backend.name);
    ops[backend.name] = verification::offered_ops(backend.file);
  }
  const auto operators = operator_coverage(ops::make_registry());
  if (options.is_json) return {kFine, json_text(operators_json(operators, ops))};
  return {kFine, operators_text(operators, ops, stdout_style())};
}

CommandResult inspect(const InspectOptions& options) {
  if (options.lists_operators == !options.model.empty()) {
    throw Error(ErrorKind::InvalidArgument, "command line",
                std::string("expected MODEL or --ops, found ") +
                    (options.lists_operators ? "both" : "neither"));
  }
  if (options.lists_operators) return list_operators(options);
  if (options.shows_memory || !options.svg_file.empty()) return inspect_memory(options);
  check_binds_nothing(options.bind);
  // describe_bundle() verifies every byte.
  const std::optional<BundleDescription> bundle =
      is_bundle(options.model) ? std::optional(describe_bundle(options.model)) : std::nullopt;
  Progress progress;
  progress.show("loading " + options.model);
  ModelInspection found;
  InspectParts parts = options.parts;
  Json error;
  try {
    const Model model =
        load_model(options.model, {.is_strict = options.is_strict,
                                   .log = say_warning,
                                   .backends = backends_of(options.bind.backend_paths)});
    found.model = model.describe();
    if (!options.shapes.empty()) found.model = model.describe(shapes_of(options, found.model));
  } catch (const MissingParts& refusal) {
    found = refusal.inspection();
    parts.is_loaded = false;
    error = error_json(refusal.kind(), refusal.where(), refusal.message())["error"];
    say_warning(refusal.what());
  }
  const ExitCode code = parts.is_loaded ? kFine : kBadInput;
  if (options.is_json) {
    Json json = inspect_json(found.model, parts);
    json["missing"] = fields_json(found)["missing"];
    json["bundle"] = bundle ? bundle_json(*bundle) : Json();
    json["error"] = error;
    return {code, json_text(json)};
  }
  return {code, (bundle ? bundle_text(*bundle, stdout_style()) + "\n" : "") +
                    inspect_text(found.model, parts, stdout_style()) +
                    missing_text(found.missing, stdout_style())};
}

}  // namespace

Command make_inspect_command(CommandOptions command) {
  const auto options = std::make_shared<InspectOptions>();
  command.add_positional("MODEL", options->model, kModelHelp);
  command.make_optional("MODEL");
  command.add_repeatable(
      "--shape", options->shapes,
      "NAME=SHAPE: the shape of an input, e.g. 1x3x224x224; NAME may be\n#<index>");
  command.add_flag("--passes", options->parts.has_passes,
                   "show what each pass changed and how long it took");
  command.add_flag("--weights", options->parts.has_weights, "list the weights");
  command.add_flag("--memory", options->shows_memory,
                   "bind the model, and show where its intermediate values lie in memory");
  command.add_option("--svg", options->svg_file,
                     "FILE: as --memory, and write a drawing of the memory for a browser");
  command.add_flag(
      "--ops", options->lists_operators,
      "instead of a model, list the operators that this version loads, their versions\n"
      "and element types, and the backends that have kernels");
  add_bind_options(command, kInspectCommand, options->bind);
  command.add_flag("--strict", options->is_strict,
                   "fail if a shape declared inside the model is wrong");
  command.add_flag("--json", options->is_json, "print JSON");
  command.set_footer(
      "Options that decide where and how the model runs need --memory or --svg.\n\n"
      "Example:\n"
      "  tessera inspect model.onnx --shape '#0=1x3x224x224' --passes\n"
      "  tessera inspect model.onnx --memory --svg memory.svg\n"
      "  tessera inspect --ops");
  return [options] { return inspect(*options); };
}

}  // namespace tessera::cli
