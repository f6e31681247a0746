#include "cli/bind_arguments.h"

#include <algorithm>

#include "cli/command.h"
#include "cli/named_argument.h"

namespace tessera::cli {
namespace {

// More than any machine has; each costs memory of its own.
constexpr uint64_t kMaxThreads = 4096;

constexpr double kMaxSeconds = 1e6;

constexpr const char* kGroup = "Where and how it runs";
constexpr const char* kPriceGroup = "How the plan is chosen";

[[noreturn]] void refuse(const char* option, const std::string& text, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, std::string(option) + " '" + text + "'", message);
}

// The parts of `text` before and after `position`; where that is npos, all and "".
std::pair<std::string, std::string> split_at(const std::string& text, size_t position) {
  if (position == std::string::npos) return {text, ""};
  return {text.substr(0, position), text.substr(position + 1)};
}

Precision parse_precision(const std::string& text) {
  const size_t index = parse_choice("--precision", text, {"float32", "bfloat16"});
  return index == 0 ? Precision::Float32 : Precision::BFloat16;
}

NanMode parse_nan(const std::string& text) {
  const size_t index = parse_choice("--nan", text, {"exact", "fast"});
  return index == 0 ? NanMode::Exact : NanMode::Fast;
}

}  // namespace

void add_bind_options(CommandOptions command, BindArguments& arguments) {
  command.add_option("--threads", arguments.threads, "N: threads to use (default 0: all cores)",
                     kGroup);
  command.add_option("--backends", arguments.backends,
                     "LIST: use only these, preferred ones first, e.g. onednn,native;\n"
                     "reference is always added at the end (default: the environment's\n"
                     "TESSERA_BACKENDS, else all that 'tessera backends' lists)",
                     kGroup);
  add_backend_path_option(command, arguments.backend_paths);
  command.add_repeatable("--pin", arguments.pins,
                         "NODES=BACKEND[:ALGORITHM]: run these nodes on this backend. NODES: a\n"
                         "node's name, the beginning of names and '*', or a metadata property\n"
                         "key=value; the last '=' ends it. ALGORITHM: its beginning is enough.\n"
                         "E.g. conv1=onednn:jit, 'layer1/*=reference', stage=head=onednn",
                         kGroup);
  command.add_repeatable(
      "--exclude", arguments.exclusions,
      "BACKEND[:OP]: do not use this backend, or not for this op, e.g.\nonednn:Conv", kGroup);
  command.add_option(
      "--precision", arguments.precision,
      "TYPE: float32 (default) or bfloat16, the lowest precision that\nfloat32 may be computed "
      "in",
      kGroup);
  command.add_option("--nan", arguments.nan,
                     "MODE: exact (default): NaN stays NaN, and no kernel gives a finite\n"
                     "number for an infinity; fast: also kernels that may lose them",
                     kGroup);
  command.add_option("--device", arguments.device, "KIND: kind of device to run on (default cpu)",
                     kGroup);
  command.add_repeatable("--layout", arguments.layouts,
                         "NAME=LAYOUT[:CAPACITY]: store an input or output in this sparse\n"
                         "layout, csr or row_sparse, with room for CAPACITY elements or rows\n"
                         "(default: a tenth of all)",
                         kGroup);
  command.add_flag("--strict-storage", arguments.strict_storage,
                   "fail if a kernel needs a sparse value as a dense tensor", kGroup);
  command.add_flag("--keep-denormals", arguments.keeps_denormals,
                   "compute with denormal numbers (default: they are set to zero)", kGroup);
}

void add_memory_option(CommandOptions command, BindArguments& arguments) {
  command.add_option("--memory-budget", arguments.memory_budget,
                     "SIZE: what intermediate values, workspaces, outputs, weights and\n"
                     "libraries may take together, e.g. 512M or 1.5G; faster kernels are\n"
                     "replaced by smaller ones if necessary; K is 1024 bytes, M 1024 K, and\n"
                     "so on (default: no limit)",
                     kGroup);
}

void add_measuring_options(CommandOptions command, BindArguments& arguments) {
  command.add_option("--candidate-timeout", arguments.candidate_timeout,
                     "SECONDS: what a candidate may take to run once (default 10)", kPriceGroup);
  command.add_option(
      "--tune-budget", arguments.tune_budget,
      "SECONDS: measure no longer, with building kernels; the plan is then\nchosen by what "
      "is known (default: no limit)",
      kPriceGroup);
  command.add_option(
      "--solve-budget", arguments.solve_budget,
      "SECONDS: what one search for the cheapest plan may take; then the\nbest plan found is "
      "used (default: no limit)",
      kPriceGroup);
  command.add_flag(
      "--in-process", arguments.in_process,
      "measure in this process, which ends if a library crashes (default: in\na separate "
      "process, tessera-worker)",
      kPriceGroup);
}

void add_price_options(CommandOptions command, BindArguments& arguments) {
  command.add_flag(
      "--optimize", arguments.optimize,
      "measure the kernels that could be fastest and choose by time, unless\na cache has the "
      "plan (default, unless --costs or TESSERA_OPTIMIZE=0\nis given)",
      kPriceGroup);
  command.add_flag("--no-optimize", arguments.no_optimize,
                   "measure nothing; read and write no cache", kPriceGroup);
  command.add_flag("--frozen", arguments.frozen,
                   "fail if no cache has the plan, instead of measuring", kPriceGroup);
  add_optimize_for_option(command, arguments);
  add_cache_dir_option(command, arguments);
  command.add_option(
      "--costs", arguments.costs,
      "FILE: choose by the measured times in it, which 'tessera tune\n--output' wrote",
      kPriceGroup);
  add_measuring_options(command, arguments);
}

void add_optimize_for_option(CommandOptions command, BindArguments& arguments) {
  command.add_option(
      "--optimize-for", arguments.optimize_for,
      "GOAL: latency, the fastest run (default); N-runs, e.g. 100-runs, the\nshortest time to "
      "build kernels and run N times; start, the same\nas 1-runs",
      kPriceGroup);
}

void add_swap_option(CommandOptions command, BindArguments& arguments) {
  arguments.swap = "on";
  command.add_option(
      "--swap", arguments.swap,
      "on|off: on, start with a plan that is built quickly, if a cache has\none, and switch to "
      "the fastest plan when it is built (default); off,\nwait for the fastest plan, so that "
      "outputs of all runs are equal to\nthe bit",
      kPriceGroup);
}

void add_cache_dir_option(CommandOptions command, BindArguments& arguments) {
  command.add_option(
      "--cache-dir", arguments.cache_dir,
      "DIR: read and write caches there (default: the environment's\nTESSERA_CACHE_DIR, else "
      "the working folder; then the user's cache folder)",
      kPriceGroup);
}

void add_backend_path_option(CommandOptions command, std::vector<std::string>& paths) {
  command.add_repeatable("--backend-path", paths,
                         "PATH: a plug-in, or a folder of plug-ins, to load as well", kGroup);
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
  options.swap = parse_choice("--swap", arguments.swap, {"off", "on"}) == 1;
  options.cache_dir = arguments.cache_dir;
  options.frozen = arguments.frozen;
  options.retune = arguments.retune;
  options.cost_table = arguments.costs;
  options.in_process = arguments.in_process;
  options.tune_all = arguments.tune_all;
  options.margin_search_seconds = arguments.margin_search_seconds;
  options.describes_candidates = arguments.describes_candidates;
  options.candidate_timeout_seconds =
      parse_positive_number("--candidate-timeout", arguments.candidate_timeout, kMaxSeconds);
  if (arguments.tune_budget) {
    options.tune_budget_seconds =
        parse_positive_number("--tune-budget", *arguments.tune_budget, kMaxSeconds);
  }
  if (arguments.solve_budget) {
    options.solve_budget_seconds =
        parse_positive_number("--solve-budget", *arguments.solve_budget, kMaxSeconds);
  }
  if (arguments.memory_budget) {
    options.memory_budget_bytes = parse_byte_count("--memory-budget", *arguments.memory_budget, 1);
  }
  options.precision = parse_precision(arguments.precision);
  options.nan = parse_nan(arguments.nan);
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
