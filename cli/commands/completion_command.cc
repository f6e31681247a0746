// `tessera completion`: prints completion scripts for shells, and the manual page.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "api/options/argument_text.h"
#include "api/options/option_table.h"
#include "cli/arguments/help_formatter.h"
#include "cli/commands/command.h"
#include "cli/output/json_output.h"
#include "cli/output/text_table.h"
#include "tessera/tessera.h"

namespace tessera::cli {
namespace {

// The commands and options of the program as data, read from the parser that `tessera --help`
// prints too. Completion and the manual page are made from it.
struct OptionDescription {
  std::vector<std::string> names;  // "-h", "--help"
  std::string value;               // "FILE"; "" if it takes none
  std::string help;
  std::string heading;  // the heading under which help lists it
  bool is_repeatable = false;
  std::vector<std::string> choices;  // the values that it may have; empty: any
};

struct ArgumentDescription {
  std::string name;  // "MODEL"
  std::string help;
  bool is_needed = false;
};

struct CommandDescription {
  std::string name;
  std::string summary;
  std::string footer;
  std::vector<ArgumentDescription> arguments;  // besides options, in their order
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> commands;
};

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

// A command below the program, by its words: "cache ls".
struct Path {
  std::string words;
  const CommandDescription* command;
};

// All commands, each before its own subcommands.
std::vector<Path> paths_of(const CommandDescription& program) {
  std::vector<Path> paths;
  const std::function<void(const CommandDescription&, const std::string&)> add =
      [&](const CommandDescription& command, const std::string& words) {
        for (const CommandDescription& below : command.commands) {
          const std::string all = words + (words.empty() ? "" : " ") + below.name;
          paths.push_back({all, &below});
          add(below, all);
        }
      };
  add(program, "");
  return paths;
}

// `text` with each of `letters` preceded by a backslash.
std::string escaped(const std::string& text, std::string_view letters) {
  std::string result;
  for (const char letter : text) {
    if (letters.find(letter) != std::string_view::npos) result += '\\';
    result += letter == '\n' ? ' ' : letter;
  }
  return result;
}

// Whether `value` stands for a file or folder, or for a text that ends in one: "DIR", "NAME=FILE".
bool is_file(std::string_view value) {
  constexpr std::string_view kFiles[] = {"FILE", "DIR", "PATH", "MODEL", "LIB"};
  return std::ranges::any_of(kFiles, [&](std::string_view file) { return value.ends_with(file); });
}

// --- bash

std::string bash_words(const CommandDescription& command) {
  std::vector<std::string> words;
  for (const CommandDescription& below : command.commands) words.push_back(below.name);
  for (const OptionDescription& option : command.options) {
    words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return joined(words, " ");
}

// Adds the values that may follow the options of `command`, whose words are `path`.
void add_bash_values(const CommandDescription& command, const std::string& path,
                     std::string& cases) {
  for (const OptionDescription& option : command.options) {
    if (option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back("'" + path + ":" + name + "'");
    cases += "    " + joined(patterns, " | ") + ") ";
    if (!option.choices.empty()) {
      cases += "words='" + joined(option.choices, " ") + "'";
    } else {
      cases += is_file(option.value) ? "return" : "compopt +o default; return";
    }
    cases += " ;;\n";
  }
}

// --- zsh

std::string zsh_quoted(const std::string& text) {
  std::string result;
  for (const char letter : text) result += letter == '\'' ? "'\\''" : std::string(1, letter);
  return "'" + result + "'";
}

std::string zsh_option(const OptionDescription& option, const std::string& name) {
  std::string text = option.is_repeatable ? "*" : "";
  if (!option.is_repeatable && option.names.size() > 1) {
    text += "(" + joined(option.names, " ") + ")";
  }
  text += name + "[" + escaped(option.help, "[]:\\") + "]";
  if (option.value.empty()) return zsh_quoted(text);
  text += ":" + escaped(option.value, ":\\") + ":";
  if (!option.choices.empty()) {
    text += "(" + joined(option.choices, " ") + ")";
  } else if (is_file(option.value)) {
    text += "_files";
  }
  return zsh_quoted(text);
}

std::string zsh_function(const CommandDescription& command, const std::string& name) {
  std::string text = name + "() {\n";
  const bool has_commands = !command.commands.empty();
  if (has_commands) text += "  local curcontext=$curcontext state line\n";
  text += std::string("  _arguments") + (has_commands ? " -C" : "");
  for (const OptionDescription& option : command.options) {
    for (const std::string& one : option.names) text += " \\\n    " + zsh_option(option, one);
  }
  if (has_commands) {
    text +=
        " \\\n    '1: :->command' '*:: :->rest' && return\n  case $state in\n    command)\n"
        "      local -a commands=(";
    for (const CommandDescription& below : command.commands) {
      text += "\n        " + zsh_quoted(below.name + ":" + escaped(below.summary, ":\\"));
    }
    text += ")\n      _describe command commands ;;\n    rest) case $words[1] in\n";
    for (const CommandDescription& below : command.commands) {
      text += "      " + below.name + ") " + name + "_" + below.name + " ;;\n";
    }
    text += "    esac ;;\n  esac\n";
  } else {
    for (size_t index = 0; index < command.arguments.size(); ++index) {
      const std::string position = std::to_string(index + 1);
      text += " \\\n    " + zsh_quoted(position + ":" + command.arguments[index].name + ":_files");
    }
    text += "\n";
  }
  text += "}\n";
  for (const CommandDescription& below : command.commands) {
    text += zsh_function(below, name + "_" + below.name);
  }
  return text;
}

// --- man

std::string roff(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter == '\n' ? ' ' : letter;
    }
  }
  // A line that begins with one of these would be a request.
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

// Sentences as a paragraph, and lines that begin with spaces as they are.
std::string roff_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  bool is_example = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const bool is_now = line[0] == ' ';
    if (is_now != is_example) result += is_now ? ".PP\n.nf\n" : ".fi\n.PP\n";
    is_example = is_now;
    result += roff(line) + "\n";
  }
  return result + (is_example ? ".fi\n" : "");
}

std::string roff_option(const OptionDescription& option) {
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  }
  const std::string value = option.value.empty() ? "" : " \\fI" + roff(option.value) + "\\fR";
  return ".TP\n" + names + value + (option.is_repeatable ? " ...\n" : "\n") + roff(option.help) +
         "\n";
}

std::string roff_argument(const ArgumentDescription& argument) {
  const std::string name = "\\fI" + roff(argument.name) + "\\fR";
  return argument.is_needed ? name : "[" + name + "]";
}

std::string roff_command(const Path& path) {
  const CommandDescription& command = *path.command;
  std::string text = ".SS \"" + roff(path.words) + "\"\n" + roff(command.summary) + ".\n";
  for (const ArgumentDescription& argument : command.arguments) {
    text += ".TP\n" + roff_argument(argument) + "\n" + roff(argument.help) + "\n";
  }
  for (const OptionDescription& option : command.options) text += roff_option(option);
  return text + roff_lines(command.footer);
}

// The words of the command that `words` is a subcommand of; "" for the program.
std::string words_above(const std::string& words) {
  const size_t last = words.rfind(' ');
  return last == std::string::npos ? "" : words.substr(0, last);
}

// Scripts that complete commands, options, their values if a fixed set of them exists, and file
// names. For bash: to be sourced, or put into share/bash-completion/completions/tessera.
std::string bash_completion(const CommandDescription& program) {
  std::string commands;
  std::string values;
  std::string words = "    '') words='" + bash_words(program) + "' ;;\n";
  add_bash_values(program, "", values);
  for (const Path& path : paths_of(program)) {
    commands += (commands.empty() ? "'" : " | '") + words_above(path.words) + ":" +
                path.command->name + "'";
    words += "    '" + path.words + "') words='" + bash_words(*path.command) + "' ;;\n";
    add_bash_values(*path.command, path.words, values);
  }
  return R"(# Completion of tessera for bash; made by `tessera completion bash`.
_tessera() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command='' words='' index
  COMPREPLY=()
  for ((index = 1; index < COMP_CWORD; ++index)); do
    case "$command:${COMP_WORDS[index]}" in
    )" + commands +
         R"()
      command+=${command:+ }${COMP_WORDS[index]} ;;
    esac
  done
  # bash takes the '=' of --option=value as a word.
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' && COMP_CWORD -gt 2 ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  case "$command:$previous" in
)" + values +
         R"(    *) case "$command" in
)" + words +
         R"(    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _tessera tessera
)";
}

// For zsh: a file _tessera in a folder of its fpath.
std::string zsh_completion(const CommandDescription& program) {
  return "#compdef tessera\n# Completion of tessera for zsh; made by `tessera completion zsh`.\n" +
         zsh_function(program, "_tessera") + "_tessera \"$@\"\n";
}

// The manual page tessera(1), in the macros of man(7).
std::string manual_page(const CommandDescription& program, const std::string& version) {
  std::string text = ".\\\" Made by `tessera completion man`.\n.TH TESSERA 1 \"\" \"tessera " +
                     roff(version) + "\" \"User Commands\"\n.SH NAME\n" + roff(program.name) +
                     " \\- runs ONNX models\n.SH SYNOPSIS\n";
  for (const Path& path : paths_of(program)) {
    if (!path.command->commands.empty()) continue;
    text += ".B tessera " + roff(path.words) + "\n";
    for (const ArgumentDescription& argument : path.command->arguments) {
      text += roff_argument(argument) + "\n";
    }
    text += "[\\fIOPTION\\fR]...\n.br\n";
  }
  text += ".SH DESCRIPTION\n" + roff(program.summary) + "\n.SH OPTIONS\n";
  for (const OptionDescription& option : program.options) text += roff_option(option);
  text += ".SH COMMANDS\n";
  for (const Path& path : paths_of(program)) text += roff_command(path);
  return text + ".SH NOTES\n" + roff_lines(program.footer);
}

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
