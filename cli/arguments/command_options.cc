#include "cli/arguments/command_options.h"

#include <CLI/CLI.hpp>

namespace tessera::cli {
namespace {

void set_group(CLI::Option* option, const std::string& group) {
  if (!group.empty()) option->group(group);
}

}  // namespace

void CommandOptions::add_flag(const std::string& name, bool& value, const std::string& help,
                              const std::string& group) {
  set_group(command_->add_flag(name, value, help), group);
}

void CommandOptions::add_option(const std::string& name, std::string& value,
                                const std::string& help, const std::string& group) {
  set_group(command_->add_option(name, value, help), group);
}

void CommandOptions::add_option(const std::string& name, std::optional<std::string>& value,
                                const std::string& help, const std::string& group) {
  set_group(command_->add_option(name, value, help), group);
}

void CommandOptions::add_repeatable(const std::string& name, std::vector<std::string>& values,
                                    const std::string& help, const std::string& group) {
  set_group(command_->add_option(name, values, help)->allow_extra_args(false), group);
}

void CommandOptions::add_positional(const std::string& name, std::string& value,
                                    const std::string& help) {
  command_->add_option(name, value, help)->required();
}

void CommandOptions::make_optional(const std::string& name) {
  command_->get_option(name)->required(false);
}

void CommandOptions::add_optional_positional(const std::string& name,
                                             std::optional<std::string>& value,
                                             const std::string& help) {
  command_->add_option(name, value, help);
}

void CommandOptions::set_footer(const std::string& text) { command_->footer(text); }

CommandOptions CommandOptions::add_command(const std::string& name, const std::string& summary) {
  command_->require_subcommand(1);
  return CommandOptions(*command_->add_subcommand(name, summary)->group("Commands"));
}

bool CommandOptions::was_given() const { return command_->parsed(); }

const CLI::App& CommandOptions::program() const {
  const CLI::App* app = command_;
  while (app->get_parent() != nullptr) app = app->get_parent();
  return *app;
}

}  // namespace tessera::cli
