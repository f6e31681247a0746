#include "api/options/bind_options.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "api/describe/describe.h"
#include "api/options/backends_state.h"
#include "api/options/cache_folders.h"
#include "api/options/cache_ingredients.h"
#include "api/options/io_layouts.h"
#include "api/options/option_table.h"
#include "base/errors/likely_name.h"
#include "measure/capture.h"
#include "price/groups.h"
#include "tessera/backend_abi.h"
#include "tessera/error.h"

namespace tessera {

std::vector<std::shared_ptr<const Plugin>> choose_plugins(BackendSet& set,
                                                          const BindOptions& options) {
  return set.choose(wanted_backends(options));
}

std::vector<std::shared_ptr<const Plugin>> choose_some_plugins(
    BackendSet& set, const BindOptions& options, const std::vector<std::string>& names) {
  return set.choose_some(wanted_backends(options), names);
}

std::vector<std::string> wanted_backends(const BindOptions& options) {
  return options.backends.empty() ? backends_of_environment() : options.backends;
}

std::vector<tuning::PricedLibrary> priced_versions(BackendSet& set, const BindOptions& options) {
  auto libraries = tuning::priced_libraries(set.choose_versions(wanted_backends(options)));
  add_core_revision(libraries);
  return libraries;
}

tuning::FindLibraries find_libraries(std::shared_ptr<BackendSet> set, const BindOptions& options) {
  return [set = std::move(set),
          chosen = wanted_backends(options)](const std::vector<std::string>& names) {
    auto libraries = tuning::priced_libraries(names.empty() ? set->choose(chosen)
                                                            : set->choose_some(chosen, names));
    add_core_revision(libraries);
    return libraries;
  };
}

Optimize optimize_of(const BindOptions& options) {
  if (options.optimize) return *options.optimize;
  const bool is_wanted = options.tune.cost_table.empty() && is_optimize_wanted_by_environment();
  return is_wanted ? Optimize::Now : Optimize::Off;
}

bool is_optimizing(const BindOptions& options) { return optimize_of(options) != Optimize::Off; }

int64_t runs_per_build(const std::string& optimize_for) {
  constexpr int64_t kMaxRuns = 1'000'000'000;
  constexpr std::string_view kRuns = "-runs";
  if (optimize_for == "latency") return 0;
  if (optimize_for == "start") return 1;
  int64_t runs = 0;
  if (optimize_for.ends_with(kRuns)) {
    const char* end = optimize_for.data() + optimize_for.size() - kRuns.size();
    const auto [stopped, failure] = std::from_chars(optimize_for.data(), end, runs);
    if (failure == std::errc() && stopped == end && runs >= 1 && runs <= kMaxRuns) return runs;
  }
  throw Error(ErrorKind::InvalidArgument, "optimize_for",
              "expected 'latency', 'start', or a number of runs from 1 to 1000000000 as in "
              "'100-runs', found '" +
                  optimize_for + "'" + did_you_mean(optimize_for, {"latency", "start"}));
}

bool is_swap_possible(const BindOptions& options) {
  // If build time counts, the chosen plan is built soon. Two plans could exceed a memory budget.
  return !options.run.fetches_step_outputs && options.limits.memory_budget_bytes == 0 &&
         runs_per_build(options.tune.optimize_for) == 0;
}

bool may_swap(const BindOptions& options) {
  return options.cache.swap && is_swap_possible(options);
}

// The text of a regular file; nullopt if it is no regular file or cannot be read.
static std::optional<std::string> text_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream.is_open() || stream.bad()) return std::nullopt;
  return std::move(text).str();
}

tuning::CostTable known_costs(const std::filesystem::path& file) {
  if (file.empty()) return {};
  // These are the costs themselves, too long for a message.
  if (file.native().find('\n') != std::string::npos) {
    throw Error(ErrorKind::InvalidArgument, "costs",
                "expected the name of a file that `tessera tune --output` wrote, found a text of " +
                    std::to_string(file.native().size()) +
                    " bytes in several lines; if these are the costs, write them to a file");
  }
  const std::string where = "costs '" + file.string() + "'";
  const std::optional<std::string> text = text_of(file);
  if (!text) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected a file that `tessera tune --output` wrote, found none that can be read");
  }
  tuning::CostTable table = tuning::read_cost_table(*text, where);
  if (!table.machine.empty() && table.machine != tuning::this_machine()) {
    throw Error(ErrorKind::InvalidArgument, where,
                "expected times of this machine (" + tuning::this_machine() + "), found those of " +
                    table.machine + "; tune again here");
  }
  return table;
}

std::vector<Tensor> tuning_inputs(const Graph& graph, const BindOptions& options) {
  if (options.tune.tuning_inputs.empty()) return {};
  std::vector<ValueDescription> expected = describe_inputs(graph);
  std::vector<std::string> names;
  for (const ValueDescription& input : expected) names.push_back(input.name);
  for (const auto& [name, tensor] : options.tune.tuning_inputs) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error(ErrorKind::InvalidArgument, "tuning_inputs '" + name + "'",
                "expected the name of an input" + did_you_mean(name, names));
  }
  std::vector<Tensor> inputs = tuning::draw_inputs(graph, 1);
  for (size_t index = 0; index < inputs.size(); ++index) {
    const auto given = options.tune.tuning_inputs.find(expected[index].name);
    if (given == options.tune.tuning_inputs.end()) continue;
    const std::optional<SparseForm> dense;
    expected[index].layout = TESSERA_LAYOUT_DEFAULT;  // measuring copies them where it needs them
    const Tensor tensor = given->second.to_host();
    inputs[index] = expected[index].is_read ? feed({expected[index], dense}, tensor) : tensor;
  }
  return inputs;
}

std::vector<StatePorts> state_ports(const std::vector<StatePair>& pairs,
                                    const std::vector<ValueDescription>& inputs,
                                    const std::vector<ValueDescription>& outputs) {
  std::vector<StatePorts> ports;
  for (const StatePair& pair : pairs) {
    const std::string where = "state pair '" + pair.input + "', '" + pair.output + "'";
    const auto find = [&](const std::vector<ValueDescription>& values, const std::string& name,
                          const std::string& what) {
      const auto found = std::find_if(values.begin(), values.end(),
                                      [&](const auto& value) { return value.name == name; });
      if (found != values.end()) return static_cast<size_t>(found - values.begin());
      std::vector<std::string> names;
      for (const ValueDescription& value : values) names.push_back(value.name);
      throw Error(ErrorKind::InvalidArgument, where,
                  "the model has no " + what + " '" + name + "'" + did_you_mean(name, names));
    };
    const size_t input = find(inputs, pair.input, "input");
    const size_t output = find(outputs, pair.output, "output");
    const std::string expected = inputs[input].text + ", " + inputs[input].layout;
    const std::string found = outputs[output].text + ", " + outputs[output].layout;
    if (expected != found || !inputs[input].layout.starts_with(TESSERA_LAYOUT_DEFAULT)) {
      throw Error(ErrorKind::InvalidArgument, where,
                  "expected two dense tensors of one type, shape and memory, found an input (" +
                      expected + ") and an output (" + found + ")");
    }
    ports.push_back({input, output});
  }
  return ports;
}

}  // namespace tessera
