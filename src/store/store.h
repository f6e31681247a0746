// The store of plans. A caller that asks for a plan gets either a known plan, or the task to find
// one. The tiers of the store are this process, the project's folder and the user's folder;
// cache/origin.h decides what the results in them may be used for.
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

#include "assemble/shared_kernels.h"
#include "base/errors/log.h"
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

// The result of a look-up.
using LookupResult = std::variant<StoredPlan, PlanSearch>;

// Called repeatedly while waiting; `what` describes the reason. Returns false to stop waiting.
using KeepsWaiting = std::function<bool(const std::string& what)>;

// A known plan. The caller builds it and calls keep(), or rejects it with refuse(), or calls
// search() to find another one.
class StoredPlan {
 public:
  // The look-up must have found a plan.
  explicit StoredPlan(std::unique_ptr<PlanLookup> lookup) : lookup_(std::move(lookup)) {}

  const tuning::KnownPlan& plan() const { return *lookup_->plan()->plan; }
  // The origin of the plan. A plan of Origin::Untrusted is only a proposal: call refuse() if one of
  // its kernels is wrong.
  cache::Origin origin() const { return lookup_->plan()->origin; }
  // If the plan was found with other libraries than the current ones: how they differ, in a
  // sentence; otherwise "".
  const std::string& change() const { return lookup_->plan()->change; }
  // See PlanLookup::is_to_resume().
  bool is_to_resume() const { return lookup_->is_to_resume(); }
  // See PlanLookup::fill().
  void fill(tuning::CostTable& costs, PricingOptions& pricing) { lookup_->fill(costs, pricing); }

  // The plan was built. An untrusted plan is saved as this user's own, except with `frozen`, which
  // writes nothing.
  std::shared_ptr<const CacheRecord> keep(const PlanResult& result) &&;
  // The plan is rejected for `reason`. Looks up again without untrusted plans. Throws CacheMiss
  // like Store::look_up().
  LookupResult refuse(const std::string& reason, const KeepsWaiting& keeps_waiting) &&;
  // The plan cannot be built any more. Takes no turn and no lock, because only this bind has that
  // problem.
  PlanSearch search() &&;

 private:
  std::unique_ptr<PlanLookup> lookup_;
};

// The task to find a plan. While it holds a turn and a lock, no other thread of this process, and
// no other process that writes to the same folder, searches for the plan.
class PlanSearch {
 public:
  explicit PlanSearch(std::unique_ptr<PlanLookup> lookup,
                      std::optional<ProcessPlanCache::EntryLock> turn = {},
                      std::optional<cache::FileLock> lock = {})
      : lookup_(std::move(lookup)), turn_(std::move(turn)), lock_(std::move(lock)) {}

  // Whether a plan is known, although a search is necessary: it cannot be built, or has to compete
  // with new ones.
  bool has_plan() const { return lookup_->plan().has_value(); }
  void fill(tuning::CostTable& costs, PricingOptions& pricing) { lookup_->fill(costs, pricing); }

  // Stores the result. Throws CacheMiss if nothing may be measured and the plan was not known.
  std::shared_ptr<const CacheRecord> keep(const PlanResult& result,
                                          const tuning::CostTable& costs) &&;

 private:
  std::unique_ptr<PlanLookup> lookup_;
  std::optional<ProcessPlanCache::EntryLock> turn_;
  std::optional<cache::FileLock> lock_;
};

// The store of one process, for all models on the same backends. Thread-safe; its answers are not,
// and must not outlive the store.
class Store {
 public:
  // Waits until the plan is known, or the caller may search for it. Throws CacheMiss if the plan is
  // not known and nothing may be measured. `log` must outlive the answer.
  LookupResult look_up(PlanRequest request, const KeepsWaiting& keeps_waiting, const Log& log);
  // The plan if it is known now. Neither waits nor keeps others from searching. Ignores untrusted
  // plans.
  std::optional<StoredPlan> find(PlanRequest request, const Log& log);
  // For a bind in the background, while another plan runs. nullopt if somebody else searches for
  // the plan. Ignores untrusted plans, because a background bind does not verify them.
  std::optional<LookupResult> try_look_up(PlanRequest request, const Log& log);
  // Reports what is known now.
  CacheReport describe(PlanRequest request, const Log& log);
  // Like PlanLookup::fill(), for a bind that neither waits for a plan nor stores one. Ignores
  // untrusted plans.
  void fill(PlanRequest request, const Log& log, tuning::CostTable& costs, PricingOptions& pricing);

  // The prices of candidates that this process knows, shared by all models.
  tuning::SharedCosts& prices() { return prices_; }
  // The number of plans that this process has found and not forgotten.
  size_t plan_count() const { return plans_.size(); }
  // The kernels of all models.
  SharedKernels& kernels() { return kernels_; }
  // Adds the user's prices in `folder` to prices(), once; does nothing if `folder` is "".
  void read_users_prices(const std::filesystem::path& folder,
                         const std::vector<cache::Ingredient>& machine,
                         const std::function<std::vector<tuning::PricedLibrary>()>& libraries);
  // Adds prices, which took `seconds` to measure, to the user's prices in `folder`. If that fails,
  // they only have to be measured again.
  static void keep_users_prices(
      const std::filesystem::path& folder, const std::vector<cache::Ingredient>& machine,
      const std::function<std::vector<tuning::PricedLibrary>()>& libraries, double seconds,
      const tuning::CostTable& costs);

 private:
  ProcessPlanCache plans_;
  tuning::SharedCosts prices_;
  SharedKernels kernels_;
  std::once_flag are_users_prices_read_;
};

}  // namespace tessera
