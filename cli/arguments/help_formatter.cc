#include "cli/arguments/help_formatter.h"

#include <algorithm>
#include <sstream>

namespace tessera::cli {
namespace {

// `text` with its line breaks replaced by spaces.
std::string one_paragraph(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string without_end(std::string lines) {
  if (lines.ends_with('\n')) lines.pop_back();
  return lines;
}

}  // namespace

OptionText text_of(const CLI::Option& option) {
  const std::string& text = option.get_description();
  const size_t end = text.find(": ");
  const bool has_name = option.get_type_size() != 0 && !option.get_positional() &&
                        end != std::string::npos && text.find_first_of(" \n") > end;
  if (!has_name) return {"", text};
  return {text.substr(0, end), text.substr(end + 2)};
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(one_paragraph(app->get_description()), style_);
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::istringstream lines(app->get_footer());
  std::string footer;
  std::string paragraph;
  const auto end_paragraph = [&] {
    footer += wrapped(paragraph, style_);
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    const bool is_sentence = !line.empty() && line[0] != ' ';
    if (is_sentence) {
      paragraph += (paragraph.empty() ? "" : " ") + line;
      continue;
    }
    end_paragraph();
    footer += line + "\n";
  }
  end_paragraph();
  return footer;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string name = text_of(*option).value_name;
  if (name.empty() && !option->get_positional()) return CLI::Formatter::make_option_opts(option);
  const bool may_repeat = option->get_expected_max() == CLI::detail::expected_max_vector_size;
  return (name.empty() ? "" : " " + name) + (may_repeat ? " ..." : "") +
         (option->get_required() ? " (required)" : "");
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return beside_names(text_of(*option).description);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  std::ostringstream text;
  CLI::detail::format_help(text, command->get_display_name(true),
                           beside_names(command->get_description()), get_column_width());
  return text.str();
}

std::string HelpFormatter::beside_names(const std::string& text) const {
  const TextStyle narrow{.columns = style_.columns - get_column_width(),
                         .cuts_names = style_.cuts_names};
  return without_end(wrapped(one_paragraph(text), narrow));
}

}  // namespace tessera::cli
