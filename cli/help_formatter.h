// The help of `tessera` and its commands, laid out for the terminal's width.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/text_table.h"

namespace tessera::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(const TextStyle& style) : style_(style) { label("SUBCOMMAND", "COMMAND"); }

  std::string make_description(const CLI::App* app) const override;
  // Paragraphs of sentences are wrapped; lines that begin with spaces are examples and stay.
  std::string make_footer(const CLI::App* app) const override;
  // An option's description begins with the name of its value and ": ", as in "N: threads to use";
  // a flag's has no name. Positionals are named already.
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* command) const override;

 private:
  // In lines that fit beside the names.
  std::string beside_names(const std::string& text) const;

  TextStyle style_;
};

}  // namespace tessera::cli
