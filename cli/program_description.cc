#include "cli/program_description.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "api/option_table.h"
#include "cli/help_formatter.h"

namespace tessera::cli {
namespace {

// The choices of an option of bind, from the table of these options.
std::vector<std::string> choices_of(const CLI::Option& option) {
  for (const BindOption& known : bind_options()) {
    if (known.flag.name.empty() || known.flag.value.empty()) continue;
    if (!option.check_name(std::string(known.flag.name))) continue;
    return {known.choices.begin(), known.choices.end()};
  }
  return {};
}

OptionDescription describe_option(const CLI::Option& option) {
  OptionDescription described;
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  const OptionText text = text_of(option);
  described.value = text.value_name;
  described.help = text.description;
  described.heading = option.get_group();
  described.is_repeatable = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  described.choices = choices_of(option);
  return described;
}

}  // namespace

CommandDescription describe_command(const CLI::App& app) {
  CommandDescription described;
  described.name = app.get_name();
  described.summary = app.get_description();
  described.footer = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) {
      described.options.push_back(describe_option(*option));
      continue;
    }
    described.arguments.push_back(
        {option->get_name(), text_of(*option).description, option->get_required()});
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    described.commands.push_back(describe_command(*command));
  }
  return described;
}

}  // namespace tessera::cli
