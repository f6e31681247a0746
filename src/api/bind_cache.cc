#include "api/bind_cache.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "api/cache_ingredients.h"
#include "cache/cache_folder.h"
#include "cache/stored_file.h"
#include "tessera/error.h"
#include "tune/groups.h"

namespace tessera {
namespace {

// Less than it takes to sync a file: a program that meets new graphs all the time spends no more.
constexpr double kSecondsWorthSaving = 0.005;
constexpr auto kPollTime = std::chrono::milliseconds(20);

std::string place_of(const std::filesystem::path& path) { return "cache '" + path.string() + "'"; }

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

std::optional<std::vector<cache::Ingredient>> ingredients_of(const std::filesystem::path& path) {
  const cache::FileText text = cache::read_stored_file(path, cache::kMostFileBytes);
  if (!text.bytes) return std::nullopt;
  try {
    return cache::decode_ingredients(*text.bytes, path.string());
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

// Prices and conversions of one backend.
template <class Entries>
int64_t count_of(const Entries& entries, const std::string& backend, const Entries& known) {
  return std::count_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.first.backend == backend && !known.contains(entry.first);
  });
}

}  // namespace

std::string explain_miss(const std::vector<std::filesystem::path>& folders,
                         const std::vector<cache::Ingredient>& ingredients) {
  std::string nearest;
  size_t least = 0;
  std::string names;
  for (const std::filesystem::path& folder : folders) {
    names += (names.empty() ? "'" : ", '") + folder.string() + "'";
    for (const std::filesystem::path& path : cache::list_folder(folder)) {
      const auto there = ingredients_of(path);
      if (!there || !is_of_same_model(*there, ingredients)) continue;
      const size_t count = cache::different_names(*there, ingredients).size();
      if (!nearest.empty() && count >= least) continue;
      least = count;
      nearest = place_of(path) + " has " + cache::explain_difference(*there, ingredients);
    }
  }
  return nearest.empty() ? "no cache of this model in " + names : nearest;
}

BindCache::BindCache(CacheQuestion question, FoundPlans& plans, const Log& log)
    : question_(std::move(question)),
      fingerprint_(cache::fingerprint_of(question_.ingredients)),
      plans_(plans),
      log_(log) {}

void BindCache::look_up(const std::function<bool(const std::string& what)>& keeps_waiting) {
  look();
  if (known_.plan) return;
  if (question_.is_frozen) miss();
  turn_.emplace(plans_.wait_for_turn(fingerprint_));
  look();
  if (!known_.plan) wait_for_lock(keeps_waiting);
  if (lock_) look();
  if (known_.plan) let_go();
}

CacheReport BindCache::find() {
  look();
  CacheReport report = described();
  report.is_hit = known_.plan.has_value();
  if (!report.is_hit) report.reason = reason();
  for (const auto& [type, count] : known_.entries) {
    report.types.push_back({.type = type, .loaded = count, .seconds_saved = known_.seconds[type]});
  }
  return report;
}

CacheReport BindCache::described() const {
  return {.fingerprint = text(fingerprint_),
          .ingredients = describe(question_.ingredients),
          .file = file_};
}

std::string BindCache::reason() const {
  return reasons_.empty() ? explain_miss(question_.folders, question_.ingredients)
                          : joined(reasons_);
}

void BindCache::look() {
  known_ = {};
  file_.clear();
  reasons_.clear();
  if (!question_.looks_up) return;
  look_into_given();
  if (!known_.plan) look_into_folders();
  if (!known_.plan) known_.plan = plans_.find(fingerprint_);
}

// Of many files, of as many shapes, one is meant: only where none is, that is worth a word.
void BindCache::look_into_given() {
  std::string unfit;
  bool is_any_fit = false;
  for (const GivenCache& given : question_.given) {
    const std::string difference =
        cache::explain_difference(given.file.ingredients, question_.ingredients);
    if (difference.empty()) {
      is_any_fit = true;
      look_into(given.file, given.type, given.path);
    } else {
      unfit = place_of(given.path) + " is not used: " + difference;
    }
  }
  if (is_any_fit || unfit.empty()) return;
  reasons_.push_back(unfit);
  log_.warn(unfit);
}

void BindCache::look_into(const cache::CacheFile& file, const std::string& type,
                          const std::filesystem::path& path) {
  tuning::TakenCosts taken = tuning::take_sections(file, type, question_.libraries, place_of(path));
  tuning::merge(known_.costs, taken.costs);
  if (taken.plan) known_.plan = std::move(taken.plan);
  for (const auto& [of, count] : taken.entries) known_.entries[of] = count;
  for (const auto& [of, seconds] : taken.seconds) known_.seconds[of] = seconds;
  for (std::string& reason : taken.reasons) reasons_.push_back(std::move(reason));
  if (!taken.entries.empty()) file_ = path;
}

void BindCache::look_into_folders() {
  for (const std::filesystem::path& folder : question_.folders) {
    const cache::FoundCache found =
        cache::find_in_folder(folder, question_.ingredients, /*key=*/nullptr);
    if (!found.reason.empty()) reasons_.push_back(found.reason);
    if (!found.file) continue;
    try {
      look_into(*found.file, "", found.path);
    } catch (const Error& error) {
      reasons_.emplace_back(error.what());
    }
    if (known_.plan) return;
  }
}

// The folder that will be written to is where others look whether somebody is at it.
void BindCache::wait_for_lock(const std::function<bool(const std::string& what)>& keeps_waiting) {
  const std::string name = "." + text(fingerprint_) + ".lock";
  for (const std::filesystem::path& folder : question_.folders) {
    if (!cache::make_private_folder(folder).empty()) continue;
    if (!cache::explain_unsafe_folder(folder).empty()) continue;
    while (true) {
      cache::FileLock::Attempt attempt = cache::FileLock::try_lock(folder / name);
      if (attempt.lock) {
        lock_.emplace(std::move(*attempt.lock));
        return;
      }
      if (!attempt.failure.empty()) break;
      const std::string what = "waiting for " + attempt.holder + ", which measures this model";
      log_.warn(what);
      if (!keeps_waiting(what)) return;
      std::this_thread::sleep_for(kPollTime);
    }
  }
}

void BindCache::let_go() {
  lock_.reset();
  turn_.reset();
}

void BindCache::miss() const {
  throw Error(ErrorKind::CacheMiss, "fingerprint " + text(fingerprint_),
              "expected to find the plan, as nothing may be measured; " + reason() +
                  ". Bind once without `frozen`");
}

void BindCache::tell(tuning::CostTable& costs, PricingOptions& pricing) const {
  tuning::merge(costs, known_.costs);
  costs.machine = tuning::this_machine();
  pricing.known_plan = known_.plan;
  pricing.relies_on_known_plan = question_.looks_up;
  if (question_.is_frozen) pricing.measures = false;
}

std::vector<CacheTypeReport> BindCache::types(const tuning::CostTable& costs,
                                              const PlanResult& result) const {
  std::vector<CacheTypeReport> reports;
  const auto add = [&](const std::string& type, int64_t measured) {
    CacheTypeReport report{.type = type, .measured = measured};
    if (known_.entries.contains(type)) report.loaded = known_.entries.at(type);
    if (known_.seconds.contains(type)) report.seconds_saved = known_.seconds.at(type);
    if (report.loaded > 0 || report.measured > 0) reports.push_back(report);
  };
  for (const tuning::PricedLibrary& library : question_.libraries) {
    const bool has_measured = result.tuning.measured > 0;
    add(library.backend,
        has_measured ? count_of(costs.kernels, library.backend, known_.costs.kernels) +
                           count_of(costs.conversions, library.backend, known_.costs.conversions)
                     : 0);
  }
  add(tuning::kPlanSection, result.is_known_plan ? 0 : 1);
  return reports;
}

std::shared_ptr<const CacheRecord> BindCache::keep(const PlanResult& result,
                                                   const tuning::CostTable& costs) {
  if (question_.is_frozen && !result.is_known_plan) miss();
  // Whoever was interrupted knows no plan that is worth keeping.
  const bool is_interrupted = result.tuning.is_stopped && !result.tuning.is_out_of_time;
  auto record = std::make_shared<CacheRecord>();
  record->ingredients = question_.ingredients;
  record->libraries = question_.libraries;
  record->found.costs = costs;
  record->found.seconds = result.tuning.seconds;
  for (const auto& [type, seconds] : known_.seconds) record->found.seconds += seconds;
  if (!is_interrupted) record->found.plan = result.plan;
  CacheReport& report = record->report = described();
  report.is_hit = result.is_known_plan;
  report.types = types(costs, result);
  if (!result.is_known_plan) {
    report.reason = question_.looks_up ? reason() : "everything was to be measured anew";
    if (record->found.plan) plans_.add(fingerprint_, *record->found.plan);
    save(report, record->found);
  }
  let_go();
  return record;
}

void BindCache::save(CacheReport& report, const tuning::FoundCosts& found) const {
  if (found.seconds < kSecondsWorthSaving) {
    report.not_saved = "it took less time to find out than to write down";
    return;
  }
  const cache::CacheFile file{.ingredients = question_.ingredients,
                              .sections = tuning::to_sections(found, question_.libraries)};
  std::vector<std::string> reasons;
  for (const std::filesystem::path& folder : question_.folders) {
    std::string reason = cache::make_private_folder(folder);
    if (reason.empty()) {
      cache::SavedCache saved = cache::save_in_folder(folder, file, /*key=*/nullptr);
      if (saved.reason.empty()) {
        report.saved = std::move(saved.path);
        return;
      }
      reason = std::move(saved.reason);
    }
    reasons.push_back("'" + folder.string() + "': " + reason);
  }
  report.not_saved = joined(reasons);
  log_.warn("what was measured is not saved, the next process measures again: " + report.not_saved);
}

}  // namespace tessera
