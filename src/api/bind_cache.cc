#include "api/bind_cache.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "api/cache_ingredients.h"
#include "api/explain_cache.h"
#include "base/file_stamp.h"
#include "cache/cache_folder.h"
#include "cache/origin.h"
#include "cache/stored_file.h"
#include "cache/user_folder.h"
#include "tessera/error.h"
#include "tune/groups.h"

namespace tessera {
namespace {

// Less than it takes to sync a file: a program that meets new graphs all the time spends no more.
constexpr double kSecondsWorthSaving = 0.005;
constexpr auto kPollTime = std::chrono::milliseconds(20);

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

// After something was kept in a folder: without what killed processes left, and within limits.
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
  // What is in them is looked at only where there are too many.
  const bool is_too_much = !cache::beyond(all, cache::kWorkingLimits, system_time_ns()).empty();
  if (is_too_much) cache::prune(cache::list_automatic_files(folder), cache::kWorkingLimits);
}

}  // namespace

BindCache::BindCache(CacheQuestion question, FoundPlans& plans, const Log& log)
    : question_(std::move(question)), plans_(plans), log_(log) {}

const std::vector<tuning::PricedLibrary>& BindCache::versions() {
  if (!versions_) versions_ = question_.find_versions();
  return *versions_;
}

const cache::Fingerprint& BindCache::entry() {
  if (!entry_) {
    std::vector<cache::Ingredient> all = question_.model;
    all.insert(all.end(), question_.binding.begin(), question_.binding.end());
    const std::vector<cache::Ingredient> versions = tuning::versions_in_key(this->versions());
    all.insert(all.end(), versions.begin(), versions.end());
    entry_ = cache::fingerprint_of(all);
  }
  return *entry_;
}

void BindCache::look_up(const std::function<bool(const std::string& what)>& keeps_waiting) {
  look();
  if (plan_) return;
  if (question_.is_frozen) miss();
  turn_.emplace(plans_.wait_for_turn(entry()));
  look();
  if (!plan_) wait_for_lock(keeps_waiting);
  if (lock_) look();
  if (plan_) let_go();
}

bool BindCache::try_look_up() {
  turn_ = plans_.try_turn(entry());
  if (!turn_) return false;
  bool is_somebody_at_it = false;
  wait_for_lock([&](const std::string&) {
    is_somebody_at_it = true;
    return false;
  });
  if (is_somebody_at_it) {
    let_go();
    return false;
  }
  look();
  return true;
}

void BindCache::drop_plan(const std::string& reason) {
  dropped_ = reason;
  log_.warn(reason);
  plan_.reset();
  remembered_.reset();
  reasons_.push_back(reason);
  if (question_.is_frozen) miss();
}

CacheReport BindCache::find() {
  look();
  read_costs();
  const Told told = this->told();
  CacheReport report = told.described();
  report.is_hit = plan_.has_value();
  if (!report.is_hit) report.reason = told.reason();
  if (plan_) {
    report.types.push_back({.type = tuning::kPlanSection,
                            .loaded = 1,
                            .seconds_saved = plan_seconds_,
                            .origin = cache::origin_text(plan_origin_)});
  }
  for (const auto& [type, count] : known_->entries) {
    report.types.push_back({.type = type,
                            .loaded = count,
                            .seconds_saved = known_->seconds[type],
                            .origin = cache::origin_text(known_->origins[type])});
  }
  return report;
}

BindCache::Told BindCache::told() {
  return {question_.model,
          question_.binding,
          tuning::versions_in_key(versions()),
          question_.folders,
          file_,
          reasons_,
          change_};
}

CacheReport BindCache::Told::described() const {
  std::vector<cache::Ingredient> entry = binding;
  entry.insert(entry.end(), versions.begin(), versions.end());
  return {.fingerprint = text(cache::fingerprint_of(model)),
          .ingredients = describe(model),
          .entry_ingredients = describe(entry),
          .file = file,
          .change = change};
}

std::string BindCache::Told::reason() const {
  return reasons.empty() ? explain_miss(folders, model, binding) : joined(reasons);
}

void BindCache::look() {
  plan_.reset();
  plan_origin_ = cache::Origin::Here;
  change_.clear();
  plan_seconds_ = 0;
  known_.reset();
  sources_.clear();
  remembered_.reset();
  file_.clear();
  reasons_.clear();
  if (!dropped_.empty()) reasons_.push_back(dropped_);
  if (!question_.looks_up) return;
  std::optional<FoundPlans::Found> found = plans_.find(entry());
  look_into_given();
  // A file that was given for these libraries is meant, whoever made it.
  const bool is_given = plan_ && change_.empty();
  if (!is_given) look_into_folders();
  // What this process found for these libraries goes before what a file has for others.
  if (!found || is_given || is_as_good_as_can_be()) return;
  plan_ = std::move(found->plan);
  plan_origin_ = cache::Origin::Here;
  change_.clear();
  file_.clear();
  remembered_ = std::move(found->record);
}

// Of many files one is meant: only where none is, that is worth a word.
void BindCache::look_into_given() {
  std::string unfit;
  bool is_any_fit = false;
  for (const GivenCache& given : question_.given) {
    const std::string difference =
        cache::explain_difference(given.file.ingredients, question_.model);
    if (difference.empty()) {
      is_any_fit = true;
      look_into(given.file, given.type, given.path);
    } else {
      unfit = cache_place(given.path) + " is not used: " + difference;
    }
  }
  if (is_any_fit || unfit.empty()) return;
  reasons_.push_back(unfit);
  log_.warn(unfit);
}

bool BindCache::is_as_good_as_can_be() const {
  return plan_ && change_.empty() && cache::may_vouch_for_results(plan_origin_);
}

// One for these libraries goes before one for others, then one that is vouched for before a
// stranger's.
bool BindCache::is_better(const tuning::TakenPlan& taken) const {
  const bool is_vouched = cache::may_vouch_for_results(taken.origin);
  if (!dropped_.empty() && !is_vouched) return false;
  if (!plan_ || taken.change.empty() != change_.empty()) return !plan_ || taken.change.empty();
  return is_vouched && !cache::may_vouch_for_results(plan_origin_);
}

void BindCache::look_into(cache::CacheFile file, const std::string& type,
                          const std::filesystem::path& path) {
  const Source& source = sources_.emplace_back(Source{std::move(file), type, path});
  if (!type.empty() && type != tuning::kPlanSection) return;
  tuning::TakenPlan taken =
      tuning::take_plan(source.file, question_.binding, versions(), cache_place(path));
  if (taken.interrupted_seconds) {
    reasons_.push_back(explain_interrupted(*taken.interrupted_seconds, question_.is_frozen));
  } else if (!taken.plan) {
    reasons_.push_back(explain_no_plan(taken, cache_place(path)));
  }
  if (!taken.plan || !is_better(taken)) return;
  plan_ = std::move(taken.plan);
  plan_origin_ = taken.origin;
  plan_seconds_ = taken.seconds;
  plan_versions_ = std::move(taken.versions);
  change_.clear();
  if (!taken.change.empty()) {
    change_ =
        "the plan of " + cache_place(path) + " was found with other libraries, " + taken.change;
  }
  file_ = path;
}

void BindCache::look_into_folders() {
  const std::optional<cache::UserKey> key = cache::find_key(question_.key_folder);
  for (const std::filesystem::path& folder : question_.folders) {
    cache::FoundCache found = cache::find_in_folder(folder, question_.model, key ? &*key : nullptr);
    if (!found.reason.empty()) reasons_.push_back(found.reason);
    if (!found.file) continue;
    try {
      look_into(*std::move(found.file), "", found.path);
    } catch (const Error& error) {
      reasons_.emplace_back(error.what());
    }
    if (file_ == found.path) {
      cache::note_use(found.path);
      plans_.hold(found.path);
    }
    if (is_as_good_as_can_be()) return;
  }
}

tuning::TakenCosts BindCache::take_all(const std::vector<Source>& sources,
                                       const std::vector<tuning::PricedLibrary>& libraries) {
  tuning::TakenCosts all;
  for (const Source& source : sources) {
    if (source.type == tuning::kPlanSection) continue;
    try {
      tuning::TakenCosts taken =
          tuning::take_costs(source.file, source.type, libraries, cache_place(source.path));
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

// Prices are of use only where something is still to be found out.
void BindCache::read_costs() {
  if (known_) return;
  known_ = take_all(sources_, question_.find_libraries({}));
  for (const std::string& reason : known_->reasons) {
    const bool is_told = std::find(reasons_.begin(), reasons_.end(), reason) != reasons_.end();
    if (!is_told) reasons_.push_back(reason);
  }
  if (file_.empty() && !known_->entries.empty()) file_ = sources_.back().path;
}

// The folder that will be written to is where others look whether somebody is at it.
void BindCache::wait_for_lock(const std::function<bool(const std::string& what)>& keeps_waiting) {
  const std::string name = "." + text(entry()) + ".lock";
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
      if (!keeps_waiting(what)) return;
      log_.warn(what);
      std::this_thread::sleep_for(kPollTime);
    }
  }
}

void BindCache::let_go() {
  lock_.reset();
  turn_.reset();
}

void BindCache::miss() {
  throw Error(ErrorKind::CacheMiss, "fingerprint " + text(cache::fingerprint_of(question_.model)),
              "expected a stored plan, because `frozen` forbids measuring; " + told().reason() +
                  ". Bind once without `frozen`");
}

void BindCache::tell(tuning::CostTable& costs, PricingOptions& pricing) {
  read_costs();
  tuning::merge(costs, known_->costs);
  costs.machine = tuning::this_machine();
  pricing.known_plan = plan_;
  // Where libraries are others now it is one of those that are tried.
  pricing.relies_on_known_plan = question_.looks_up && change_.empty();
  if (question_.is_frozen) pricing.measures = false;
  for (const Source& source : sources_) {
    for (const tuning::PricedLibrary& library : versions()) {
      const bool is_asked_for = source.type == library.backend;
      if (is_asked_for && tuning::is_settled(source.file, question_.binding, library)) {
        pricing.settled_backends.insert(library.backend);
      }
    }
  }
}

std::shared_ptr<const CacheRecord> BindCache::keep(const PlanResult& result,
                                                   const tuning::CostTable& costs) {
  if (question_.is_frozen && !result.is_known_plan) miss();
  std::shared_ptr<const CacheRecord> record =
      result.is_known_plan ? record_hit(result) : record_found(result, costs);
  let_go();
  return record;
}

// Copies what it reads from: it may be asked long after this bind.
std::shared_ptr<const CacheRecord> BindCache::record_hit(const PlanResult& result) {
  CacheReport report = told().described();
  report.is_hit = true;
  if (remembered_) {
    return std::make_shared<CacheRecord>(question_.model, question_.binding,
                                         [remembered = remembered_, report = std::move(report)] {
                                           CacheRecord::Contents contents = remembered->contents();
                                           contents.report = report;
                                           return contents;
                                         });
  }
  const auto read = [sources = sources_, find_libraries = question_.find_libraries,
                     plan = result.plan, seconds = plan_seconds_, origin = plan_origin_,
                     versions = plan_versions_, is_outdated = !change_.empty(),
                     report = std::move(report)] {
    CacheRecord::Contents contents{.libraries = find_libraries({}), .report = report};
    tuning::TakenCosts known = take_all(sources, contents.libraries);
    contents.report.types = describe_types(contents.libraries, known, nullptr);
    contents.report.types.push_back({.type = tuning::kPlanSection,
                                     .loaded = 1,
                                     .seconds_saved = seconds,
                                     .origin = cache::origin_text(origin)});
    contents.found.plan = plan;
    if (is_outdated) contents.found.plan_versions = versions;
    contents.found.costs = std::move(known.costs);
    contents.found.costs.machine = tuning::this_machine();
    for (const auto& [type, spent] : known.seconds) contents.found.seconds += spent;
    return contents;
  };
  // A stranger's plan was judged; the next process need not judge it again.
  const bool is_worth_saving = plan_origin_ == cache::Origin::Stranger && !question_.is_frozen;
  if (!is_worth_saving) {
    return std::make_shared<CacheRecord>(question_.model, question_.binding, read);
  }
  CacheRecord::Contents contents = read();
  save(contents.report, contents.found, contents.libraries);
  const bool is_saved = !contents.report.saved.empty();
  return std::make_shared<const CacheRecord>(
      question_.model, question_.binding, [contents = std::move(contents)] { return contents; },
      is_saved);
}

std::shared_ptr<const CacheRecord> BindCache::record_found(const PlanResult& result,
                                                           const tuning::CostTable& costs) {
  struct Finding {
    Told told;
    tuning::FoundCosts found;
    tuning::TakenCosts known;
    tuning::FindLibraries find_libraries;
    bool looked_up;
    bool has_measured;
  };
  const auto finding = std::make_shared<Finding>(Finding{
      .told = told(),
      .found = {.costs = costs, .seconds = result.tuning.seconds},
      .known = known_.value_or(tuning::TakenCosts()),
      .find_libraries = question_.find_libraries,
      .looked_up = question_.looks_up,
      .has_measured = result.tuning.measured > 0,
  });
  tuning::FoundCosts& found = finding->found;
  for (const auto& [type, seconds] : finding->known.seconds) found.seconds += seconds;
  // Whoever was interrupted knows no plan that is worth keeping.
  const bool is_interrupted = result.tuning.is_stopped && !result.tuning.is_out_of_time;
  if (is_interrupted) {
    found.interrupted_seconds = result.tuning.seconds;
  } else {
    found.plan = result.plan;
  }
  const auto read = [finding] {
    CacheRecord::Contents contents{.libraries = finding->find_libraries({}),
                                   .found = finding->found,
                                   .report = finding->told.described()};
    CacheReport& report = contents.report;
    report.types = describe_types(contents.libraries, finding->known,
                                  finding->has_measured ? &finding->found.costs : nullptr);
    if (finding->found.plan) {
      report.types.push_back({.type = tuning::kPlanSection, .measured = 1});
    }
    report.reason =
        finding->looked_up ? finding->told.reason() : "it was asked to measure everything again";
    report.not_saved = "measuring took less time than writing a file";
    return contents;
  };
  std::shared_ptr<const CacheRecord> record;
  // What stands there instead would be judged again.
  if (found.seconds >= kSecondsWorthSaving || !dropped_.empty()) {
    CacheRecord::Contents contents = read();
    contents.report.not_saved.clear();
    save(contents.report, contents.found, contents.libraries);
    const bool is_saved = !contents.report.saved.empty();
    record = std::make_shared<const CacheRecord>(
        question_.model, question_.binding, [contents = std::move(contents)] { return contents; },
        is_saved);
  } else {
    // Programs that meet new graphs all the time do not ask, so nothing is read for them.
    record = std::make_shared<const CacheRecord>(question_.model, question_.binding, read);
  }
  if (found.plan) plans_.add(entry(), {*found.plan, record});
  return record;
}

void BindCache::save(CacheReport& report, const tuning::FoundCosts& found,
                     const std::vector<tuning::PricedLibrary>& libraries) const {
  const cache::CacheFile file{
      .ingredients = question_.model,
      .notes = {{cache::kWrittenBy, cache::kByBind}, {cache::kModelNote, question_.model_name}},
      .sections = tuning::to_sections(found, libraries, question_.binding)};
  const std::optional<cache::UserKey> key = cache::make_key(question_.key_folder);
  if (!key && !question_.key_folder.empty()) {
    const std::string reason = cache::find_or_make_key(question_.key_folder).reason;
    log_.warn("what is kept is not signed, so that each process judges it anew: " + reason);
  }
  std::vector<std::string> reasons;
  for (const std::filesystem::path& folder : question_.folders) {
    std::string reason = cache::make_private_folder(folder);
    const bool is_users = folder == question_.key_folder;
    if (reason.empty() && is_users) reason = cache::explain_foreign_folder(folder);
    if (reason.empty()) {
      cache::SavedCache saved =
          cache::save_in_folder(folder, file, key ? &*key : nullptr, tuning::merged);
      if (saved.reason.empty()) {
        report.saved = std::move(saved.path);
        plans_.hold(report.saved);
        if (!reasons.empty() && plans_.is_first_to_tell_of_folder()) {
          log_.warn("what was measured is kept in '" + folder.string() + "': " + joined(reasons));
        }
        tidy_up(folder, is_users);
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
