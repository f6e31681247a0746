#include "cli/bind_arguments.h"

#include <algorithm>
#include <limits>

#include "cli/command.h"
#include "cli/named_argument.h"

namespace tessera::cli {
namespace {

// More than any machine has; each costs memory of its own.
constexpr uint64_t kMaxThreads = 4096;

constexpr double kMostSeconds = 1e6;
constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max();

constexpr const char* kGroup = "Where and how it runs";
constexpr const char* kPriceGroup = "What it is chosen by";

[[noreturn]] void refuse(const char* option, const std::string& text, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, std::string(option) + " '" + text + "'", message);
}

// The parts of `text` before and after `position`; where that is npos, all and "".
std::pair<std::string, std::string> split_at(const std::string& text, size_t position) {
  if (position == std::string::npos) return {text, ""};
  return {text.substr(0, position), text.substr(position + 1)};
}

Precision parse_precision(const std::string& text) {
  if (text == "float32") return Precision::Float32;
  if (text == "bfloat16") return Precision::BFloat16;
  refuse("--precision", text, "expected float32 or bfloat16");
}

}  // namespace

void add_bind_options(CLI::App& command, BindArguments& arguments) {
  command.add_option("--threads", arguments.threads, "threads to use (default 0: all cores)")
      ->group(kGroup);
  command
      .add_option("--backends", arguments.backends,
                  "LIST: use these alone, best first, e.g. onednn,reference; reference\n"
                  "is always last (default: TESSERA_BACKENDS of the environment, else\n"
                  "all that 'tessera backends' lists)")
      ->group(kGroup);
  add_backend_path_option(command, arguments.backend_paths);
  add_repeatable(command, "--pin", arguments.pins,
                 "NODES=BACKEND[:ALGORITHM]: who must do which nodes. NODES, which the\n"
                 "last '=' ends: a node's name, the beginning of names and '*', or a\n"
                 "metadata property key=value. ALGORITHM: its beginning will do. E.g.\n"
                 "conv1=onednn:jit, 'layer1/*=reference', stage=head=onednn")
      ->group(kGroup);
  add_repeatable(command, "--exclude", arguments.exclusions,
                 "BACKEND[:OP]: do not use a backend, or not for an op, e.g. onednn:Conv")
      ->group(kGroup);
  command
      .add_option("--precision", arguments.precision,
                  "float32 or bfloat16: the least to compute float32 in\n(default float32)")
      ->group(kGroup);
  command.add_option("--device", arguments.device, "kind of device to run on (default cpu)")
      ->group(kGroup);
  add_repeatable(command, "--layout", arguments.layouts,
                 "NAME=csr[:CAPACITY] or NAME=row_sparse[:CAPACITY]: feed an input or\n"
                 "give an output sparsely, with room for so many elements or rows\n"
                 "(default: a tenth of all)")
      ->group(kGroup);
  command
      .add_flag("--strict-storage", arguments.strict_storage,
                "a sparse value that a kernel takes dense only is an error")
      ->group(kGroup);
  command
      .add_flag("--keep-denormals", arguments.keeps_denormals,
                "compute with numbers too small for a normal exponent\n(default: they are zero)")
      ->group(kGroup);
}

void add_memory_option(CLI::App& command, BindArguments& arguments) {
  command
      .add_option("--memory-budget", arguments.memory_budget,
                  "BYTES that inner values, workspaces, outputs, weights and\n"
                  "libraries may take together: faster kernels give way to\n"
                  "smaller ones (default: no limit)")
      ->group(kGroup);
}

void add_measuring_options(CLI::App& command, BindArguments& arguments) {
  command
      .add_option("--candidate-timeout", arguments.candidate_timeout,
                  "seconds that a candidate may take to run once (default 10)")
      ->group(kPriceGroup);
  command
      .add_option(
          "--tune-budget", arguments.tune_budget,
          "seconds to measure at most, the building of kernels included; what is\nknown then "
          "decides (default: as long as it takes)")
      ->group(kPriceGroup);
  command
      .add_option("--solve-budget", arguments.solve_budget,
                  "seconds that one search for the cheapest choice may take; the best\nfound by "
                  "then is taken (default: what it takes)")
      ->group(kPriceGroup);
  command
      .add_flag("--in-process", arguments.in_process,
                "measure in this process, which ends if a library crashes (default: in\none of "
                "its own, tessera-worker)")
      ->group(kPriceGroup);
}

void add_price_options(CLI::App& command, BindArguments& arguments) {
  command
      .add_flag("--optimize", arguments.optimize,
                "measure first whatever could win, unless a cache knows the plan, and\nchoose by "
                "price (default without --costs, but for TESSERA_OPTIMIZE=0)")
      ->group(kPriceGroup);
  command
      .add_flag("--no-optimize", arguments.no_optimize,
                "measure nothing, and neither look for caches nor write any")
      ->group(kPriceGroup);
  command
      .add_flag("--frozen", arguments.frozen,
                "fail where no cache has the plan, instead of measuring")
      ->group(kPriceGroup);
  add_optimize_for_option(command, arguments);
  add_cache_dir_option(command, arguments);
  command
      .add_option("--costs", arguments.costs,
                  "FILE of 'tessera tune --output': choose by what it knows")
      ->group(kPriceGroup);
  add_measuring_options(command, arguments);
}

void add_optimize_for_option(CLI::App& command, BindArguments& arguments) {
  command
      .add_option("--optimize-for", arguments.optimize_for,
                  "latency: the fastest run (default); N-runs, e.g. 100-runs: the least\ntime to "
                  "build kernels and run N times; start: the same as 1-runs")
      ->group(kPriceGroup);
}

void add_swap_option(CLI::App& command, BindArguments& arguments) {
  arguments.swap = "on";
  command
      .add_option(
          "--swap", arguments.swap,
          "on: begin with a plan that starts soon, where a cache knows one, and\nchange over "
          "to the fastest when that is built (default); off: wait for\nthat, and outputs "
          "of all runs are equal to the bit")
      ->check(CLI::IsMember({"on", "off"}))
      ->group(kPriceGroup);
}

void add_cache_dir_option(CLI::App& command, BindArguments& arguments) {
  command
      .add_option("--cache-dir", arguments.cache_dir,
                  "DIR: where caches are looked for and kept (default: TESSERA_CACHE_DIR\nof the "
                  "environment, else the working folder; then the user's)")
      ->group(kPriceGroup);
}

void add_backend_path_option(CLI::App& command, std::vector<std::string>& paths) {
  add_repeatable(command, "--backend-path", paths,
                 "PATH: look for backends there too, a plug-in or a folder of them")
      ->group(kGroup);
}

Pin parse_pin(const std::string& text) {
  constexpr const char* kExpected =
      "expected NODES=BACKEND or NODES=BACKEND:ALGORITHM, such as conv1=onednn:jit";
  const size_t sign = text.rfind('=');
  if (sign == std::string::npos) refuse("--pin", text, kExpected);
  const auto [nodes, kernel] = split_at(text, sign);
  const size_t colon = kernel.find(':');
  const auto [backend, algorithm] = split_at(kernel, colon);
  const bool lacks_algorithm = colon != std::string::npos && algorithm.empty();
  if (nodes.empty() || backend.empty() || lacks_algorithm) refuse("--pin", text, kExpected);
  return {.nodes = nodes, .backend = backend, .algorithm = algorithm};
}

Exclusion parse_exclusion(const std::string& text) {
  const size_t colon = text.find(':');
  const auto [backend, op] = split_at(text, colon);
  if (backend.empty() || (colon != std::string::npos && op.empty())) {
    refuse("--exclude", text, "expected BACKEND or BACKEND:OP, such as onednn:Conv");
  }
  return {.backend = backend, .op = op};
}

std::vector<std::string> parse_backend_list(const std::string& text) {
  std::vector<std::string> names;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    if (name.empty()) {
      refuse("--backends", text, "expected names with commas between, such as onednn,reference");
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      refuse("--backends", text, "expected each name once, found '" + name + "' twice");
    }
    names.push_back(name);
    begin = end + 1;
  }
  return names;
}

Backends backends_of(const std::vector<std::string>& paths) {
  Backends backends;
  for (const std::string& path : paths) backends.add_path(path);
  return backends;
}

BindOptions bind_options_of(const BindArguments& arguments) {
  BindOptions options;
  options.threads =
      static_cast<int>(parse_whole_number("--threads", arguments.threads, 0, kMaxThreads));
  options.device = arguments.device;
  if (arguments.optimize && arguments.no_optimize) {
    refuse("--no-optimize", "", "expected either this or --optimize, found both");
  }
  if (arguments.optimize) options.optimize = true;
  if (arguments.no_optimize) options.optimize = false;
  options.optimize_for = arguments.optimize_for;
  options.swap = arguments.swap == "on";
  options.cache_dir = arguments.cache_dir;
  options.frozen = arguments.frozen;
  options.retune = arguments.retune;
  options.cost_table = arguments.costs;
  options.in_process = arguments.in_process;
  options.tune_all = arguments.tune_all;
  options.margin_search_seconds = arguments.margin_search_seconds;
  options.describes_candidates = arguments.describes_candidates;
  options.candidate_timeout_seconds =
      parse_positive_number("--candidate-timeout", arguments.candidate_timeout, kMostSeconds);
  if (arguments.tune_budget) {
    options.tune_budget_seconds =
        parse_positive_number("--tune-budget", *arguments.tune_budget, kMostSeconds);
  }
  if (arguments.solve_budget) {
    options.solve_budget_seconds =
        parse_positive_number("--solve-budget", *arguments.solve_budget, kMostSeconds);
  }
  if (arguments.memory_budget) {
    options.memory_budget_bytes = static_cast<int64_t>(
        parse_whole_number("--memory-budget", *arguments.memory_budget, 1, kMostBytes));
  }
  options.precision = parse_precision(arguments.precision);
  if (arguments.backends) options.backends = parse_backend_list(*arguments.backends);
  for (const std::string& text : arguments.layouts) {
    const NamedArgument layout = split_named_argument("--layout", text);
    if (!options.layouts.emplace(layout.name, layout.value).second) {
      refuse("--layout", text, "expected one --layout for each name, found two");
    }
  }
  options.strict_storage = arguments.strict_storage;
  options.keeps_denormals = arguments.keeps_denormals;
  for (const std::string& text : arguments.pins) options.pins.push_back(parse_pin(text));
  for (const std::string& text : arguments.exclusions) {
    options.exclusions.push_back(parse_exclusion(text));
  }
  return options;
}

}  // namespace tessera::cli
