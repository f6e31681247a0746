#include "store/explain_cache.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "cache/cache_folder.h"
#include "cache/origin.h"
#include "cache/stored_file.h"
#include "tessera/error.h"

namespace tessera {
namespace {

const std::string* value_of(const std::vector<cache::Ingredient>& ingredients,
                            const std::string& name) {
  for (const cache::Ingredient& ingredient : ingredients) {
    if (ingredient.name == name) return &ingredient.value;
  }
  return nullptr;
}

bool is_of_same_model(const std::vector<cache::Ingredient>& left,
                      const std::vector<cache::Ingredient>& right) {
  const std::string* const one = value_of(left, "model");
  const std::string* const other = value_of(right, "model");
  return one != nullptr && other != nullptr && *one == *other;
}

// nullopt if the file cannot be read or decoded.
std::optional<cache::CacheFile> file_at(const std::filesystem::path& path) {
  const cache::FileText text = cache::read_stored_file(path, cache::kMaxFileBytes);
  if (!text.bytes) return std::nullopt;
  try {
    return cache::decode(*text.bytes, /*key=*/nullptr, path.string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string explain_no_plan_in(const cache::CacheFile& file, const tuning::Binding& binding,
                               const std::string& location) {
  try {
    return explain_no_plan(tuning::take_plan(file, binding, {}, location), location);
  } catch (const Error& error) {
    return error.what();
  }
}

const std::string& backend_of(const tuning::CostKey& key) { return key.candidate.backend; }
const std::string& backend_of(const tuning::ConversionCostKey& key) { return key.backend; }

// The number of prices and conversions of one backend that `known` lacks.
template <class Entries>
int64_t count_of(const Entries& entries, const std::string& backend, const Entries& known) {
  return std::count_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return backend_of(entry.first) == backend && !known.contains(entry.first);
  });
}

}  // namespace

std::string cache_location(const std::filesystem::path& path) {
  return "cache '" + path.string() + "'";
}

std::string explain_interrupted(double seconds, bool is_frozen) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", std::max(seconds, 0.1));
  const std::string after = std::string("interrupted after ") + text.data();
  return is_frozen ? "measuring was " + after : after + "; measuring continues";
}

std::string explain_no_plan(const tuning::TakenPlan& taken, const std::string& location) {
  if (taken.nearest.empty()) return location + " has measured times, but no plan";
  return location + " has a plan for another case, " + taken.nearest;
}

std::vector<CacheTypeReport> describe_types(const std::vector<tuning::PricedLibrary>& libraries,
                                            const tuning::TakenCosts& known,
                                            const tuning::CostTable* costs) {
  std::vector<CacheTypeReport> reports;
  const auto add = [&](const std::string& type, int64_t measured) {
    CacheTypeReport report{.type = type, .measured = measured};
    if (known.entries.contains(type)) report.loaded = known.entries.at(type);
    if (known.seconds.contains(type)) report.seconds_saved = known.seconds.at(type);
    if (known.origins.contains(type)) report.origin = cache::origin_text(known.origins.at(type));
    if (report.loaded > 0 || report.measured > 0) reports.push_back(report);
  };
  for (const tuning::PricedLibrary& library : libraries) {
    const std::string& backend = library.backend;
    add(backend, costs == nullptr
                     ? 0
                     : count_of(costs->kernels, backend, known.costs.kernels) +
                           count_of(costs->conversions, backend, known.costs.conversions));
  }
  return reports;
}

std::string explain_miss(const std::vector<std::filesystem::path>& folders,
                         const std::vector<cache::Ingredient>& model,
                         const tuning::Binding& binding) {
  std::string nearest;
  size_t least = 0;
  std::string names;
  for (const std::filesystem::path& folder : folders) {
    names += (names.empty() ? "'" : ", '") + folder.string() + "'";
    for (const std::filesystem::path& path : cache::list_folder(folder)) {
      const std::optional<cache::CacheFile> file = file_at(path);
      if (!file || !is_of_same_model(file->ingredients, model)) continue;
      const size_t count = cache::different_names(file->ingredients, model).size();
      if (!nearest.empty() && count >= least) continue;
      least = count;
      const std::string difference = cache::explain_difference(file->ingredients, model);
      nearest = difference.empty()
                    ? explain_no_plan_in(*file, binding, cache_location(path))
                    : cache_location(path) + " was made for another case, " + difference;
    }
  }
  return nearest.empty() ? "no cache of this model in " + names : nearest;
}

std::vector<CacheIngredient> describe(const std::vector<cache::Ingredient>& ingredients) {
  std::vector<CacheIngredient> described;
  for (const cache::Ingredient& ingredient : ingredients) {
    described.push_back(
        {ingredient.name, ingredient.value, text(cache::fingerprint_of({&ingredient, 1}))});
  }
  return described;
}

}  // namespace tessera
