// `tessera completion`: prints completion scripts for shells, and the manual page.
#include <memory>

#include "api/argument_text.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/json_output.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

struct CompletionArguments {
  std::string kind;
  bool is_json = false;
};

CommandResult complete(const CompletionArguments& arguments, const CLI::App& program) {
  const CommandDescription described = describe_command(program);
  std::string text;
  switch (parse_choice("KIND", arguments.kind, {"bash", "zsh", "man"})) {
    case 0:
      text = bash_completion(described);
      break;
    case 1:
      text = zsh_completion(described);
      break;
    default:
      text = manual_page(described, version());
      break;
  }
  return {kFine, arguments.is_json ? json_text({{"text", text}}) : text};
}

}  // namespace

Command make_completion_command(CommandOptions command) {
  const auto arguments = std::make_shared<CompletionArguments>();
  command.add_positional("KIND", arguments->kind,
                         "bash or zsh, for the completion of that shell; man, for the manual page");
  command.add_flag("--json", arguments->is_json, "print JSON");
  command.set_footer("Example:\n  tessera completion man | man -l -");
  return [arguments, command] { return complete(*arguments, command.program()); };
}

}  // namespace tessera::cli
