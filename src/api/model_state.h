// What stands behind the public handle Model.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/declared_shapes.h"
#include "api/plan_swap.h"
#include "api/stage_clock.h"
#include "backend/packs.h"
#include "base/background_task.h"
#include "base/log.h"
#include "base/parallel.h"
#include "compile/compile.h"
#include "ops/registry.h"
#include "price/group_text.h"
#include "store/store.h"
#include "store/stored_model.h"
#include "tessera/tessera.h"

namespace tessera {

// Above this, freed weights are given back to the system at once.
inline constexpr int64_t kMuchMemoryBytes = int64_t{1} << 23;

struct Model::State : std::enable_shared_from_this<Model::State> {
  explicit State(const LoadOptions& options)
      : backends(options.backends),
        log(options.log),
        information_log(options.information_log ? options.information_log
                                                : [](const std::string&) {}) {}

  std::filesystem::path file;
  std::optional<ModelBytes> given_bytes;  // what it is loaded from instead of the file
  CompileOptions compile_options;
  int load_threads = 0;
  Backends backends;
  std::shared_ptr<const ops::Registry> registry;
  Log log;              // of warnings
  Log information_log;  // see LoadOptions
  PackStore packs;
  std::vector<StageRecord> stages;
  mutable std::mutex mutex;                   // of the next members
  LoadedModel loaded;                         // its weights come and go
  std::optional<ModelStructure> structure;    // of the graph that was loaded, once it was needed
  std::unique_ptr<StoredModel> stored_model;  // null where nothing is to be kept of the model
  int64_t packed_bytes = 0;                   // since pages were given back
  std::vector<LoadedCache> loaded_caches;
  std::shared_ptr<const CacheRecord> newest_cache;  // of the binds with optimize

  // Works while nobody else does on the model, and tells `log` afterwards what it said: whoever is
  // told may ask the model.
  void with_lock(const std::function<void(const Log& log)>& work);
  Graph bound_graph(const BindOptions& wanted, ThreadPool& pool);
  // tessera::load(), from where `state` says; `keeps_index` as settled.
  static Model load(const std::shared_ptr<State>& state, const LoadOptions& options,
                    bool keeps_index);
  // Reads the model; again where weights were let go. Throws DeviceFailed where one of its files
  // has changed since then.
  void restore();
  // What it was read from; none before.
  std::vector<StampedFile> files() const;
  // Throws DeviceFailed where a file whose weights are mapped has changed.
  void check_weights() const;
  // Gives back the pages of the file's weights that were read, which come again when needed, once
  // enough was packed for that.
  void note_packed(int64_t bytes);
  // Warns, once for all models on the same backends, where only the reference kernels can be used
  // and nobody asked for them by name.
  void warn_once_if_slow(const BindOptions& options);
  const ModelStructure& loaded_structure();  // needs the mutex
  std::vector<cache::Ingredient> model_ingredients();

  PlanRequest plan_request(const BindOptions& wanted, const std::vector<LoadedCache>& more,
                           int threads);

  // Opens what is stored of the weights; keeps what is not stored yet.
  void open_packs(ThreadPool& pool);
  void keep_stored(const BuiltPlan& built, int threads, const PlanOptions& options);
  // Remembers what the newest bind came to know (`record` may be null), and lets go of weights that
  // its plan has packed.
  void note_bound(PlanResult& result, const std::shared_ptr<const CacheRecord>& record);
  FindStoredKernel stored_kernel_finder();
  // For a file to ship: compiled kernels of a backend, or of all where that is "", and their packs.
  std::vector<cache::Section> stored_sections(const std::string& backend, bool with_packs);
  // Those of a file that was given, where this user packed them; else the log is told.
  void take_packs(const LoadedCache& given);

  // Compares each kernel of a stranger's plan that was not judged here with the reference. Gives
  // why the plan is no good, or "".
  std::string verify_untrusted_plan(const BindOptions& wanted, PlanOptions& plan_options,
                                    StoredPlan& stored, tuning::CostTable& costs, ThreadPool& pool,
                                    StageClock& clock);
  // Has the process measure that is made for it.
  void set_bench(const BindOptions& wanted, PlanOptions& plan_options, ThreadPool& pool);
  // Measures what libraries offer that a known plan did not know, beside the runs of that plan, and
  // chooses again. Nothing where somebody else is at it, or where it was cancelled; what was
  // measured until then is kept.
  std::optional<NextPlan> retune_in_background(const BindOptions& wanted, CancellationToken& end);

  // bound_graph() with the elements of all weights: reads the model again if some were released.
  Graph bound_graph_with_weights(const BindOptions& wanted, ThreadPool& pool);
  // What `build` makes; if that needs a released weight, reads the model again and has it build
  // once more.
  PlanResult build_with_weights(const std::function<BuildOutcome()>& build, StageClock& clock);
  // Asks everybody for everything, and measures where that is wanted.
  PlanResult build_anew(const BindOptions& wanted, PlanOptions& plan_options, PlanSearch* search,
                        ThreadPool& pool, StageClock& clock);
  // The plan, where nothing else needs to be asked for to build it; see build_known_plan().
  std::optional<PlanResult> build_known(const BindOptions& wanted, const PlanOptions& plan_options,
                                        const tuning::KnownPlan& plan, ThreadPool& pool,
                                        StageClock& clock);

  // build_known() in the background of an executor. Throws Cancelled once `end` says so.
  std::optional<NextPlan> build_in_background(const BindOptions& wanted,
                                              const tuning::KnownPlan& plan,
                                              CancellationToken& end);

  // A plan for the shapes in `options`, for an executor that was bound to others: nothing is
  // measured and nothing is written. With `reused`, the choice for the other shapes, it chooses by
  // price; if that is null, in the order of the backends. Kernels of `siblings`, the executor's
  // other plans, are used again if they fit. Throws as Model::bind() does.
  PlanResult replan(const BindOptions& options, const tuning::ReusedChoice* reused,
                    std::vector<const BuiltPlan*> siblings);
  DeclaredShapes declared_shapes();

  // The prices of the user's other models.
  void read_users_prices(const BindOptions& wanted);
  void keep_users_prices(const BindOptions& wanted, double seconds, const tuning::CostTable& costs);
  std::vector<tuning::PricedLibrary> libraries_of(const BindOptions& wanted) const;

  class Binder;
  // Model::bind(), with files that count for this bind alone.
  Executor bind(const BindOptions& wanted, const std::vector<LoadedCache>& more);
};

}  // namespace tessera
