// Converts between the results for one graph and sections of a cache file: the prices by backend,
// so that a change of a library invalidates its own prices only, and the plan.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/catalog/library_version.h"
#include "backend/plugin.h"
#include "cache/cache_file.h"
#include "price/cost_table.h"

namespace tessera::tuning {

// The type of sections with plans.
constexpr const char* kPlanSection = "plan";
inline bool is_plan(const cache::Section& section) { return section.type == kPlanSection; }
constexpr const char* kCostsContent = "costs";
// The content of a library's section for one bind, without bytes. It says that candidates without
// prices cannot win there.
constexpr const char* kFullyMeasuredContent = "settled";
// The content of a section of type "plan" without a plan: the search was interrupted after this
// number of seconds.
constexpr const char* kInterruptedContent = "interrupted";

// The properties of a library that prices depend on.
struct PricedLibrary {
  std::string backend;
  std::string ingredients;  // as in CostKey
  // Versions reduced to their first two numbers, without the build: patches do not invalidate a
  // choice.
  std::vector<cache::Ingredient> stable;
};

std::vector<PricedLibrary> priced_libraries(
    const std::vector<std::shared_ptr<const Plugin>>& plugins);
// Same as priced_libraries(plugins), for libraries that need not be open; `ingredients` stay empty.
std::vector<PricedLibrary> priced_libraries(const std::vector<LibraryVersion>& versions);

// The request for a plan: shapes, options, threads, by name. It is the first part of its section's
// key. The second part is all libraries that the bind could choose from, so that added, removed or
// changed libraries cause a new search.
using Binding = std::vector<cache::Ingredient>;

// The ingredient for the core's own code, common to all libraries; it occurs once in a key.
constexpr const char* kCoreRevisionName = "core revision";

// The second part of the key.
std::vector<cache::Ingredient> versions_in_key(const std::vector<PricedLibrary>& libraries);

// "3.2" for "3.2.1", "2024.3" for "2024.3.0-16041".
std::string first_two_numbers(const std::string& version);

// The result of a search for the plan of one bind: of this bind, or one that a file or this process
// knows.
struct FoundPlan {
  std::optional<KnownPlan> plan = {};  // nullopt if the search found none
  // A plan of Origin::Untrusted is only a proposal, whose kernels must be verified.
  cache::Origin origin = cache::Origin::Local;
  double seconds = 0;  // that the search took, as the file says
  // If the libraries have changed since: how, in a sentence, and those with which the plan was
  // found, as in versions_in_key(). Such a plan runs if it can be built, and the new libraries
  // compete. If it is stored again, then for its own libraries, and no library counts as fully
  // measured.
  std::string change = {};
  std::vector<cache::Ingredient> versions = {};
  // Set if the search ended before its end, because the user stopped it (then there is no plan) or
  // because a budget was spent (then the plan is the best that was found in that time): the time
  // spent until then.
  std::optional<double> interrupted_seconds = {};
  std::filesystem::path file = {};  // that has the plan; "" if this process found it
};

// The other results for one graph.
struct FoundCosts {
  CostTable costs;
  double seconds = 0;               // total time spent on the search
  std::optional<double> gain = {};  // TuningDescription::gain
};

// A lower bound of the time to measure the table's entries: building, and the rounds that count.
double seconds_to_measure(const CostTable& table);

// A section of prices for each library that has any in `found`, and one for the plan or for the
// reason why there is none.
std::vector<cache::Section> to_sections(const FoundCosts& found, const FoundPlan& plan,
                                        const std::vector<PricedLibrary>& libraries,
                                        const Binding& binding);

// Merges two sections with the same key: prices are united; otherwise `added` wins.
cache::Section merged(const cache::Section& present, cache::Section added);

struct TakenCosts {
  CostTable costs;
  std::map<std::string, int64_t> entries;  // by library
  std::map<std::string, double> seconds;   // search time of each
  std::map<std::string, cache::Origin> origins;
  std::vector<std::string> reasons;  // why entries were not taken, one sentence each
};

// The file's plan for this binding: the one for these libraries, else the newest for others.
// `change` compares the libraries; `file` stays empty. Throws Corrupt, naming `location`, for a
// section without a valid plan.
FoundPlan take_plan(const cache::CacheFile& file, const Binding& binding,
                    const std::vector<PricedLibrary>& libraries, const std::string& location);

// How the nearest other binding with a plan in the file differs; "" if there is none.
std::string explain_nearest_plan(const cache::CacheFile& file, const Binding& binding);

// The file's prices of these libraries; `type` is a library's name, or "" for all. Skips prices of
// other versions and of unknown libraries. Prices of third parties are marked as not judged here.
// Throws Corrupt, naming `location`, for a section that is not a table of its library's costs.
TakenCosts take_costs(const cache::CacheFile& file, const std::string& type,
                      const std::vector<PricedLibrary>& libraries, const std::string& location);

// Whether a plan for this binding was found among candidates of this version of the library, so
// that none of its candidates are left to measure.
bool is_fully_measured(const cache::CacheFile& file, const Binding& binding,
                       const PricedLibrary& library);

// Throws Corrupt, naming `location`, for a plan section without a valid plan.
void check_plans(const cache::CacheFile& file, const std::string& location);

// Finds the opened libraries of these backends, in order of preference; without names, all.
using FindLibraries =
    std::function<std::vector<PricedLibrary>(const std::vector<std::string>& backends)>;

}  // namespace tessera::tuning
