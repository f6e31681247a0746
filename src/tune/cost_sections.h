// Between what was found out for one graph and the sections of a cache file: prices by backend, so
// that a library that changes costs its own prices alone, and the plan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/library_version.h"
#include "backend/plugin.h"
#include "cache/cache_file.h"
#include "tune/cost_table.h"

namespace tessera::tuning {

// The type of sections that hold plans.
constexpr const char* kPlanSection = "plan";
constexpr const char* kCostsContent = "costs";
// Of a library's section for one bind, without bytes: whatever its prices lack could not win there.
constexpr const char* kSettledContent = "settled";
// Of a section of that type instead of a plan: after how many seconds finding one was interrupted.
constexpr const char* kInterruptedContent = "interrupted";

// A library as prices depend on it.
struct PricedLibrary {
  std::string backend;
  std::string ingredients;  // as CostKey has them
  // Versions by their first two numbers, and nothing of which build it is: a patch does not change
  // what a choice rests on.
  std::vector<cache::Ingredient> stable;
};

std::vector<PricedLibrary> priced_libraries(
    const std::vector<std::shared_ptr<const Plugin>>& plugins);
// The same of libraries that need not be open; `ingredients` stay empty.
std::vector<PricedLibrary> priced_libraries(const std::vector<LibraryVersion>& versions);

// What a plan was asked for: shapes, options, threads, by name. The first part of the key of its
// section; the second is every library that the bind could choose from, so that one that appears,
// goes or changes gets to compete.
using Binding = std::vector<cache::Ingredient>;

// An ingredient that all libraries have in common: of the code around them. It stands in a key
// once.
constexpr const char* kCoreRevisionName = "core revision";

// That second part.
std::vector<cache::Ingredient> versions_in_key(const std::vector<PricedLibrary>& libraries);

// "3.2" of "3.2.1", "2024.3" of "2024.3.0-16041".
std::string first_two_numbers(const std::string& version);

// What is known of one graph, ready to be stored.
struct FoundCosts {
  CostTable costs;
  std::optional<KnownPlan> plan;
  // With which libraries the plan was found, as versions_in_key() has them, where that is not those
  // that there are now: then it goes on to be the plan of these, and nothing is settled.
  std::optional<std::vector<cache::Ingredient>> plan_versions = {};
  double seconds = 0;  // that it took to find out, all in all
  // Where there is no plan because the user stopped the search for it: after how long.
  std::optional<double> interrupted_seconds = {};
};

// That measuring the table's entries took at least: building, and the rounds that count.
double seconds_to_measure(const CostTable& table);

// A section of prices for each library that `found` has prices of, and one for the plan, or for why
// there is none.
std::vector<cache::Section> to_sections(const FoundCosts& found,
                                        const std::vector<PricedLibrary>& libraries,
                                        const Binding& binding);

// Of two sections of one key the one that is kept: prices of both, where they are prices; else
// `added`.
cache::Section merged(const cache::Section& present, cache::Section added);

struct TakenCosts {
  CostTable costs;
  std::map<std::string, int64_t> entries;  // by library
  std::map<std::string, double> seconds;   // that each took to find out
  std::map<std::string, cache::Origin> origins;
  std::vector<std::string> reasons;  // of what was not taken, a sentence each
};

// A plan of a file, without the prices.
struct TakenPlan {
  std::optional<KnownPlan> plan;
  cache::Origin origin = cache::Origin::Here;
  double seconds = 0;  // that it took to find
  // With which libraries it was found, and, where these are others now, which, in a sentence: the
  // plan runs if it can be built, and those that are new compete.
  std::vector<cache::Ingredient> versions;
  std::string change;
  // Where there is none because the user stopped the search for it: after how long.
  std::optional<double> interrupted_seconds = {};
  // Plans of this model for other bindings, as the nearest one differs; "" where there are none.
  std::string nearest;
};

// What the file has for this binding: the plan for these libraries, else the newest for others.
// Throws Corrupt, naming `place`, for a section that holds no plan.
TakenPlan take_plan(const cache::CacheFile& file, const Binding& binding,
                    const std::vector<PricedLibrary>& libraries, const std::string& place);

// The prices that the file has of these libraries; `type` is a library's, or "" for all. Prices of
// another version, or of what is not there, stay out. Those of strangers are not judged here.
// Throws Corrupt, naming `place`, for a section that is no table of its library's costs.
TakenCosts take_costs(const cache::CacheFile& file, const std::string& type,
                      const std::vector<PricedLibrary>& libraries, const std::string& place);

// Whether a plan was found for this binding among candidates of the library, in this version: then
// nothing of it is left to be measured.
bool is_settled(const cache::CacheFile& file, const Binding& binding, const PricedLibrary& library);

// Throws Corrupt, naming `place`, for a section that should hold a plan and does not.
void check_plans(const cache::CacheFile& file, const std::string& place);

// The libraries of these backends, in order of preference, opened; no names: all.
using FindLibraries =
    std::function<std::vector<PricedLibrary>(const std::vector<std::string>& backends)>;

}  // namespace tessera::tuning
