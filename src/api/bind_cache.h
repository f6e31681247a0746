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
  CacheRecord(std::vector<cache::Ingredient> model, tuning::Binding binding,
              std::function<Contents()> read, bool is_saved = false)
      : model_(std::move(model)),
        binding_(std::move(binding)),
        read_(std::move(read)),
        is_saved_(is_saved) {}

  // Of the file, and of the plan's section in it.
  const std::vector<cache::Ingredient>& model() const { return model_; }
  const tuning::Binding& binding() const { return binding_; }
  // Whether the bind has written a file.
  bool is_saved() const { return is_saved_; }
  const Contents& contents() const {
    std::call_once(is_read_, [&] { contents_ = read_(); });
    return contents_;
  }

 private:
  std::vector<cache::Ingredient> model_;
  tuning::Binding binding_;
  std::function<Contents()> read_;
  bool is_saved_;
  mutable std::once_flag is_read_;
  mutable Contents contents_;
};

struct CacheQuestion {
  std::vector<cache::Ingredient> model;  // of the file
  std::string model_name;                // for people
  tuning::Binding binding;               // of the plan
  // Of all that the bind may use; opens none that is remembered.
  std::function<std::vector<tuning::PricedLibrary>()> find_versions;
  // Opens what it is asked for; no names: all that the model is bound with.
  tuning::FindLibraries find_libraries;
  std::vector<GivenCache> given;
  std::vector<std::filesystem::path> folders;  // see cache_folders()
  std::filesystem::path key_folder;            // the user's; "" for none
  bool is_frozen = false;
  bool looks_up = true;
};

// One bind's dealings with what was found out before. look_up() comes first; then, where plan() has
// none or it could not be built, tell() and, after measuring, keep(). A plan that was built is kept
// too, which costs nothing.
class BindCache {
 public:
  BindCache(CacheQuestion question, FoundPlans& plans, const Log& log);

  // Until the plan is known, or it is this bind's turn to find it. `keeps_waiting` is called often
  // with what is waited for; where it gives false nobody is waited for any longer. Throws CacheMiss
  // where nothing may be found out.
  void look_up(const std::function<bool(const std::string& what)>& keeps_waiting);

  // Without waiting, for a bind beside the runs of another: false where somebody else is at it.
  bool try_look_up();

  // The plan that was found; nullptr where none was.
  const tuning::KnownPlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  // Whose word it is. A stranger's is a proposal: see drop_plan().
  cache::Origin plan_origin() const { return plan_origin_; }
  // Where it was found with other libraries than there are now: which, in a sentence; else "".
  const std::string& change() const { return change_; }
  // It turned out to be no good. What look_up() would do without it; throws CacheMiss as that does.
  void drop_plan(const std::string& reason);

  // What look_up() would find now, without waiting.
  CacheReport find();

  // Puts what is known into `costs`, and the plan into `pricing`.
  void tell(tuning::CostTable& costs, PricingOptions& pricing);

  // Keeps what a bind came to, where it was found out, or judged for the first time. Throws
  // CacheMiss where it should have been known.
  std::shared_ptr<const CacheRecord> keep(const PlanResult& result, const tuning::CostTable& costs);

 private:
  // A file that fits, of which prices of `type` count ("": all).
  struct Source {
    cache::CacheFile file;
    std::string type;
    std::filesystem::path path;
  };
  void look();
  // Whether it is rather to be taken than what was found so far.
  bool is_better(const tuning::TakenPlan& taken) const;
  // Whether nothing can be better.
  bool is_as_good_as_can_be() const;
  void look_into(cache::CacheFile file, const std::string& type, const std::filesystem::path& path);
  void look_into_given();
  void look_into_folders();
  void read_costs();
  void wait_for_lock(const std::function<bool(const std::string& what)>& keeps_waiting);
  void let_go();
  const std::vector<tuning::PricedLibrary>& versions();
  const cache::Fingerprint& entry();
  // What is told of a look-up, also after it.
  struct Told {
    std::vector<cache::Ingredient> model;
    tuning::Binding binding;
    std::vector<cache::Ingredient> versions;
    std::vector<std::filesystem::path> folders;
    std::filesystem::path file;
    std::vector<std::string> reasons;
    std::string change;
    CacheReport described() const;
    std::string reason() const;
  };
  [[noreturn]] void miss();
  Told told();
  void save(CacheReport& report, const tuning::FoundCosts& found,
            const std::vector<tuning::PricedLibrary>& libraries) const;
  std::shared_ptr<const CacheRecord> record_hit(const PlanResult& result);
  std::shared_ptr<const CacheRecord> record_found(const PlanResult& result,
                                                  const tuning::CostTable& costs);

  static tuning::TakenCosts take_all(const std::vector<Source>& sources,
                                     const std::vector<tuning::PricedLibrary>& libraries);

  CacheQuestion question_;
  std::optional<std::vector<tuning::PricedLibrary>> versions_;
  std::optional<cache::Fingerprint> entry_;  // of the plan, for turns and locks
  FoundPlans& plans_;
  const Log& log_;
  std::optional<tuning::KnownPlan> plan_;
  cache::Origin plan_origin_ = cache::Origin::Here;
  std::vector<cache::Ingredient> plan_versions_;  // with which it was found
  std::string change_;
  double plan_seconds_ = 0;  // that it took to find
  std::string dropped_;      // why strangers' plans do not count; "": they do
  std::vector<Source> sources_;
  std::shared_ptr<const CacheRecord> remembered_;  // where this process found the plan
  std::optional<tuning::TakenCosts> known_;        // once the prices of `sources_` are read
  std::filesystem::path file_;                     // that was loaded
  std::vector<std::string> reasons_;
  std::optional<FoundPlans::Turn> turn_;
  std::optional<cache::FileLock> lock_;
};

}  // namespace tessera
