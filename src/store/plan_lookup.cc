#include "store/plan_lookup.h"

#include <algorithm>
#include <utility>

#include "cache/cache_folder.h"
#include "cache/origin.h"
#include "cache/user_folder.h"
#include "cache/user_key.h"
#include "price/groups.h"
#include "store/explain_cache.h"
#include "tessera/error.h"

namespace tessera {

PlanLookup::PlanLookup(PlanRequest request, ProcessPlanCache& plans, const Log& log)
    : request_(std::move(request)), plans_(plans), log_(log) {}

const std::vector<tuning::PricedLibrary>& PlanLookup::versions() {
  if (!versions_) versions_ = request_.find_versions();
  return *versions_;
}

const cache::Fingerprint& PlanLookup::entry_fingerprint() {
  if (!entry_) {
    std::vector<cache::Ingredient> all = request_.model;
    all.insert(all.end(), request_.binding.begin(), request_.binding.end());
    const std::vector<cache::Ingredient> versions = tuning::versions_in_key(this->versions());
    all.insert(all.end(), versions.begin(), versions.end());
    entry_ = cache::fingerprint_of(all);
  }
  return *entry_;
}

void PlanLookup::look() {
  plan_.reset();
  record_.reset();
  sources_.clear();
  files_in_use_.clear();
  prices_.reset();
  reasons_.clear();
  if (!untrusted_rejection_.empty()) reasons_.push_back(untrusted_rejection_);
  if (!request_.looks_up) return;
  std::shared_ptr<const CacheRecord> found = plans_.find(entry_fingerprint());
  look_into_given();
  // The user wants the plan that a loaded file has for these libraries, regardless of its origin.
  const bool is_given = plan_ && plan_->change.empty();
  if (!is_given) look_into_folders();
  if (!is_given && !is_as_good_as_can_be()) look_into_bundle();
  // A plan that this process found for these libraries precedes a plan of a file that is for other
  // libraries or untrusted.
  if (!found || is_given || is_as_good_as_can_be()) return;
  plan_ = found->plan();
  record_ = std::move(found);
}

bool PlanLookup::is_to_resume() const {
  if (!plan_ || !plan_->interrupted_seconds || request_.is_frozen) return false;
  return request_.budget_seconds == 0 || request_.budget_seconds > *plan_->interrupted_seconds;
}

void PlanLookup::reject_untrusted(const std::string& reason) {
  untrusted_rejection_ = reason;
  log_.warn(reason);
  plan_.reset();
  reasons_.push_back(reason);
}

// Users may load the files of many models. So this warns only if none of them fits.
void PlanLookup::look_into_given() {
  std::string unfit;
  bool is_any_fit = false;
  for (const LoadedCache& given : request_.given) {
    const std::string difference =
        cache::explain_difference(given.file.ingredients, request_.model);
    if (difference.empty()) {
      is_any_fit = true;
      look_into({.file = given.file, .type = given.type, .path = given.path});
    } else {
      unfit = cache_location(given.path) + " is not used: " + difference;
    }
  }
  if (is_any_fit || unfit.empty()) return;
  reasons_.push_back(unfit);
  log_.warn(unfit);
}

void PlanLookup::look_into_bundle() {
  if (request_.bundled == nullptr) return;
  const BundledCache& bundled = *request_.bundled;
  const std::string what = "the plans of " + bundled.name;
  const std::string difference =
      cache::explain_difference(bundled.plans.ingredients, request_.model);
  if (!difference.empty()) {
    reasons_.push_back(what + " are not used: " + difference);
    if (!plan_) log_.warn(reasons_.back());
    return;
  }
  look_into({.file = bundled.plans, .type = "", .path = bundled.path, .bytes = bundled.bytes});
  if (!plan_ && !reasons_.empty()) log_.warn(what + " do not fit: " + reasons_.back());
}

// Whether no plan can be better than the one found so far.
bool PlanLookup::is_as_good_as_can_be() const {
  return plan_ && plan_->change.empty() && cache::trusts_results(plan_->origin);
}

// Whether `taken` is better than the plan found so far: a plan for these libraries precedes one for
// others; if both are equal in that, a trusted plan precedes an untrusted one.
bool PlanLookup::is_better(const tuning::FoundPlan& taken) const {
  const bool is_trusted = cache::trusts_results(taken.origin);
  const bool may_be_untrusted = request_.takes_proposals && untrusted_rejection_.empty();
  if (!is_trusted && !may_be_untrusted) return false;
  if (!plan_) return true;
  if (taken.change.empty() != plan_->change.empty()) return taken.change.empty();
  return is_trusted && !cache::trusts_results(plan_->origin);
}

void PlanLookup::look_into(PriceSource read) {
  const PriceSource& source = sources_.emplace_back(std::move(read));
  if (!source.type.empty() && source.type != tuning::kPlanSection) return;
  const std::string location = cache_location(source.path);
  tuning::FoundPlan taken = tuning::take_plan(source.file, request_.binding, versions(), location);
  if (taken.interrupted_seconds && !taken.plan) {
    reasons_.push_back(explain_interrupted(*taken.interrupted_seconds, request_.is_frozen));
  } else if (!taken.plan) {
    reasons_.push_back(explain_no_plan(source.file, request_.binding, location));
  }
  if (!taken.plan || !is_better(taken)) return;
  taken.file = source.path;
  if (!taken.change.empty()) {
    taken.change = "the plan of " + location + " was found with other libraries, " + taken.change;
  }
  plan_ = std::move(taken);
  if (is_to_resume()) {
    reasons_.push_back(explain_interrupted(*plan_->interrupted_seconds, request_.is_frozen));
  }
}

void PlanLookup::look_into_folders() {
  const std::optional<cache::UserKey> key = cache::find_key(request_.key_folder);
  for (const std::filesystem::path& folder : request_.folders) {
    cache::FoundCache found =
        cache::find_in_folder(folder, request_.model, key ? &*key : nullptr, tuning::is_plan);
    if (!found.reason.empty()) reasons_.push_back(found.reason);
    if (!found.file) continue;
    try {
      look_into({*std::move(found.file), "", found.path, std::move(found.bytes)});
    } catch (const Error& error) {
      reasons_.emplace_back(error.what());
    }
    if (plan_ && plan_->file == found.path) {
      cache::note_use(found.path);
      mark_in_use(found.path);
    }
    if (is_as_good_as_can_be()) return;
  }
}

tuning::TakenCosts take_all(const std::vector<PriceSource>& sources,
                            const std::filesystem::path& key_folder,
                            const std::vector<tuning::PricedLibrary>& libraries) {
  tuning::TakenCosts all;
  for (const PriceSource& source : sources) {
    if (source.type == tuning::kPlanSection) continue;
    try {
      const std::string location = cache_location(source.path);
      std::optional<cache::CacheFile> whole;
      if (source.bytes) {
        const std::optional<cache::UserKey> key = cache::find_key(key_folder);
        whole = cache::decode(*source.bytes, key ? &*key : nullptr, location);
      }
      tuning::TakenCosts taken =
          tuning::take_costs(whole ? *whole : source.file, source.type, libraries, location);
      tuning::merge(all.costs, taken.costs);
      for (const auto& [of, count] : taken.entries) all.entries[of] = count;
      for (const auto& [of, seconds] : taken.seconds) all.seconds[of] = seconds;
      for (const auto& [of, origin] : taken.origins) all.origins[of] = origin;
      for (std::string& reason : taken.reasons) all.reasons.push_back(std::move(reason));
    } catch (const Error& error) {
      all.reasons.emplace_back(error.what());
    }
  }
  return all;
}

const tuning::TakenCosts& PlanLookup::prices() {
  if (prices_) return *prices_;
  prices_ = take_all(sources_, request_.key_folder, request_.find_libraries({}));
  for (const std::string& reason : prices_->reasons) {
    const bool is_reported = std::find(reasons_.begin(), reasons_.end(), reason) != reasons_.end();
    if (!is_reported) reasons_.push_back(reason);
  }
  return *prices_;
}

LookupReport PlanLookup::lookup_report() {
  LookupReport result{.model = request_.model,
                      .binding = request_.binding,
                      .versions = tuning::versions_in_key(versions()),
                      .folders = request_.folders,
                      .reasons = reasons_};
  if (plan_) {
    result.file = plan_->file;
    result.change = plan_->change;
  } else if (prices_ && !prices_->entries.empty()) {
    result.file = sources_.back().path;
  }
  return result;
}

CacheReport LookupReport::report() const {
  std::vector<cache::Ingredient> entry = binding;
  entry.insert(entry.end(), versions.begin(), versions.end());
  return {.fingerprint = text(cache::fingerprint_of(model)),
          .ingredients = tessera::describe(model),
          .entry_ingredients = tessera::describe(entry),
          .file = file,
          .change = change};
}

std::string LookupReport::reason() const {
  if (reasons.empty()) return explain_miss(folders, model, binding);
  std::string text;
  for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

CacheReport PlanLookup::describe() {
  const tuning::TakenCosts& known = prices();
  const LookupReport result = lookup_report();
  CacheReport report = result.report();
  report.is_hit = plan_.has_value() && !is_to_resume();
  if (!report.is_hit) report.reason = result.reason();
  if (plan_) {
    report.types.push_back({.type = tuning::kPlanSection,
                            .loaded = 1,
                            .seconds_saved = plan_->seconds,
                            .origin = cache::origin_text(plan_->origin)});
  }
  for (const auto& [type, count] : known.entries) {
    report.types.push_back({.type = type,
                            .loaded = count,
                            .seconds_saved = known.seconds.at(type),
                            .origin = cache::origin_text(known.origins.at(type))});
  }
  return report;
}

void PlanLookup::fill(tuning::CostTable& costs, PricingOptions& pricing) {
  tuning::merge(costs, prices().costs);
  costs.machine = tuning::this_machine();
  pricing.known_plan = plan_ ? plan_->plan : std::nullopt;
  // If the libraries have changed, or not everything was tried, the known plan is only one of the
  // plans that are tried.
  pricing.relies_on_known_plan =
      request_.looks_up && (!plan_ || (plan_->change.empty() && !is_to_resume()));
  if (request_.is_frozen) pricing.measures = false;
  for (const PriceSource& source : sources_) {
    for (const tuning::PricedLibrary& library : versions()) {
      const bool is_asked_for = source.type == library.backend;
      if (is_asked_for && tuning::is_fully_measured(source.file, request_.binding, library)) {
        pricing.fully_measured_backends.insert(library.backend);
      }
    }
  }
}

void PlanLookup::fail_frozen() {
  throw Error(ErrorKind::CacheMiss, "fingerprint " + text(cache::fingerprint_of(request_.model)),
              "expected a stored plan, because `frozen` forbids measuring; " +
                  lookup_report().reason() + ". Bind once without `frozen`");
}

}  // namespace tessera
