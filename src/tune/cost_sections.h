// Between what was found out for one graph and the sections of a cache file: prices by backend, so
// that a library that changes costs its own prices alone, and the plan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/plugin.h"
#include "cache/cache_file.h"
#include "tune/cost_table.h"

namespace tessera::tuning {

// The type of the section that holds the plan.
constexpr const char* kPlanSection = "plan";
constexpr const char* kCostsContent = "costs";
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

// "3.2" of "3.2.1", "2024.3" of "2024.3.0-16041".
std::string first_two_numbers(const std::string& version);

// What is known of one graph, ready to be stored.
struct FoundCosts {
  CostTable costs;
  std::optional<KnownPlan> plan;
  double seconds = 0;  // that it took to find out, all in all
  // Where there is no plan because the user stopped the search for it: after how long.
  std::optional<double> interrupted_seconds = {};
};

// That measuring the table's entries took at least: building, and the rounds that count.
double seconds_to_measure(const CostTable& table);

// A section of prices for each library that `found` has prices of, and one for the plan, or for why
// there is none.
std::vector<cache::Section> to_sections(const FoundCosts& found,
                                        const std::vector<PricedLibrary>& libraries);

struct TakenCosts {
  CostTable costs;
  std::optional<KnownPlan> plan;
  std::map<std::string, int64_t> entries;  // by type of section
  std::map<std::string, double> seconds;   // that each took to find out
  std::vector<std::string> reasons;        // of what was not taken, a sentence each
};

// The plan of a file, without the prices.
struct TakenPlan {
  std::optional<KnownPlan> plan;
  double seconds = 0;   // that it took to find
  std::string refusal;  // why it is not taken
  // Where there is none because the user stopped the search for it: after how long.
  std::optional<double> interrupted_seconds = {};
};

// The libraries of these backends, in order of preference.
using FindLibraries =
    std::function<std::vector<PricedLibrary>(const std::vector<std::string>& backends)>;

// What the file has for the plan, where each library that it uses is as it was: only these are
// asked for. Throws Corrupt, naming `place`, for a section that holds no plan.
TakenPlan take_plan(const cache::CacheFile& file, const FindLibraries& find_libraries,
                    const std::string& place);

// What the file has for these libraries; `type` is a section's, or "" for all. Prices of a library
// that is another version now, or is not there, stay out, and so does a plan that uses it. Throws
// Corrupt, naming `place`, for a section that is no table of its library's costs.
TakenCosts take_sections(const cache::CacheFile& file, const std::string& type,
                         const std::vector<PricedLibrary>& libraries, const std::string& place);

}  // namespace tessera::tuning
