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
#include "assemble/stored_kernels.h"
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

// The files that a model keeps in the user's folder for later processes.
enum class Keeping : uint8_t {
  None,
  Index,  // an index of the model, if it is in a file, and its packs and kernels
};

// A plan that is made behind the runs of an executor. If neither member is set, kernels are
// compiled that a choice without prices left out.
struct BackgroundBuild {
  bool measures = false;  // what is not known; then chooses
  // The plan to build; with `measures`, only if measuring finds none.
  std::optional<tuning::KnownPlan> plan = {};
  // Measuring pauses while this returns true. Null: it never pauses.
  std::function<bool()> is_busy = {};
};

struct Model::State : std::enable_shared_from_this<Model::State> {
  explicit State(const LoadOptions& options)
      : backends(options.backends),
        log(options.log),
        information_log(options.information_log ? options.information_log
                                                : [](const std::string&) {}) {}

  class Planner;

  std::filesystem::path file;
  std::optional<ModelBytes> given_bytes;  // the model, if it is not loaded from a file
  std::shared_ptr<const Bundle> bundle;   // the same for a bundle, in a file or not; else null
  std::shared_ptr<const BundledCache> bundled_cache;  // of the bundle; may be null
  std::shared_ptr<cache::PackFile> bundled_packs;     // the same
  // Called with the result of each bind before it is used. A bundle is made of these. Null: not
  // called; else PlanOptions::notes_plan is set.
  std::function<void(Planner&, const PlanResult&, const CacheRecord* record)> on_bound;
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
  void keep_stored(const BuiltPlan& built, int threads, const KernelLatitude& latitude);
  // Stores the blobs that plug-ins have put, for later processes and other models.
  void keep_blobs();
  // Stores the record of the newest bind (`record` may be null), and releases weights that its plan
  // has packed.
  void note_bound(PlanResult& result, const std::shared_ptr<const CacheRecord>& record);
  // Releases weights of the model that `built` has packed.
  void release_packed(BuiltPlan& built);
  // Null if no stored kernels were opened.
  FindStoredKernel stored_kernel_finder() const;
  // Sections for save_cache(): compiled kernels of a backend, or of all if it is "", and optionally
  // their packs.
  std::vector<cache::Section> stored_sections(const std::string& backend, bool with_packs);
  // Takes packs and kernels from a loaded file if this user made them; otherwise warns in the log.
  void take_packs(const LoadedCache& given);

  // bound_graph() with the elements of all weights. Reads the model again if some were released.
  Graph bound_graph_with_weights(const BindOptions& wanted, ThreadPool& pool);
  // Makes `wanted`. Returns nullopt if measuring was cancelled, or found no plan and there is no
  // other; prices that were measured until then are kept. Measuring waits if another thread or
  // process measures the model. Throws Cancelled if another build is cancelled, Unsupported if the
  // known plan cannot be built any more, and the errors of building.
  std::optional<NextPlan> build_behind(const BindOptions& options, const BackgroundBuild& wanted,
                                       CancellationToken& end);
  // Releases packs that no plan uses of constants that passes have made for some shapes. Those of
  // the model's own weights stay for other plans: there are only so many of them.
  void drop_packs_of_shapes();
  DeclaredShapes declared_shapes();

  class BackgroundBuilder;
  class Binder;
  class BundleWriter;
  // Model::bind() with additional cache files, which are used for this call only.
  Executor bind(const BindOptions& wanted, const std::vector<LoadedCache>& more);
};

}  // namespace tessera
