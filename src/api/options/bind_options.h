// Reads single BindOptions. planner.cc makes the options of a whole build. All functions throw
// InvalidArgument if an option cannot be satisfied.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/catalog/backend_set.h"
#include "engine/io_binding.h"
#include "graph/graph.h"
#include "price/cost_sections.h"
#include "price/cost_table.h"
#include "tessera/tessera.h"

namespace tessera {

// The plug-ins that the options name, or else the environment, or else all; in order of preference.
std::vector<std::shared_ptr<const Plugin>> choose_plugins(BackendSet& set,
                                                          const BindOptions& options);

// The plug-ins of choose_plugins() that are called `names`.
std::vector<std::shared_ptr<const Plugin>> choose_some_plugins(
    BackendSet& set, const BindOptions& options, const std::vector<std::string>& names);

// The names of backends that the options list, or else the environment. Empty: all are wanted.
std::vector<std::string> wanted_backends(const BindOptions& options);

// The libraries that prices depend on. Libraries whose versions are remembered are not opened.
std::vector<tuning::PricedLibrary> priced_versions(BackendSet& set, const BindOptions& options);

// Returns a function that opens the named libraries only, or all if it gets no names, and returns
// what prices depend on.
tuning::FindLibraries find_libraries(std::shared_ptr<BackendSet> set, const BindOptions& options);

// Whether this bind measures what caches do not know.
bool is_optimizing(const BindOptions& options);

// Whether a bind may begin with another plan than the fastest, if CacheOptions::swap allows it, and
// whether this one may.
bool is_swap_possible(const BindOptions& options);
bool may_swap(const BindOptions& options);

// TuningOptions::optimize_for as PricingOptions::runs_per_build.
int64_t runs_per_build(const std::string& optimize_for);

// The costs in `file`; an empty table for "". Throws Corrupt if the file is damaged.
tuning::CostTable known_costs(const std::filesystem::path& file);

// RunOptions::state_pairs by index. Throws InvalidArgument if an input or output does not exist, or
// if the two have different types or shapes.
std::vector<StatePorts> state_ports(const std::vector<StatePair>& pairs,
                                    const std::vector<ValueDescription>& inputs,
                                    const std::vector<ValueDescription>& outputs);

// The inputs for measuring, in the graph's order: those that the caller gave; the others are drawn.
// Empty if the caller gave none.
std::vector<Tensor> tuning_inputs(const Graph& graph, const BindOptions& options);

}  // namespace tessera
