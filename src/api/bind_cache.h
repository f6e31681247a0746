// One bind and its caches: looks up what is known, waits where somebody else is finding it out, and
// keeps what was found.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
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

// What save_cache() saves, and what is told of it. Where the plan was known, nothing but that was
// read of its files: the rest is when it is first asked for.
class CacheRecord {
 public:
  struct Contents {
    std::vector<tuning::PricedLibrary> libraries;
    tuning::FoundCosts found;
    CacheReport report;
  };
  CacheRecord(std::vector<cache::Ingredient> ingredients, std::function<Contents()> read,
              bool is_saved = false)
      : ingredients_(std::move(ingredients)), read_(std::move(read)), is_saved_(is_saved) {}

  const std::vector<cache::Ingredient>& ingredients() const { return ingredients_; }
  // Whether the bind has written a file.
  bool is_saved() const { return is_saved_; }
  const Contents& contents() const {
    std::call_once(is_read_, [&] { contents_ = read_(); });
    return contents_;
  }

 private:
  std::vector<cache::Ingredient> ingredients_;
  std::function<Contents()> read_;
  bool is_saved_;
  mutable std::once_flag is_read_;
  mutable Contents contents_;
};

struct CacheQuestion {
  std::vector<cache::Ingredient> ingredients;
  // Opens what it is asked for; no names: all that the model is bound with.
  tuning::FindLibraries find_libraries;
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

  // The plan that was found; nullptr where none was.
  const tuning::KnownPlan* plan() const { return plan_ ? &*plan_ : nullptr; }

  // What look_up() would find now, without waiting.
  CacheReport find();

  // Puts what is known into `costs`, and the plan into `pricing`.
  void tell(tuning::CostTable& costs, PricingOptions& pricing);

  // Keeps what a bind came to, where it was found out. Throws CacheMiss where it should have been
  // known.
  std::shared_ptr<const CacheRecord> keep(const PlanResult& result, const tuning::CostTable& costs);

 private:
  // A file that fits, of which sections of `type` count ("": all).
  struct Source {
    cache::CacheFile file;
    std::string type;
    std::filesystem::path path;
  };
  void look();
  void look_into(const cache::CacheFile& file, const std::string& type,
                 const std::filesystem::path& path);
  void look_into_given();
  void look_into_folders();
  void read_costs();
  void wait_for_lock(const std::function<bool(const std::string& what)>& keeps_waiting);
  void let_go();
  // What is told of a look-up, also after it.
  struct Told {
    cache::Fingerprint fingerprint;
    std::vector<cache::Ingredient> ingredients;
    std::vector<std::filesystem::path> folders;
    std::filesystem::path file;
    std::vector<std::string> reasons;
    CacheReport described() const;
    std::string reason() const;
  };
  [[noreturn]] void miss() const;
  Told told() const;
  void save(CacheReport& report, const tuning::FoundCosts& found,
            const std::vector<tuning::PricedLibrary>& libraries) const;
  std::shared_ptr<const CacheRecord> record_hit(const PlanResult& result) const;
  std::shared_ptr<const CacheRecord> record_found(const PlanResult& result,
                                                  const tuning::CostTable& costs) const;

  static tuning::TakenCosts take_costs(const std::vector<Source>& sources,
                                       const std::vector<tuning::PricedLibrary>& libraries);

  CacheQuestion question_;
  cache::Fingerprint fingerprint_;
  FoundPlans& plans_;
  const Log& log_;
  std::optional<tuning::KnownPlan> plan_;
  double plan_seconds_ = 0;  // that it took to find
  std::vector<Source> sources_;
  std::shared_ptr<const CacheRecord> remembered_;  // where this process found the plan
  std::optional<tuning::TakenCosts> known_;        // once the prices of `sources_` are read
  std::filesystem::path file_;                     // that was loaded
  std::vector<std::string> reasons_;
  std::optional<FoundPlans::Turn> turn_;
  std::optional<cache::FileLock> lock_;
};

// Why no file of the folders fits: the ingredient that differs, where one is of the same model.
std::string explain_miss(const std::vector<std::filesystem::path>& folders,
                         const std::vector<cache::Ingredient>& ingredients);

}  // namespace tessera
