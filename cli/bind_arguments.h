// The options of every command that binds a model: which libraries may run it, where, and how.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command_options.h"
#include "tessera/tessera.h"

namespace tessera::cli {

// As given, because that is what errors show.
struct BindArguments {
  std::string threads = "0";
  std::optional<std::string> backends;  // all where not given
  std::vector<std::string> backend_paths;
  std::vector<std::string> pins;
  std::vector<std::string> exclusions;
  std::string precision = "float32";
  std::string nan = "exact";
  std::string device = "cpu";
  std::vector<std::string> layouts;
  bool strict_storage = false;
  bool keeps_denormals = false;
  std::optional<std::string> memory_budget;  // no limit where not given
  bool optimize = false;
  bool no_optimize = false;
  std::string optimize_for = "latency";
  std::string swap = "off";  // "on" for those who ask by add_swap_option()
  std::string cache_dir;     // "": the usual place
  bool frozen = false;
  bool retune = false;  // only `tune` asks
  std::string costs;    // a file; "" for none
  std::string candidate_timeout = "10";
  std::optional<std::string> tune_budget;  // no limit where not given
  std::optional<std::string> solve_budget;
  bool in_process = false;
  bool tune_all = false;              // only `tune` asks
  double margin_search_seconds = 0;   // only `explain` asks
  bool describes_candidates = false;  // the same

  bool operator==(const BindArguments&) const = default;
};

// Adds --threads, --backends, --backend-path, --pin, --exclude, --precision, --nan, --device,
// --layout and
// --strict-storage, --keep-denormals.
void add_bind_options(CommandOptions command, BindArguments& arguments);

// Adds --optimize, --no-optimize, --costs, --optimize-for, --cache-dir and --frozen, and those of
// add_measuring_options().
void add_price_options(CommandOptions command, BindArguments& arguments);

// Adds --optimize-for alone.
void add_optimize_for_option(CommandOptions command, BindArguments& arguments);

// Adds --swap, with "on" where it is not given.
void add_swap_option(CommandOptions command, BindArguments& arguments);

// Adds --cache-dir alone.
void add_cache_dir_option(CommandOptions command, BindArguments& arguments);

// Adds --candidate-timeout, --tune-budget, --solve-budget and --in-process.
void add_measuring_options(CommandOptions command, BindArguments& arguments);

// Adds --memory-budget: for the commands that run what they bind, or say what it takes.
void add_memory_option(CommandOptions command, BindArguments& arguments);

// Adds --backend-path alone.
void add_backend_path_option(CommandOptions command, std::vector<std::string>& paths);

// "NODES=BACKEND" or "NODES=BACKEND:ALGORITHM". Names of nodes may hold '=', ':' and '/', so the
// last '=' ends NODES, and the first ':' after it ends BACKEND. What NODES means is settled by
// tessera::Pin. Throws InvalidArgument where a part is missing or empty.
Pin parse_pin(const std::string& text);

// "BACKEND" or "BACKEND:OP". Throws InvalidArgument where a part is empty.
Exclusion parse_exclusion(const std::string& text);

// "onednn,reference". Throws InvalidArgument for an empty name and for one given twice; whether
// there are such backends is found when binding.
std::vector<std::string> parse_backend_list(const std::string& text);

// The known backends and those of `paths`. Throws InvalidArgument where there is no such path.
Backends backends_of(const std::vector<std::string>& paths);

// All but the shapes and what to fetch. Throws InvalidArgument for what does not parse.
BindOptions bind_options_of(const BindArguments& arguments);

}  // namespace tessera::cli
