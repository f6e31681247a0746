// `tessera inspect`: says what a model is made of, without running it.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/inspect_report.h"
#include "cli/run_inputs.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

struct InspectOptions {
  std::string model;
  std::vector<std::string> shapes;
  InspectParts parts;
  bool is_strict = false;
  bool is_json = false;
};

CommandResult inspect(const InspectOptions& options) {
  const Model model = load(options.model, {.is_strict = options.is_strict});
  ModelDescription description = model.describe();
  if (!options.shapes.empty()) {
    description = model.describe(parse_shapes(options.shapes, description.inputs));
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
  command.add_flag("--strict", options->is_strict,
                   "a declared inner shape that is wrong is an error");
  command.add_flag("--json", options->is_json, "print JSON");
  command.footer("Example:\n  tessera inspect model.onnx --shape '#0=1x3x224x224' --passes");
  return [options] { return inspect(*options); };
}

}  // namespace tessera::cli
