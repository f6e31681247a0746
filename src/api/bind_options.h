// BindOptions as what the stages of src/compile take. All throw InvalidArgument where an option
// asks for something that cannot be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend_set.h"
#include "compile/build_plan.h"
#include "engine/io_binding.h"
#include "graph/graph.h"
#include "price/cost_sections.h"
#include "price/cost_table.h"
#include "tessera/tessera.h"

namespace tessera {

// Those that the options name, else the environment.
std::vector<std::shared_ptr<const Plugin>> choose_plugins(BackendSet& set,
                                                          const BindOptions& options);

// Of those the ones with these names.
std::vector<std::shared_ptr<const Plugin>> choose_some_plugins(
    BackendSet& set, const BindOptions& options, const std::vector<std::string>& names);

// The names that were asked for; none: all.
std::vector<std::string> wanted_backends(const BindOptions& options);

// Of all that may be used, what prices depend on; those that are remembered are not opened.
std::vector<tuning::PricedLibrary> priced_versions(BackendSet& set, const BindOptions& options);

// What is asked for by name among those, or all; no others are opened.
tuning::FindLibraries find_libraries(std::shared_ptr<BackendSet> set, const BindOptions& options);

// Whether this bind measures, where caches do not know.
bool is_optimizing(const BindOptions& options);

// Whether a bind may begin with another plan than the fastest, if CacheOptions::swap allows it, and
// whether this one may.
bool is_swap_possible(const BindOptions& options);
bool may_swap(const BindOptions& options);

// TuningOptions::optimize_for as PricingOptions::runs_per_build.
int64_t runs_per_build(const std::string& optimize_for);

PlanOptions plan_options(const BindOptions& options, const BackendSet& set);

// What `file` holds; nothing for "". Throws Corrupt where it is damaged.
tuning::CostTable known_costs(const std::filesystem::path& file);

PricingOptions pricing_options(const BindOptions& options, tuning::CostTable& costs);

// RunOptions::state_pairs by index. Throws InvalidArgument where there is no such input or output,
// or the two are not alike.
std::vector<StatePorts> state_ports(const std::vector<StatePair>& pairs,
                                    const std::vector<ValueDescription>& inputs,
                                    const std::vector<ValueDescription>& outputs);

// Those that the caller gave, in the graph's order, the others drawn; none where he gave none.
std::vector<Tensor> tuning_inputs(const Graph& graph, const BindOptions& options);

}  // namespace tessera
