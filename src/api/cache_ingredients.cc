#include "api/cache_ingredients.h"

#include <algorithm>
#include <utility>

#include "api/bind_options.h"
#include "base/processor.h"
#include "cache/cache_file.h"
#include "price/cost_sections.h"

namespace tessera {
namespace {

// Longer values are shown as their digests.
constexpr size_t kMaxLetters = 200;

std::string shortened(const std::string& value) {
  return value.size() <= kMaxLetters ? value : "digest " + cache::digest_text(value);
}

template <class Items, class ToText>
std::string joined(const Items& items, const ToText& to_text) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + to_text(item);
  return shortened(text);
}

// Types of the inputs in their order, as they are bound.
std::string inputs_text(const Graph& graph, const BindOptions& options) {
  return joined(graph.inputs, [&](ValueId input) {
    const Value& value = graph[input];
    const auto given = options.shapes.find(value.name);
    if (given == options.shapes.end() || !value.type.is_tensor()) return text(value.type);
    std::string shape;
    for (const int64_t size : given->second)
      shape += (shape.empty() ? "" : "x") + std::to_string(size);
    return std::string(name(value.type.element)) + " " + (shape.empty() ? "scalar" : shape);
  });
}

// By what the values are in the graph, where names of theirs do not matter.
std::string fetch_text(const Graph& graph, const ModelStructure& structure,
                       const BindOptions& options) {
  return joined(options.fetch, [&](const std::string& fetched) {
    const ValueId value = find_value(graph, fetched);
    return value.is_none() ? fetched : structure.names[static_cast<size_t>(value.index)];
  });
}

}  // namespace

std::vector<cache::Ingredient> machine_ingredients() {
  return {{"tessera", tuning::first_two_numbers(version())},
          {"cache format", std::to_string(cache::kFormatVersion)},
          {"processor", processor_model()},
          {"instruction set", instruction_set_name()}};
}

std::vector<cache::Ingredient> model_ingredients(const ModelStructure& structure) {
  std::vector<cache::Ingredient> all = machine_ingredients();
  all.push_back({"model", structure.digest});
  return all;
}

std::vector<cache::Ingredient> bind_ingredients(const Graph& loaded,
                                                const ModelStructure& structure,
                                                const BindOptions& options,
                                                const std::vector<std::string>& backends,
                                                int threads) {
  std::vector<cache::Ingredient> all;
  const auto add = [&](const char* name, std::string value) {
    all.push_back({name, std::move(value)});
  };
  add("inputs", inputs_text(loaded, options));
  add("fetch", fetch_text(loaded, structure, options));
  add("layouts", joined(options.layouts,
                        [](const auto& layout) { return layout.first + "=" + layout.second; }));
  add("strict storage", options.strict_storage ? "yes" : "no");
  add("device", options.device);
  add("memory budget", std::to_string(options.memory_budget_bytes));
  // "start" and "1-runs" are one thing.
  const int64_t runs = runs_per_build(options.optimize_for);
  add("optimize for", runs == 0 ? "latency" : std::to_string(runs) + "-runs");
  add("backends",
      backends.empty() ? "all" : joined(backends, [](const auto& name) { return name; }));
  add("pins", joined(options.pins, [](const Pin& pin) {
        return pin.nodes + "=" + pin.backend + (pin.algorithm.empty() ? "" : ":" + pin.algorithm);
      }));
  add("exclusions", joined(options.exclusions, [](const Exclusion& exclusion) {
        return exclusion.backend + (exclusion.op.empty() ? "" : ":" + exclusion.op);
      }));
  add("state pairs", joined(options.state_pairs,
                            [](const StatePair& pair) { return pair.input + "=" + pair.output; }));
  add("denormals", options.keeps_denormals ? "kept" : "flushed");
  add("precision", options.precision == Precision::BFloat16 ? "bfloat16" : "float32");
  add("nan", options.nan == NanMode::Fast ? "fast" : "exact");
  add("threads", std::to_string(threads));
  return all;
}

void add_core_revision(std::vector<tuning::PricedLibrary>& libraries) {
  for (tuning::PricedLibrary& library : libraries) {
    library.stable.push_back({tuning::kCoreRevisionName, kernel_revision()});
  }
}

}  // namespace tessera
