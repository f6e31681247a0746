#include "cli/arguments/command_line.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

namespace tessera::cli {
namespace {

class CommandLine : public testing::Test {
 protected:
  CommandLine() : program_("", "tessera") {
    program_.set_version_flag("--version", "1");
    CLI::App& run = *program_.add_subcommand("run", "");
    run.add_option("MODEL", model_, "")->required();
    run.add_option("--threads", threads_, "");
    run.add_option("--optimize-for", threads_, "");
    run.add_option("--input", inputs_, "")->allow_extra_args(false);
    run.add_flag("--json", is_json_, "");
    program_.add_subcommand("backends", "")->add_flag("--json", is_json_, "");
    CLI::App& cache = *program_.add_subcommand("cache", "");
    cache.add_subcommand("ls", "");
  }

  // "where: message"; "" for none.
  std::string mistake(const std::vector<std::string>& arguments) const {
    const std::optional<UsageMistake> found = find_usage_mistake(program_, arguments);
    return found ? found->where + ": " + found->message : "";
  }

  CLI::App program_;
  std::string model_;
  std::string threads_;
  std::vector<std::string> inputs_;
  bool is_json_ = false;
};

TEST_F(CommandLine, WhatCanBeReadIsNoMistake) {
  const std::vector<std::string> rows[] = {
      {"run", "m"},
      {"run", "-"},
      {"run", "m", "--threads", "2"},
      {"run", "--threads=2", "m", "--json", "--json"},
      {"run", "m", "--threads", "-1"},
      {"run", "m", "--input", "a=b", "--input", "c=d"},
      {"run", "--", "--threads"},
      {"run", "run"},
      {"run", "--bogus", "--help"},
      {"-h"},
      {"--version"},
      {"cache", "ls"},
      {"backends", "--json"},
  };
  for (const std::vector<std::string>& row : rows) EXPECT_EQ(mistake(row), "") << row.back();
}

TEST_F(CommandLine, MistakesAreNamed) {
  struct Case {
    std::vector<std::string> arguments;
    const char* mistake;
  };
  const Case cases[] = {
      {{}, "tessera: expected a command, found none; 'tessera --help' lists them"},
      {{"rn", "m"}, "tessera: there is no command 'rn'; did you mean 'run'?"},
      {{"frobnicate", "--bogus"},
       "tessera: there is no command 'frobnicate'; 'tessera --help' lists the commands"},
      {{"m.onnx"}, "tessera: there is no command 'm.onnx'; did you mean 'tessera run m.onnx'?"},
      {{"--json", "backends"},
       "tessera: there is no option '--json' before the command; write it after the command's "
       "name"},
      {{"--verison"}, "tessera: there is no option '--verison'; did you mean '--version'?"},
      {{"cache"},
       "tessera cache: expected a command, found none; 'tessera cache --help' lists them"},
      {{"cache", "sl"}, "tessera cache: there is no command 'sl'; did you mean 'ls'?"},
      {{"run"}, "tessera run: expected MODEL, found none; 'tessera run --help' has an example"},
      {{"run", ""}, "tessera run: expected MODEL, found an empty text"},
      {{"run", "--bogus"},
       "tessera run: there is no option '--bogus'; 'tessera run --help' lists the options"},
      {{"run", "--thread", "2"},
       "tessera run: there is no option '--thread'; did you mean '--threads'?"},
      {{"run", "-threads=2"},
       "tessera run: there is no option '-threads'; did you mean '--threads'?"},
      {{"run", "a", "b", "--opt"},
       "tessera run: there is no option '--opt'; did you mean '--optimize-for'?"},
      {{"run", "-t"},
       "tessera run: there is no option '-t'; 'tessera run --help' lists the options"},
      {{"run", "m", "--threads", "--jso"},
       "tessera run: there is no option '--jso'; did you mean '--json'?"},
      {{"run", "m", "--threads"}, "tessera run: expected a value after '--threads', found nothing"},
      {{"run", "m", "--threads", "--json"},
       "tessera run: expected a value after '--threads', found '--json'"},
      {{"run", "m", "--threads="},
       "tessera run: expected a value for '--threads', found an empty text"},
      {{"run", "m", "--threads", ""},
       "tessera run: expected a value for '--threads', found an empty text"},
      {{"run", "m", "--json=1"}, "tessera run: '--json' takes no value, found '--json=1'"},
      {{"run", "m", "--threads", "1", "--threads=2"},
       "tessera run: expected '--threads' once, found it twice"},
      {{"run", "a", "b"}, "tessera run: expected one MODEL, found 'a' and 'b'"},
      {{"run", "a", "-1"}, "tessera run: expected one MODEL, found 'a' and '-1'"},
      {{"backends", "x"}, "tessera backends: expected no argument besides options, found 'x'"},
  };
  for (const Case& row : cases) EXPECT_EQ(mistake(row.arguments), row.mistake);
}

TEST_F(CommandLine, CommandsAreCalledByTheirPath) {
  EXPECT_EQ(command_path(*program_.get_subcommand("cache")->get_subcommand("ls")),
            "tessera cache ls");
}

}  // namespace
}  // namespace tessera::cli
