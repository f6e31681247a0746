// The options of every command that binds a model, as the table in api/options/option_table.h lists
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/options/option_table.h"
#include "cli/arguments/command_options.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// The arguments of one option, as text, because errors show this text.
struct GivenOption {
  bool is_set = false;      // its flag, which takes no value
  bool is_negated = false;  // its negation
  std::optional<std::string> value;
  std::vector<std::string> values;  // if it may be repeated

  bool operator==(const GivenOption&) const = default;
};

struct BindArguments {
  std::vector<GivenOption> given{bind_options().size()};  // in the table's order
  std::vector<std::string> backend_paths;

  // Finds an option by the name of a field of BindOptions, e.g. "in_process", which must exist.
  GivenOption& operator[](std::string_view name);
  const GivenOption& operator[](std::string_view name) const;

  bool operator==(const BindArguments&) const = default;
};

// Adds the flags that `of` has (a bit of CommandBits), and --backend-path.
void add_bind_options(CommandOptions command, CommandBits of, BindArguments& arguments);

// Adds the flag of one option, which help lists first, beside the command's own flags. `help`,
// unless "", replaces its help.
void add_bind_option(CommandOptions command, std::string_view name, BindArguments& arguments,
                     std::string_view help = "");

// Adds --backend-path alone.
void add_backend_path_option(CommandOptions command, std::vector<std::string>& paths);

// The known backends and those of `paths`. Throws InvalidArgument if there is no such path.
Backends backends_of(const std::vector<std::string>& paths);

// Options for commands that run a model only a few times, and so do not need a plan that is
// replaced later.
BindOptions without_swap();

// `preset`, changed by the given arguments. Throws InvalidArgument if one cannot be parsed.
BindOptions bind_options_of(const BindArguments& arguments,
                            const BindOptions& preset = without_swap());

}  // namespace tessera::cli
