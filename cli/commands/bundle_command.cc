// `tessera bundle`: writes one file with a model, its weights and the results of binding it.
#include "cli/commands/bound_model.h"
#include "cli/commands/command.h"
#include "cli/inputs/run_inputs.h"
#include "cli/reports/bundle_report.h"

namespace tessera::cli {
namespace {

struct BundleArguments {
  ModelArguments model;
  std::string output;
  bool is_json = false;
};

CommandResult bundle(BundleArguments arguments) {
  if (arguments.output.empty()) {
    throw Error(ErrorKind::InvalidArgument, "command line",
                "expected --output FILE, the bundle to write; found none");
  }
  const std::vector<std::vector<std::string>> sets = shape_sets(arguments.model.shapes);
  arguments.model.shapes.clear();
  BindOptions preset;
  preset.optimize = Optimize::Now;
  const ModelRequest request(arguments.model, MissingInputs::AreRandom, preset);
  const LoadedModel loaded = request.load(Clock::now(), /*keeps_all_values=*/false);
  request.save_bundle(loaded, arguments.output, sets);
  const BundleDescription written = describe_bundle(arguments.output);
  return {kFine, arguments.is_json ? json_text({{"bundle", bundle_json(written)}})
                                   : bundle_text(written, stdout_style())};
}

}  // namespace

Command make_bundle_command(CommandOptions command) {
  const auto arguments = std::make_shared<BundleArguments>();
  add_model_options(command, kBundleCommand, arguments->model, MissingInputs::AreRandom);
  command.add_option("-o,--output", arguments->output, "FILE: the bundle to write (required)");
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.set_footer(
      "The file has the model, its weights, and for each set of shapes the plan, packed weights "
      "and\n"
      "compiled kernels. Every command and interface takes it in place of a model. If --shape "
      "names\n"
      "an input several times, there are as many sets of shapes; an input that is named once has\n"
      "that shape in all of them.\n\n"
      "Example:\n"
      "  tessera bundle model.onnx -o model.bundle --shape x=1x3x224x224 --shape x=8x3x224x224\n"
      "  tessera run model.bundle --random 1 --shape x=1x3x224x224");
  return [arguments] { return bundle(*arguments); };
}

}  // namespace tessera::cli
