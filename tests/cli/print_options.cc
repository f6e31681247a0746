// Prints docs/options.md, the reference page of Model::bind()'s options, from their table.
// tools/write_pages writes the file.
#include <cstdio>
#include <string>

#include "api/options/option_table.h"

namespace tessera {
namespace {

constexpr const char* kHead = R"(# Options of bind

Made by `print_options` from the table in `src/api/options/option_table.cc`; a test compares them.
`include/tessera/bind_options.h` has the whole contract of each option, `tessera COMMAND --help`
explains the flags of a command. `--shape` and `--input` set `shapes` and `tuning_inputs`.
`tessera_bind_options_set()` of C takes the name in the first column without its group:
`frozen`, not `cache.frozen`.

An option in **bold** is part of a stored plan's key: a plan is only reused for the same value.
)";

struct Section {
  std::string_view group;
  const char* title;
  const char* text;
};

constexpr Section kSections[] = {
    {"", "The options of most calls",
     "Fields of `BindOptions` itself: `model.bind({.threads = 1})`."},
    {"run", "What to run on, and how", "`model.bind({.run = {.nan = tessera::NanMode::Fast}})`"},
    {"tune", "What to measure", "`model.bind({.tune = {.optimize_for = \"start\"}})`"},
    {"cache", "What to keep", "`model.bind({.cache = {.frozen = true}})`"},
    {"limits", "Limits", "`model.bind({.limits = {.memory_budget_bytes = 1 << 30}})`"},
};

std::string code(std::string_view text) {
  return text.empty() ? "" : "`" + std::string(text) + "`";
}

// A bar would end the cell.
std::string escaped(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

std::string flag_text(const Flag& flag) {
  std::string text(flag.name);
  if (!flag.value.empty()) text += " " + std::string(flag.value);
  return code(text) + (flag.negation.empty() ? "" : ", " + code(flag.negation));
}

std::string row(const BindOption& option) {
  const bool is_in_key = option.ingredient.position > 0;
  const std::string path = code(path_of(option));
  const std::string help =
      std::string(option.help) +
      (option.range ? " Expected: " + std::string(option.range->expected) + "." : "");
  std::string line = "|";
  for (const std::string& cell : {is_in_key ? "**" + path + "**" : path, code(option.keyword),
                                  flag_text(option.flag), code(default_text(option)), help}) {
    line += " " + escaped(cell) + (cell.empty() ? "|" : " |");
  }
  return line + "\n";
}

std::string options_page() {
  std::string page = kHead;
  for (const Section& section : kSections) {
    page += "\n## " + std::string(section.title) + "\n\n" + section.text +
            "\n\n| C++ | Python | Command line | Default | Meaning |\n|---|---|---|---|---|\n";
    for (const BindOption& option : bind_options()) {
      if (option.field.group == section.group) page += row(option);
    }
  }
  return page;
}

}  // namespace
}  // namespace tessera

int main() { std::fputs(tessera::options_page().c_str(), stdout); }
