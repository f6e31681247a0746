// `tessera backends`: lists the backends, and whether they can be used on this machine.
#include "cli/arguments/bind_arguments.h"
#include "cli/commands/command.h"
#include "cli/reports/backends_report.h"

namespace tessera::cli {
namespace {

struct BackendsArguments {
  std::vector<std::string> paths;
  bool is_json = false;
};

CommandResult list_backends(const BackendsArguments& arguments) {
  const std::vector<BackendDescription> list = backends_of(arguments.paths).describe();
  return {kFine,
          arguments.is_json ? json_text(backends_json(list)) : backends_text(list, stdout_style())};
}

}  // namespace

Command make_backends_command(CommandOptions command) {
  const auto arguments = std::make_shared<BackendsArguments>();
  add_backend_path_option(command, arguments->paths);
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.set_footer("Example:\n  tessera backends --backend-path build/libmine.so --json");
  return [arguments] { return list_backends(*arguments); };
}

}  // namespace tessera::cli
