// One bind and its caches: looks up what is known, waits where somebody else is finding it out, and
// keeps what was found.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/found_plans.h"
#include "base/log.h"
#include "cache/cache_file.h"
#include "cache/file_lock.h"
#include "compile/build_plan.h"
#include "tessera/tessera.h"
#include "tune/cost_sections.h"

namespace tessera {

// A file that load_cache() was called with.
struct GivenCache {
  std::filesystem::path path;
  cache::CacheFile file;
  std::string type;  // of sections; "" for all
};

// What save_cache() saves.
struct CacheRecord {
  std::vector<cache::Ingredient> ingredients;
  std::vector<tuning::PricedLibrary> libraries;
  tuning::FoundCosts found;
  CacheReport report;
};

struct CacheQuestion {
  std::vector<cache::Ingredient> ingredients;
  std::vector<tuning::PricedLibrary> libraries;
  std::vector<GivenCache> given;
  std::vector<std::filesystem::path> folders;  // see cache_folders()
  bool is_frozen = false;
  bool looks_up = true;
};

class BindCache {
 public:
  BindCache(CacheQuestion question, FoundPlans& plans, const Log& log);

  // Until the plan is known, or it is this bind's turn to find it. `keeps_waiting` is called often
  // with what is waited for; where it gives false nobody is waited for any longer. Throws CacheMiss
  // where nothing may be found out.
  void look_up(const std::function<bool(const std::string& what)>& keeps_waiting);

  bool is_known() const { return known_.plan.has_value(); }

  // What look_up() would find now, without waiting.
  CacheReport find();

  // Puts what is known into `costs`, and the plan into `pricing`.
  void tell(tuning::CostTable& costs, PricingOptions& pricing) const;

  // Keeps what a bind came to, where it was found out. Throws CacheMiss where it should have been
  // known.
  std::shared_ptr<const CacheRecord> keep(const PlanResult& result, const tuning::CostTable& costs);

 private:
  void look();
  void look_into(const cache::CacheFile& file, const std::string& type,
                 const std::filesystem::path& path);
  void look_into_given();
  void look_into_folders();
  void wait_for_lock(const std::function<bool(const std::string& what)>& keeps_waiting);
  void let_go();
  [[noreturn]] void miss() const;
  CacheReport described() const;
  std::string reason() const;
  void save(CacheReport& report, const tuning::FoundCosts& found) const;
  std::vector<CacheTypeReport> types(const tuning::CostTable& costs,
                                     const PlanResult& result) const;

  CacheQuestion question_;
  cache::Fingerprint fingerprint_;
  FoundPlans& plans_;
  const Log& log_;
  tuning::TakenCosts known_;
  std::filesystem::path file_;  // that was loaded
  std::vector<std::string> reasons_;
  std::optional<FoundPlans::Turn> turn_;
  std::optional<cache::FileLock> lock_;
};

// Why no file of the folders fits: the ingredient that differs, where one is of the same model.
std::string explain_miss(const std::vector<std::filesystem::path>& folders,
                         const std::vector<cache::Ingredient>& ingredients);

}  // namespace tessera
