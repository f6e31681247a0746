// The store of what was found out: who asks it for a plan gets either one that is known, or the
// task to find one. Its tiers are this process, the project's folder and the user's; which of them
// may vouch for what is in cache/origin.h.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "cache/file_lock.h"
#include "compile/build_plan.h"
#include "price/shared_costs.h"
#include "store/cache_record.h"
#include "store/plan_lookup.h"
#include "store/plan_request.h"
#include "store/process_plan_cache.h"
#include "tessera/cache.h"

namespace tessera {

class Store;
class StoredPlan;
class PlanSearch;

// What a look-up comes to.
using LookupResult = std::variant<StoredPlan, PlanSearch>;

// Called repeatedly while waiting, with what is waited for; gives false to stop waiting.
using KeepsWaiting = std::function<bool(const std::string& what)>;

// A plan that is known. It is built and kept, or refused, or another one is searched.
class StoredPlan {
 public:
  // Of a look-up that has found one.
  explicit StoredPlan(std::unique_ptr<PlanLookup> lookup) : lookup_(std::move(lookup)) {}

  const tuning::KnownPlan& plan() const { return lookup_->plan()->plan; }
  // Whose word it is. A stranger's is a proposal: refuse() it where one of its kernels is wrong.
  cache::Origin origin() const { return lookup_->plan()->origin; }
  // Where it was found with other libraries than there are now: which, in a sentence; else "".
  const std::string& change() const { return lookup_->plan()->change; }
  // See PlanLookup::tell().
  void tell(tuning::CostTable& costs, PricingOptions& pricing) { lookup_->tell(costs, pricing); }

  // It was built. A stranger's becomes this user's own, but with `frozen`, which writes nothing.
  std::shared_ptr<const CacheRecord> keep(const PlanResult& result) &&;
  // It is no good, for this reason: what there is besides. Throws CacheMiss as Store::look_up().
  LookupResult refuse(const std::string& reason, const KeepsWaiting& keeps_waiting) &&;
  // It cannot be built any more. Takes no turn and no lock: who meets this is alone with it.
  PlanSearch search() &&;

 private:
  std::unique_ptr<PlanLookup> lookup_;
};

// The task to find a plan. While it holds a turn and a lock, nobody else in this process, or in
// others that write to the same folder, is at it.
class PlanSearch {
 public:
  explicit PlanSearch(std::unique_ptr<PlanLookup> lookup,
                      std::optional<ProcessPlanCache::Turn> turn = {},
                      std::optional<cache::FileLock> lock = {})
      : lookup_(std::move(lookup)), turn_(std::move(turn)), lock_(std::move(lock)) {}

  // One that cannot be built, or that others are to compete with.
  bool has_plan() const { return lookup_->plan().has_value(); }
  void tell(tuning::CostTable& costs, PricingOptions& pricing) { lookup_->tell(costs, pricing); }

  // Keeps what was found. Throws CacheMiss where it should have been known.
  std::shared_ptr<const CacheRecord> keep(const PlanResult& result,
                                          const tuning::CostTable& costs) &&;

 private:
  std::unique_ptr<PlanLookup> lookup_;
  std::optional<ProcessPlanCache::Turn> turn_;
  std::optional<cache::FileLock> lock_;
};

// Of one process, for all models on the same backends. Safe from any thread; answers are for one
// thread, and must not outlive it.
class Store {
 public:
  // Waits until the plan is known, or it is the caller's turn to find it. Throws CacheMiss where
  // nothing may be found out. `log` must outlive the answer.
  LookupResult look_up(PlanRequest question, const KeepsWaiting& keeps_waiting, const Log& log);
  // For a bind beside the runs of another: nullopt where somebody else is finding the plan. Nobody
  // judges there, so plans of third_party_plugins do not count.
  std::optional<LookupResult> try_look_up(PlanRequest question, const Log& log);
  // What there is now, for people.
  CacheReport describe(PlanRequest question, const Log& log);
  // The same for a plan that is neither waited for nor kept; plans of third_party_plugins do not
  // count.
  void tell(PlanRequest question, const Log& log, tuning::CostTable& costs,
            PricingOptions& pricing);

  // What the process knows of candidates, whatever their models.
  tuning::SharedCosts& prices() { return prices_; }
  // Takes the user's prices from `folder` to these, once; "" is no folder.
  void read_users_prices(const std::filesystem::path& folder,
                         const std::vector<cache::Ingredient>& machine,
                         const std::function<std::vector<tuning::PricedLibrary>()>& libraries);
  // Adds what was measured in `seconds` to the user's. Where it cannot be, nothing is lost but
  // time.
  static void keep_users_prices(
      const std::filesystem::path& folder, const std::vector<cache::Ingredient>& machine,
      const std::function<std::vector<tuning::PricedLibrary>()>& libraries, double seconds,
      const tuning::CostTable& costs);

 private:
  ProcessPlanCache plans_;
  tuning::SharedCosts prices_;
  std::once_flag are_users_prices_read_;
};

}  // namespace tessera
