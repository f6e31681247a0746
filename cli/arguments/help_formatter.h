// The help of `tessera` and its commands, laid out for the terminal's width.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/output/text_table.h"

namespace tessera::cli {

struct OptionText {
  std::string value_name;  // empty if the option has none
  std::string description;
};

// The description of `option`, and the name of its value, with which the help text begins.
OptionText text_of(const CLI::Option& option);

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(const TextStyle& style) : style_(style) { label("SUBCOMMAND", "COMMAND"); }

  std::string make_description(const CLI::App* app) const override;
  // Wraps paragraphs of sentences. Lines that begin with spaces are examples and are not changed.
  std::string make_footer(const CLI::App* app) const override;
  // An option's description begins with the name of its value and ": ", for example "N: threads to
  // use". The description of a flag has no such name, and neither has that of a positional, which
  // is itself the name.
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  // Wraps `text` to the width of the column to the right of the names.
  std::string beside_names(const std::string& text) const;

  TextStyle style_;
};

}  // namespace tessera::cli
