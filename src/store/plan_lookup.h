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
#include "store/cache_record.h"
#include "store/found_plans.h"
#include "store/plan_question.h"
#include "tessera/cache.h"
#include "tune/cost_sections.h"

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
struct ToldLookup {
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
  cache::CacheFile file;
  std::string type;
  std::filesystem::path path;
};

tuning::TakenCosts take_all(const std::vector<PriceSource>& sources,
                            const std::vector<tuning::PricedLibrary>& libraries);

// Not safe from several threads.
class PlanLookup {
 public:
  // `plans` and `log` must outlive it.
  PlanLookup(PlanQuestion question, FoundPlans& plans, const Log& log);

  // What there is now.
  void look();
  // From now on plans of strangers do not count, and the one that was found does not.
  void refuse_strangers(const std::string& reason);

  const PlanQuestion& question() const { return question_; }
  FoundPlans& plans() const { return plans_; }
  const Log& log() const { return log_; }
  const std::optional<FoundPlan>& plan() const { return plan_; }
  const std::string& refusal_of_strangers() const { return refusal_; }
  const std::vector<PriceSource>& sources() const { return sources_; }
  // Reads them when they are first asked for: they are of use only where something is still to be
  // found out.
  const tuning::TakenCosts& prices();
  // Empty where nobody has.
  tuning::TakenCosts prices_read() const { return prices_.value_or(tuning::TakenCosts()); }
  const std::vector<tuning::PricedLibrary>& versions();
  // Of the plan, for turns and locks.
  const cache::Fingerprint& entry();
  ToldLookup told();
  // What is told of it, where nothing else comes of it.
  CacheReport describe();
  // Puts what is known into `costs`, and the plan into `pricing`.
  void tell(tuning::CostTable& costs, PricingOptions& pricing);
  [[noreturn]] void fail_frozen();

 private:
  bool is_as_good_as_can_be() const;
  bool is_better(const tuning::TakenPlan& taken) const;
  void look_into(cache::CacheFile file, const std::string& type, const std::filesystem::path& path);
  void look_into_given();
  void look_into_folders();

  PlanQuestion question_;
  FoundPlans& plans_;
  const Log& log_;
  std::optional<std::vector<tuning::PricedLibrary>> versions_;
  std::optional<cache::Fingerprint> entry_;
  std::string refusal_;  // why strangers' plans do not count; "": they do
  // What look() found:
  std::optional<FoundPlan> plan_;
  std::vector<PriceSource> sources_;
  std::optional<tuning::TakenCosts> prices_;
  std::vector<std::string> reasons_;  // why there is not more
};

}  // namespace tessera
