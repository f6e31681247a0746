// `tessera inspect`: says what a model is made of, without running it.
#include <memory>
#include <string>
#include <vector>

#include "cli/bind_arguments.h"
#include "cli/command.h"
#include "cli/inspect_report.h"
#include "cli/memory_report.h"
#include "cli/run_inputs.h"
#include "cli/staged_files.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

struct InspectOptions {
  std::string model;
  std::vector<std::string> shapes;
  InspectParts parts;
  BindArguments bind;
  bool shows_memory = false;
  std::string svg_file;  // "" for none
  bool is_strict = false;
  bool is_json = false;
};

NamedShapes shapes_of(const InspectOptions& options, const ModelDescription& description) {
  return parse_shapes(options.shapes, description.inputs);
}

// Binds, because only then it is known who computes what, and in which memory.
CommandResult inspect_memory(const InspectOptions& options) {
  BindOptions bind = bind_options_of(options.bind);
  const Model model = load(options.model, {.is_strict = options.is_strict,
                                           .backends = backends_of(options.bind.backend_paths),
                                           .threads = bind.threads});
  bind.shapes = shapes_of(options, model.describe());
  const MemoryReport report = memory_report_of(model.bind(bind));
  if (!options.svg_file.empty()) {
    StagedFiles files;
    files.write_text(options.svg_file, memory_svg(report));
    files.commit();
  }
  return {kFine, options.is_json ? json_text(memory_json(report)) : memory_text(report)};
}

CommandResult inspect(const InspectOptions& options) {
  if (options.shows_memory || !options.svg_file.empty()) return inspect_memory(options);
  const Model model = load(options.model, {.is_strict = options.is_strict});
  ModelDescription description = model.describe();
  if (!options.shapes.empty()) {
    description = model.describe(shapes_of(options, description));
  }
  return {kFine, options.is_json ? json_text(inspect_json(description, options.parts))
                                 : inspect_text(description, options.parts)};
}

}  // namespace

Command make_inspect_command(CLI::App& command) {
  const auto options = std::make_shared<InspectOptions>();
  command.add_option("MODEL", options->model, "an ONNX file")->required();
  add_repeatable(command, "--shape", options->shapes,
                 "NAME=1x3x224x224: the shape of an input; NAME may be #<index>");
  command.add_flag("--passes", options->parts.has_passes,
                   "show what each pass changed and how long it took");
  command.add_flag("--weights", options->parts.has_weights, "list the weights");
  command.add_flag("--memory", options->shows_memory,
                   "bind the model, and show how its inner values lie in memory");
  command.add_option("--svg", options->svg_file,
                     "FILE: the same, and write a picture of it for a browser");
  add_bind_options(command, options->bind);
  add_memory_option(command, options->bind);
  add_price_options(command, options->bind);
  command.add_flag("--strict", options->is_strict,
                   "a declared inner shape that is wrong is an error");
  command.add_flag("--json", options->is_json, "print JSON");
  command.footer(
      "Options of who may run it are for --memory and --svg.\n\n"
      "Example:\n"
      "  tessera inspect model.onnx --shape '#0=1x3x224x224' --passes\n"
      "  tessera inspect model.onnx --memory --svg memory.svg");
  return [options] { return inspect(*options); };
}

}  // namespace tessera::cli
