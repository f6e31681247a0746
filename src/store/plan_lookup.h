// Looks into the tiers of the store for the plan of one bind, and for prices to find one by. A file
// that was given for just these libraries counts, else the best plan of the project's folder and
// the user's, else what this process found. Waits for nobody; changes files' times of use alone.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "cache/cache_file.h"
#include "cache/origin.h"
#include "compile/build_plan.h"
#include "price/cost_sections.h"
#include "store/cache_record.h"
#include "store/plan_request.h"
#include "store/process_plan_cache.h"
#include "tessera/cache.h"

namespace tessera {

// A plan, and where it was found.
struct FoundPlan {
  tuning::KnownPlan plan;
  // A stranger's is a proposal, whose kernels have to be judged.
  cache::Origin origin = cache::Origin::Here;
  double seconds = 0;                       // that it took to find
  std::vector<cache::Ingredient> versions;  // of the libraries with which it was found
  std::string change;  // where these are others now: which, in a sentence; else ""
  std::filesystem::path file;
  std::shared_ptr<const CacheRecord> record;  // where this process found it
};

// What is told of a look-up, also after it.
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

// A file that fits, of which prices of `type` count ("": all).
struct PriceSource {
  cache::CacheFile file;  // whole, or plans alone: whoever has a plan needs no prices
  std::string type;
  std::filesystem::path path;
  // Of a file of which only plans are decoded; whoever needs prices decodes it whole.
  std::shared_ptr<const std::string> bytes = nullptr;
};

// `key_folder` as PlanRequest has it.
tuning::TakenCosts take_all(const std::vector<PriceSource>& sources,
                            const std::filesystem::path& key_folder,
                            const std::vector<tuning::PricedLibrary>& libraries);

// Not safe from several threads.
class PlanLookup {
 public:
  // `plans` and `log` must outlive it.
  PlanLookup(PlanRequest question, ProcessPlanCache& plans, const Log& log);

  // What there is now.
  void look();
  // From now on plans of third_party_plugins do not count, and the one that was found does not.
  void reject_untrusted(const std::string& reason);

  const PlanRequest& question() const { return question_; }
  ProcessPlanCache& plans() const { return plans_; }
  const Log& log() const { return log_; }
  const std::optional<FoundPlan>& plan() const { return plan_; }
  const std::string& untrusted_rejection() const { return refusal_; }
  const std::vector<PriceSource>& sources() const { return sources_; }
  // Reads them when they are first asked for: they are of use only where something is still to be
  // found out.
  const tuning::TakenCosts& prices();
  // Empty where nobody has.
  tuning::TakenCosts prices_read() const { return prices_.value_or(tuning::TakenCosts()); }
  const std::vector<tuning::PricedLibrary>& versions();
  // Of the plan, for turns and locks.
  const cache::Fingerprint& entry();
  LookupReport told();
  // What is told of it, where nothing else comes of it.
  CacheReport describe();
  // Puts what is known into `costs`, and the plan into `pricing`.
  void tell(tuning::CostTable& costs, PricingOptions& pricing);
  [[noreturn]] void fail_frozen();

 private:
  bool is_as_good_as_can_be() const;
  bool is_better(const tuning::TakenPlan& taken) const;
  void look_into(PriceSource source);
  void look_into_given();
  void look_into_folders();

  PlanRequest question_;
  ProcessPlanCache& plans_;
  const Log& log_;
  std::optional<std::vector<tuning::PricedLibrary>> versions_;
  std::optional<cache::Fingerprint> entry_;
  std::string refusal_;  // why third_party_plugins' plans do not count; "": they do
  // What look() found:
  std::optional<FoundPlan> plan_;
  std::vector<PriceSource> sources_;
  std::optional<tuning::TakenCosts> prices_;
  std::vector<std::string> reasons_;  // why there is not more
};

}  // namespace tessera
