// Plans for one model. Everything that builds or prices a plan makes a Planner, and one table in
// planner.cc says what a build gets for its purpose.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/state/model_state.h"
#include "api/state/stage_clock.h"
#include "base/threads/parallel.h"
#include "compile/build_plan.h"
#include "price/cost_table.h"
#include "price/reused_choice.h"
#include "store/store.h"
#include "tessera/tessera.h"

namespace tessera {

// Why a plan is made.
enum class BuildPurpose : uint8_t {
  Bind,         // Model::bind()
  OtherShapes,  // an executor got inputs of other shapes
  Family,       // the same, for all shapes that such a plan can have
  Measure,      // behind the runs of another plan: measure what is not known, and choose
  Compile,      // behind the runs: compile the kernels that a choice without prices left out
  Swap,         // behind the runs: build the known plan to which the executor swaps
  Quote,        // Model::quote_tuning(), which builds nothing
  Verify,       // Model::verify(), which builds nothing
};

class Model::State::Planner {
 public:
  // `check_wanted` is called when a stage begins and before each kernel is built; it throws if the
  // plan is no longer needed. Null: the plan is needed. `model` must outlive this.
  // Throws InvalidArgument for options that contradict each other or cannot be read, and Corrupt if
  // the cost table of the options is damaged.
  Planner(State& model, const BindOptions& options, BuildPurpose purpose,
          std::function<void()> check_wanted = {});
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  const BindOptions& options() const { return options_; }
  ThreadPool& pool() { return pool_; }
  StageClock& clock() { return clock_; }
  // The known costs. Measurements are added to them.
  tuning::CostTable& costs() { return costs_; }
  bool has_prices() const { return plan_.pricing.costs != nullptr; }

  // The request to the store for this plan. `more`: cache files of this call only.
  PlanRequest request(const std::vector<LoadedCache>& more = {}) const;
  // Cache files that nested graphs use, too. Must outlive this.
  void set_more_caches(const std::vector<LoadedCache>& more) { more_ = &more; }
  // Opens the packs and kernels that earlier processes stored, for this and later builds.
  void use_stored_parts();
  // Measures nothing: the choice is made by the cost table of the options, or else in order.
  void choose_unmeasured();
  // Prefers `choice`, which was made for other shapes, and makes the rest by price; null: chooses
  // in order. Kernels of `siblings`, other plans of the same executor, are reused if they fit. Both
  // must outlive this.
  void reuse(const tuning::ReusedChoice* choice, std::vector<const BuiltPlan*> siblings);

  // Asks all backends for all candidates, and measures them if the options say so. `search` has
  // what stores know about this plan; null: nothing.
  PlanResult build(PlanSearch* search = nullptr);
  struct FamilyPlan {
    PlanResult result;
    ValueSizes sizes;
    bool is_slow = false;  // the reference computes some nodes that libraries compute otherwise
  };
  // A plan for the family of these shapes, whose kernels take sizes when they run. With optimize,
  // it is stored for later processes, or taken from the store. Unbuildable if there is none, or it
  // would compute much more by the reference than the plans that reuse() got.
  std::variant<FamilyPlan, UnbuildablePlan> build_family(FamilySizes sizes,
                                                         const FamilyShapes& shapes);
  // Whether the store has such a plan.
  bool knows_family() const;
  // Builds just this plan; see PlanOptions::only_plan.
  std::variant<PlanResult, UnbuildablePlan> build_only(const tuning::KnownPlan& plan);
  // The time that build() would take and its likely gain, without `search`.
  TuningQuote quote();
  // Compares all candidates with the reference.
  ModelVerification verify();

  // Compares each kernel of an untrusted plan with the reference, unless it was verified here
  // before. Returns the reason why the plan cannot be used, or "".
  std::string explain_wrong_kernel(StoredPlan& found);

  // Reads and writes the prices that all models of the user share.
  void read_users_prices() const;
  void keep_users_prices(double seconds) const;
  // Stores the packs and the compiled kernels of a plan, unless they are stored already.
  void keep_stored(const BuiltPlan& built);

 private:
  void add_prices();
  // The request to the store for a plan of the family of the shapes in the options.
  PlanRequest family_request() const;
  std::variant<FamilyPlan, UnbuildablePlan> make_family(FamilySizes sizes,
                                                        const FamilyShapes& shapes);
  // The same, by a stored plan.
  std::variant<FamilyPlan, UnbuildablePlan> make_known_family(FamilySizes sizes,
                                                              const FamilyShapes& shapes,
                                                              const tuning::KnownPlan& plan);
  // Returns the result of `build`. If `build` needs a released weight, reads the model again and
  // repeats `build`.
  BuildOutcome with_weights(const std::function<BuildOutcome()>& build);
  BackendSet& set() const;
  std::vector<tuning::PricedLibrary> libraries() const;

  State& model_;
  BindOptions options_;
  StageClock clock_;
  std::shared_ptr<const void> may_store_;  // blobs of plug-ins
  ThreadPool pool_;
  tuning::CostTable costs_;
  const std::vector<LoadedCache>* more_ = nullptr;
  PlanOptions plan_;
  BuildServices services_;
};

}  // namespace tessera
