#include "store/store.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/files/file_stamp.h"
#include "cache/cache_folder.h"
#include "cache/origin.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "cache/user_key.h"
#include "price/groups.h"
#include "price/shared_costs.h"
#include "store/explain_cache.h"

namespace tessera {
namespace {

// A plan that was found in less time is not saved: syncing a file takes longer, and programs that
// meet new graphs all the time would pay it for each graph.
constexpr double kSecondsWorthSaving = 0.005;
// Prices that were measured in less time are not added to the user's prices.
constexpr double kSecondsWorthSharing = 0.5;
constexpr auto kPollTime = std::chrono::milliseconds(20);

// Called after something was stored in a folder: removes what killed processes left, and enforces
// the limits.
void tidy_up(const std::filesystem::path& folder, bool is_users) {
  cache::sweep(folder);
  if (is_users) {
    cache::prune(cache::list_kept_files(folder), cache::kUserLimits);
    return;
  }
  std::vector<cache::KeptFile> all;
  for (const std::filesystem::path& path : cache::list_folder(folder)) {
    const std::optional<FileStamp> stamp = stamp_of(path);
    if (stamp) all.push_back({path, stamp->bytes, stamp->modified_ns});
  }
  // Reads the files only if their number, sizes or ages exceed the limits.
  const bool is_too_much = !cache::beyond(all, cache::kWorkingLimits, system_time_ns()).empty();
  if (is_too_much) cache::prune(cache::list_automatic_files(folder), cache::kWorkingLimits);
}

// Locks the first folder that can be written to: other processes that search for the plan check the
// lock there. nullopt if no folder can be locked, or `keeps_waiting` returns false.
std::optional<cache::FileLock> wait_for_lock(PlanLookup& lookup,
                                             const KeepsWaiting& keeps_waiting) {
  const std::string name = "." + text(lookup.entry_fingerprint()) + ".lock";
  for (const std::filesystem::path& folder : lookup.request().folders) {
    if (!cache::make_private_folder(folder).empty()) continue;
    if (!cache::explain_unsafe_folder(folder).empty()) continue;
    while (true) {
      cache::FileLock::Attempt attempt = cache::FileLock::try_lock(folder / name);
      if (attempt.lock) return std::move(attempt.lock);
      if (!attempt.failure.empty()) break;
      const std::string what = "waiting for " + attempt.holder + ", which measures this model";
      if (!keeps_waiting(what)) return std::nullopt;
      lookup.log().warn(what);
      std::this_thread::sleep_for(kPollTime);
    }
  }
  return std::nullopt;
}

LookupResult answer(std::unique_ptr<PlanLookup> lookup, const KeepsWaiting& keeps_waiting) {
  const auto is_known = [&] { return lookup->plan() && !lookup->is_to_resume(); };
  lookup->look();
  if (is_known()) return StoredPlan(std::move(lookup));
  if (lookup->request().is_frozen) lookup->fail_frozen();
  ProcessPlanCache::EntryLock turn = lookup->plans().lock_entry(lookup->entry_fingerprint());
  lookup->look();
  if (is_known()) return StoredPlan(std::move(lookup));
  std::optional<cache::FileLock> lock = wait_for_lock(*lookup, keeps_waiting);
  if (lock) lookup->look();
  if (is_known()) return StoredPlan(std::move(lookup));
  return PlanSearch(std::move(lookup), std::move(turn), std::move(lock));
}

// Saves `plan` and `contents` to the first folder that can be written to.
void save(PlanLookup& lookup, const tuning::FoundPlan& plan, CacheRecord::Contents& contents) {
  const PlanRequest& request = lookup.request();
  cache::CacheFile file{
      .ingredients = request.model,
      .notes = {{cache::kWrittenBy, cache::kByBind}, {cache::kModelNote, request.model_name}},
      .sections = tuning::to_sections(contents.found, plan, contents.libraries, request.binding)};
  if (contents.found.gain) {
    file.set_note(cache::kGainNote, std::to_string(*contents.found.gain));
  }
  const std::optional<cache::UserKey> key = cache::make_key(request.key_folder);
  if (!key && !request.key_folder.empty()) {
    const std::string reason = cache::find_or_make_key(request.key_folder).reason;
    lookup.log().warn("stored files are not signed, so each process checks them again: " + reason);
  }
  std::string reasons;
  for (const std::filesystem::path& folder : request.folders) {
    std::string reason = cache::make_private_folder(folder);
    const bool is_users = folder == request.key_folder;
    if (reason.empty() && is_users) reason = cache::explain_foreign_folder(folder);
    if (reason.empty()) {
      cache::SavedCache saved =
          cache::save_in_folder(folder, file, key ? &*key : nullptr, tuning::merged);
      if (saved.reason.empty()) {
        contents.report.saved = std::move(saved.path);
        lookup.mark_in_use(contents.report.saved);
        if (!reasons.empty() && lookup.plans().claims_folder_warning()) {
          lookup.log().warn("measurements are kept in '" + folder.string() + "': " + reasons);
        }
        tidy_up(folder, is_users);
        return;
      }
      reason = std::move(saved.reason);
    }
    reasons += (reasons.empty() ? "'" : "; '") + folder.string() + "': " + reason;
  }
  contents.report.not_saved = reasons;
  lookup.log().warn("the measurements are not saved, so the next process measures again: " +
                    reasons);
}

// Saves the record if `is_worth_saving`; otherwise, `read` is called when the contents are needed.
std::shared_ptr<const CacheRecord> record(PlanLookup& lookup, tuning::FoundPlan plan,
                                          bool is_worth_saving,
                                          std::function<CacheRecord::Contents()> read) {
  const PlanRequest& request = lookup.request();
  if (!is_worth_saving) {
    return std::make_shared<CacheRecord>(request.model, request.binding, std::move(plan),
                                         std::move(read));
  }
  CacheRecord::Contents contents = read();
  contents.report.not_saved.clear();
  save(lookup, plan, contents);
  const bool is_saved = !contents.report.saved.empty();
  return std::make_shared<const CacheRecord>(
      request.model, request.binding, std::move(plan),
      [contents = std::move(contents)] { return contents; }, is_saved);
}

// Copies everything that `read` needs, because it may be called long after this bind.
std::shared_ptr<const CacheRecord> record_hit(PlanLookup& lookup, const PlanResult& result) {
  // Without a plan from the look-up, the plan was known from prices that this process measured.
  tuning::FoundPlan plan = lookup.plan().value_or(tuning::FoundPlan());
  CacheReport report = lookup.lookup_report().report();
  report.is_hit = true;
  if (lookup.record() != nullptr) {
    return record(lookup, std::move(plan), /*is_worth_saving=*/false,
                  [first = lookup.record(), report = std::move(report)] {
                    CacheRecord::Contents contents = first->contents();
                    contents.report = report;
                    return contents;
                  });
  }
  auto read = [sources = lookup.sources(), key_folder = lookup.request().key_folder,
               find_libraries = lookup.request().find_libraries, seconds = plan.seconds,
               origin = plan.origin, report = std::move(report)] {
    CacheRecord::Contents contents{.libraries = find_libraries({}), .report = report};
    tuning::TakenCosts known = take_all(sources, key_folder, contents.libraries);
    contents.report.types = describe_types(contents.libraries, known, nullptr);
    contents.report.types.push_back({.type = tuning::kPlanSection,
                                     .loaded = 1,
                                     .seconds_saved = seconds,
                                     .origin = cache::origin_text(origin)});
    contents.found.costs = std::move(known.costs);
    contents.found.costs.machine = tuning::this_machine();
    for (const auto& [type, spent] : known.seconds) contents.found.seconds += spent;
    return contents;
  };
  // An untrusted plan was verified. It is saved, so that the next process need not verify it again.
  const bool is_worth_saving =
      plan.origin == cache::Origin::Untrusted && !lookup.request().is_frozen;
  plan.plan = result.plan;
  return record(lookup, std::move(plan), is_worth_saving, std::move(read));
}

struct SearchRecord {
  LookupReport lookup;
  tuning::FoundCosts found;
  tuning::TakenCosts known;
  tuning::FindLibraries find_libraries;
  bool looked_up;
  bool has_measured;
};

CacheRecord::Contents contents_of(const SearchRecord& finding, bool has_plan) {
  CacheRecord::Contents contents{.libraries = finding.find_libraries({}),
                                 .found = finding.found,
                                 .report = finding.lookup.report()};
  CacheReport& report = contents.report;
  report.types = describe_types(contents.libraries, finding.known,
                                finding.has_measured ? &finding.found.costs : nullptr);
  if (has_plan) report.types.push_back({.type = tuning::kPlanSection, .measured = 1});
  report.reason =
      finding.looked_up ? finding.lookup.reason() : "it was asked to measure everything again";
  report.not_saved = "measuring took less time than writing a file";
  return contents;
}

std::shared_ptr<const CacheRecord> record_found(PlanLookup& lookup, const PlanResult& result,
                                                const tuning::CostTable& costs) {
  const auto finding = std::make_shared<SearchRecord>(SearchRecord{
      .lookup = lookup.lookup_report(),
      .found = {.costs = costs, .seconds = result.tuning.seconds},
      .known = lookup.prices_read(),
      .find_libraries = lookup.request().find_libraries,
      .looked_up = lookup.request().looks_up,
      .has_measured = result.tuning.measured > 0,
  });
  tuning::FoundCosts& found = finding->found;
  tuning::FoundPlan plan;
  for (const auto& [type, seconds] : finding->known.seconds) found.seconds += seconds;
  // A search that the user stopped has no plan that is worth keeping. One that spent its budget has
  // one, which has to compete again when there is more time.
  const bool is_stopped = result.tuning.is_stopped && !result.tuning.is_out_of_time;
  const bool is_cut_short = result.tuning.is_out_of_time && lookup.request().budget_seconds > 0;
  if (is_stopped || is_cut_short) {
    const std::optional<tuning::FoundPlan>& before = lookup.plan();
    const double spent = std::max(result.tuning.seconds, lookup.request().budget_seconds);
    plan.interrupted_seconds = spent + (before ? before->interrupted_seconds.value_or(0) : 0);
  }
  if (!is_stopped) plan.plan = result.plan;
  if (!is_stopped && !is_cut_short) found.gain = result.tuning.gain;
  // If an untrusted plan was rejected, the result replaces it in the file; otherwise, the next
  // process would verify that plan again.
  const bool is_worth_saving =
      found.seconds >= kSecondsWorthSaving || !lookup.untrusted_rejection().empty();
  // Contents are read lazily: programs that meet new graphs all the time do not ask for them.
  auto kept = record(lookup, std::move(plan), is_worth_saving,
                     [finding, has_plan = !is_stopped] { return contents_of(*finding, has_plan); });
  if (!is_stopped) lookup.plans().add(lookup.entry_fingerprint(), kept);
  return kept;
}

// The record, which keeps the files of the look-up in use as long as anybody has it. The store of
// this process does not: it remembers plans of models that nobody uses any more.
std::shared_ptr<const CacheRecord> in_use(std::shared_ptr<const CacheRecord> record,
                                          const PlanLookup& lookup) {
  struct RecordInUse {
    std::shared_ptr<const CacheRecord> record;
    std::vector<std::shared_ptr<const void>> files;
  };
  const auto held =
      std::make_shared<const RecordInUse>(RecordInUse{std::move(record), lookup.files_in_use()});
  return {held, held->record.get()};
}

}  // namespace

std::shared_ptr<const CacheRecord> StoredPlan::keep(const PlanResult& result) && {
  return in_use(record_hit(*lookup_, result), *lookup_);
}

LookupResult StoredPlan::refuse(const std::string& reason, const KeepsWaiting& keeps_waiting) && {
  lookup_->reject_untrusted(reason);
  return answer(std::move(lookup_), keeps_waiting);
}

PlanSearch StoredPlan::search() && { return PlanSearch(std::move(lookup_)); }

std::shared_ptr<const CacheRecord> PlanSearch::keep(const PlanResult& result,
                                                    const tuning::CostTable& costs) && {
  if (lookup_->request().is_frozen && !result.is_known_plan) lookup_->fail_frozen();
  std::shared_ptr<const CacheRecord> kept =
      result.is_known_plan ? record_hit(*lookup_, result) : record_found(*lookup_, result, costs);
  lock_.reset();
  turn_.reset();
  return in_use(std::move(kept), *lookup_);
}

LookupResult Store::look_up(PlanRequest request, const KeepsWaiting& keeps_waiting,
                            const Log& log) {
  return answer(std::make_unique<PlanLookup>(std::move(request), plans_, log), keeps_waiting);
}

std::optional<StoredPlan> Store::find(PlanRequest request, const Log& log) {
  request.takes_proposals = false;
  auto lookup = std::make_unique<PlanLookup>(std::move(request), plans_, log);
  lookup->look();
  if (!lookup->plan()) return std::nullopt;
  return StoredPlan(std::move(lookup));
}

std::optional<LookupResult> Store::try_look_up(PlanRequest request, const Log& log) {
  request.takes_proposals = false;
  auto lookup = std::make_unique<PlanLookup>(std::move(request), plans_, log);
  std::optional<ProcessPlanCache::EntryLock> turn =
      plans_.try_lock_entry(lookup->entry_fingerprint());
  if (!turn) return std::nullopt;
  bool is_locked_elsewhere = false;
  std::optional<cache::FileLock> lock = wait_for_lock(*lookup, [&](const std::string&) {
    is_locked_elsewhere = true;
    return false;
  });
  if (is_locked_elsewhere) return std::nullopt;
  lookup->look();
  const bool is_known = lookup->plan() && lookup->plan()->change.empty() && !lookup->is_to_resume();
  if (is_known) return StoredPlan(std::move(lookup));
  return PlanSearch(std::move(lookup), std::move(turn), std::move(lock));
}

CacheReport Store::describe(PlanRequest request, const Log& log) {
  PlanLookup lookup(std::move(request), plans_, log);
  lookup.look();
  return lookup.describe();
}

void Store::fill(PlanRequest request, const Log& log, tuning::CostTable& costs,
                 PricingOptions& pricing) {
  request.takes_proposals = false;
  PlanLookup lookup(std::move(request), plans_, log);
  lookup.look();
  lookup.fill(costs, pricing);
}

void Store::read_users_prices(
    const std::filesystem::path& folder, const std::vector<cache::Ingredient>& machine,
    const std::function<std::vector<tuning::PricedLibrary>()>& libraries) {
  if (folder.empty()) return;
  std::call_once(are_users_prices_read_,
                 [&] { prices_.add(tuning::read_cost_store(folder, machine, libraries())); });
}

void Store::keep_users_prices(const std::filesystem::path& folder,
                              const std::vector<cache::Ingredient>& machine,
                              const std::function<std::vector<tuning::PricedLibrary>()>& libraries,
                              double seconds, const tuning::CostTable& costs) {
  if (folder.empty() || seconds < kSecondsWorthSharing) return;
  tuning::add_to_cost_store(folder, machine, libraries(), costs);
}

}  // namespace tessera
