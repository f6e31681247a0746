// Searches the tiers of the store for the plan of one bind, and for prices that help to find one.
// In descending order of precedence: a plan for exactly these libraries in a file that the user
// loaded; a trusted plan for these libraries in the project's or the user's folder; the plan that
// this process found; the best other plan of these files. The bundle that the model comes from is
// searched last, like one more folder. Does not wait. Of files, it changes only
// the times of last use.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/errors/log.h"
#include "cache/cache_file.h"
#include "compile/build_plan.h"
#include "price/cost_sections.h"
#include "store/cache_record.h"
#include "store/plan_request.h"
#include "store/process_plan_cache.h"
#include "tessera/cache.h"

namespace tessera {

// The data for the report on a look-up. It does not refer to the look-up and may outlive it.
struct LookupReport {
  std::vector<cache::Ingredient> model;
  tuning::Binding binding;
  std::vector<cache::Ingredient> versions;
  std::vector<std::filesystem::path> folders;
  std::filesystem::path file;
  std::string change;
  std::vector<std::string> reasons;

  CacheReport report() const;
  std::string reason() const;
};

// A file of this model. Its prices of `type` are used; "": all prices.
struct PriceSource {
  cache::CacheFile file;  // complete, or only the plans, if no prices are needed so far
  std::string type;
  std::filesystem::path path;
  // Set if only the plans of the file are decoded: the bytes of the file, from which prices are
  // decoded if they are needed.
  std::shared_ptr<const std::string> bytes = nullptr;
};

// Reads the prices of all sources. `key_folder` is that of PlanRequest.
tuning::TakenCosts take_all(const std::vector<PriceSource>& sources,
                            const std::filesystem::path& key_folder,
                            const std::vector<tuning::PricedLibrary>& libraries);

// Not thread-safe.
class PlanLookup {
 public:
  // `plans` and `log` must outlive this object.
  PlanLookup(PlanRequest request, ProcessPlanCache& plans, const Log& log);

  // Searches for what is known now.
  void look();
  // Drops an untrusted plan and ignores untrusted plans (Origin::Untrusted) from now on. Warns with
  // `reason`.
  void reject_untrusted(const std::string& reason);

  const PlanRequest& request() const { return request_; }
  ProcessPlanCache& plans() const { return plans_; }
  // Keeps other processes from removing the file while this look-up, or who uses its plan, holds
  // files_in_use().
  void mark_in_use(const std::filesystem::path& file) {
    files_in_use_.push_back(plans_.mark_in_use(file));
  }
  const std::vector<std::shared_ptr<const void>>& files_in_use() const { return files_in_use_; }
  const Log& log() const { return log_; }
  // What look() has found; its `plan` is not nullopt.
  const std::optional<tuning::FoundPlan>& plan() const { return plan_; }
  // The record of plan() if this process found it; otherwise null.
  const std::shared_ptr<const CacheRecord>& record() const { return record_; }
  // Whether the search for the plan was cut short and may go on now, because there is more time for
  // it than was spent before.
  bool is_to_resume() const;
  const std::string& untrusted_rejection() const { return untrusted_rejection_; }
  const std::vector<PriceSource>& sources() const { return sources_; }
  // Reads the prices at the first call, because they are needed only if something is still to be
  // found out.
  const tuning::TakenCosts& prices();
  // The prices that prices() has read; empty if it was not called.
  tuning::TakenCosts prices_read() const { return prices_.value_or(tuning::TakenCosts()); }
  const std::vector<tuning::PricedLibrary>& versions();
  // The fingerprint of the requested plan, which names locks.
  const cache::Fingerprint& entry_fingerprint();
  LookupReport lookup_report();
  // The report of a look-up that is not followed by a bind.
  CacheReport describe();
  // Adds the known prices to `costs`, and sets the known plan in `pricing`.
  void fill(tuning::CostTable& costs, PricingOptions& pricing);
  [[noreturn]] void fail_frozen();

 private:
  bool is_as_good_as_can_be() const;
  bool is_better(const tuning::FoundPlan& taken) const;
  void look_into(PriceSource source);
  void look_into_given();
  void look_into_bundle();
  void look_into_folders();

  PlanRequest request_;
  ProcessPlanCache& plans_;
  const Log& log_;
  std::optional<std::vector<tuning::PricedLibrary>> versions_;
  std::optional<cache::Fingerprint> entry_;
  std::string untrusted_rejection_;  // why untrusted plans are ignored; "": they are not
  // The results of look():
  std::optional<tuning::FoundPlan> plan_;
  std::shared_ptr<const CacheRecord> record_;
  std::vector<PriceSource> sources_;
  std::vector<std::shared_ptr<const void>> files_in_use_;
  std::optional<tuning::TakenCosts> prices_;
  std::vector<std::string> reasons_;  // why nothing more was found
};

}  // namespace tessera
