// The implementation of the public handle Model.
#pragma once

#include <filesystem>
#include <functional>
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
#include "base/fork.h"
#include "base/log.h"
#include "base/parallel.h"
#include "compile/compile.h"
#include "ops/registry.h"
#include "price/group_text.h"
#include "store/bundle.h"
#include "store/store.h"
#include "store/stored_model.h"
#include "tessera/tessera.h"

namespace tessera {

// If more bytes of weights are freed, they are returned to the system immediately.
inline constexpr int64_t kMuchMemoryBytes = int64_t{1} << 23;

// What a model keeps in the user's folder for later processes.
enum class Keeping : uint8_t {
  None,
  Index,  // an index of the model, if it is in a file, and its packs and kernels
};

struct Model::State : std::enable_shared_from_this<Model::State> {
  explicit State(const LoadOptions& options)
      : backends(options.backends),
        log(options.log),
        information_log(options.information_log ? options.information_log
                                                : [](const std::string&) {}) {}

  std::filesystem::path file;
  std::optional<ModelBytes> given_bytes;  // the model, if it is not loaded from a file
  std::shared_ptr<const Bundle> bundle;   // the same for a bundle, in a file or not; else null
  std::shared_ptr<const BundledCache> bundled_cache;  // of the bundle; may be null
  std::shared_ptr<cache::PackFile> bundled_packs;     // the same
  // Called with the result of each bind before it is used. A bundle is made of these. Null: not
  // called; else PlanOptions::notes_plan is set.
  std::function<void(const BindOptions&, const PlanOptions&, const PlanResult&,
                     const CacheRecord* record)>
      on_bound;
  CompileOptions compile_options;
  int load_threads = 0;
  Backends backends;
  std::shared_ptr<const ops::Registry> registry;
  Log log;              // for warnings
  Log information_log;  // see LoadOptions
  PackStore packs;
  std::vector<StageRecord> stages;
  mutable LongHeldMutex mutex;                // protects the members below
  LoadedModel loaded;                         // its weights may be released and read again
  std::optional<ModelStructure> structure;    // of the loaded graph; computed on first use
  std::unique_ptr<StoredModel> stored_model;  // null if the model has no index
  int64_t packed_bytes = 0;                   // since pages were last returned to the system
  std::vector<LoadedCache> loaded_caches;
  std::shared_ptr<const CacheRecord> newest_cache;  // of the newest bind with optimize

  // Calls `work` with the mutex locked. Messages to `log` are passed on afterwards, because the
  // callback of the user may call the model.
  void with_lock(const std::function<void(const Log& log)>& work);
  Graph bound_graph(const BindOptions& wanted, ThreadPool& pool);
  // tessera::load() from the file, bytes or bundle in `state`. `keeping` replaces
  // LoadOptions::keeps_index.
  static Model load(const std::shared_ptr<State>& state, const LoadOptions& options,
                    Keeping keeping);
  // Takes from the bundle what this user may use: plans, packs and kernels, and with
  // `takes_index` the loaded model. Returns whether it took that, so that it need not be read.
  bool open_bundle(const IndexLocation& location, bool takes_index);
  // Reads the model for the first time. `location` is where its index is to be kept.
  void read_first(std::optional<IndexLocation> location, const LoadOptions& options,
                  StageClock& clock);
  // The index of the model that a process of this user kept; false if there is none.
  bool take_index(const IndexLocation& location);
  void take(FoundModel found);
  // Reads the model, or reads it again if weights were released. Throws DeviceFailed if one of its
  // files has changed since the first reading.
  void restore();
  // The files from which the model was read; empty before.
  std::vector<StampedFile> files() const;
  // The model as it is in its file, bytes or bundle.
  LoadedModel read(ThreadPool& pool);
  // Throws DeviceFailed if a file with mapped weights has changed.
  void check_weights() const;
  // Counts packed bytes. If there are enough of them, returns the resident pages of mapped weights
  // to the system, which loads them again when they are read.
  void note_packed(int64_t bytes);
  // Warns if only the reference kernels can be used and the user did not ask for backends by name;
  // once for all models on the same backends.
  void warn_once_if_slow(const BindOptions& options);
  const ModelStructure& loaded_structure();  // requires a locked mutex
  std::vector<cache::Ingredient> model_ingredients();

  PlanRequest plan_request(const BindOptions& wanted, const std::vector<LoadedCache>& more,
                           int threads);

  // open_packs() opens the stored packs and kernels of the model; keep_stored() stores those that
  // are not stored yet.
  void open_packs(ThreadPool& pool);
  void keep_stored(const BuiltPlan& built, int threads, const PlanOptions& options);
  // Stores the blobs that plug-ins have put, for later processes and other models.
  void keep_blobs();
  // Stores the record of the newest bind (`record` may be null), and releases weights that its plan
  // has packed.
  void note_bound(PlanResult& result, const std::shared_ptr<const CacheRecord>& record);
  FindStoredKernel stored_kernel_finder();
  // Sections for save_cache(): compiled kernels of a backend, or of all if it is "", and optionally
  // their packs.
  std::vector<cache::Section> stored_sections(const std::string& backend, bool with_packs);
  // Takes packs and kernels from a loaded file if this user made them; otherwise warns in the log.
  void take_packs(const LoadedCache& given);

  // Compares with the reference each kernel of an untrusted plan that was not verified here before.
  // Returns the reason why the plan cannot be used, or "".
  std::string verify_untrusted_plan(const BindOptions& wanted, PlanOptions& plan_options,
                                    StoredPlan& stored, tuning::CostTable& costs, ThreadPool& pool,
                                    StageClock& clock);
  // Makes tuning measure in the worker process, unless TuningOptions::in_process is set.
  void set_bench(const BindOptions& wanted, PlanOptions& plan_options, ThreadPool& pool);
  // Measures what is not known yet, in the background of the runs of another plan, and chooses. It
  // pauses while `is_busy` returns true, and waits if another thread or process measures the model.
  // Returns nullopt if it was cancelled; prices that were measured until then are kept.
  std::optional<NextPlan> retune_in_background(const BindOptions& wanted, CancellationToken& end,
                                               const std::function<bool()>& is_busy);

  // bound_graph() with the elements of all weights. Reads the model again if some were released.
  Graph bound_graph_with_weights(const BindOptions& wanted, ThreadPool& pool);
  // Returns the result of `build`. If `build` needs a released weight, reads the model again and
  // repeats `build`.
  PlanResult build_with_weights(const std::function<BuildOutcome()>& build, StageClock& clock);
  // Asks all backends for all candidates, and measures them if the options say so.
  PlanResult build_anew(const BindOptions& wanted, PlanOptions& plan_options, PlanSearch* search,
                        ThreadPool& pool, StageClock& clock);
  // Builds a known plan, without asking for other candidates; see build_known_plan(). nullopt if it
  // can no longer be built.
  std::optional<PlanResult> build_known(const BindOptions& wanted, const PlanOptions& plan_options,
                                        const tuning::KnownPlan& plan, ThreadPool& pool,
                                        StageClock& clock);

  // build_known() in the background of an executor. Throws Cancelled if `end` is cancelled.
  std::optional<NextPlan> build_in_background(const BindOptions& wanted,
                                              const tuning::KnownPlan& plan,
                                              CancellationToken& end);

  // Compiles the kernels that a choice without prices left out, and builds the plan with them, in
  // the background of an executor. Throws Cancelled if `end` is cancelled.
  std::optional<NextPlan> compile_in_background(const BindOptions& wanted, CancellationToken& end);

  // Makes a plan for the shapes in `options`, for an executor that was bound to other shapes. It
  // measures nothing and writes nothing. It chooses by price, preferring `reused`, the choice for
  // the other shapes; if `reused` is null, it chooses in the order of the backends. Kernels of
  // `siblings`, the other plans of the executor, are reused if they fit. Throws as Model::bind()
  // does.
  PlanResult replan(const BindOptions& options, const tuning::ReusedChoice* reused,
                    std::vector<const BuiltPlan*> siblings);
  // Releases packs that no plan uses of constants that passes have made for some shapes. Those of
  // the model's own weights stay for other plans: there are only so many of them.
  void drop_packs_of_shapes();
  DeclaredShapes declared_shapes();

  // Read and write the prices that all models of the user share.
  void read_users_prices(const BindOptions& wanted);
  void keep_users_prices(const BindOptions& wanted, double seconds, const tuning::CostTable& costs);
  std::vector<tuning::PricedLibrary> libraries_of(const BindOptions& wanted) const;

  class Binder;
  class BundleWriter;
  // Model::bind() with additional cache files, which are used for this call only.
  Executor bind(const BindOptions& wanted, const std::vector<LoadedCache>& more);
};

}  // namespace tessera
