// The loaded model: where it comes from, and the graph with the names and options that came with
// it. stored_parts.h has what is kept in files for it, planner.h makes plans for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "api/state/declared_shapes.h"
#include "backend/catalog/backend_set.h"
#include "base/errors/log.h"
#include "base/threads/fork.h"
#include "base/threads/parallel.h"
#include "cache/fingerprint.h"
#include "compile/build_plan.h"
#include "compile/compile.h"
#include "compile/open_graph.h"
#include "ops/registry.h"
#include "price/cost_sections.h"
#include "store/bundle.h"
#include "store/model_index.h"
#include "tessera/tessera.h"

namespace tessera {

// Where a model comes from.
struct ModelSource {
  std::filesystem::path file;            // a model in memory: its name
  std::optional<ModelBytes> bytes;       // the model, if it is not loaded from a file
  std::shared_ptr<const Bundle> bundle;  // the same for a bundle, in a file or not; else null
};

// After loading, the model stays the same. Only elements of weights may be released, and are read
// again if a plan needs them. Thread-safe, except for what loading calls.
// For which sizes the plan of a family is made: for typical_shapes() near the wanted ones, or for
// the wanted ones, because type rules refuse the others, or the plan does not serve for the wanted
// ones.
enum class FamilySizes : uint8_t { Typical, Wanted };

class ModelGraph {
 public:
  // `takes_leases`: see CompileOptions. `registry` has the ops of this build. `log` gets warnings,
  // and must outlive this.
  ModelGraph(ModelSource source, const LoadOptions& options, bool takes_leases,
             std::shared_ptr<const ops::Registry> registry, const Log& log);
  ModelGraph(const ModelGraph&) = delete;
  ModelGraph& operator=(const ModelGraph&) = delete;

  const ModelSource& source() const { return source_; }
  const CompileOptions& options() const { return options_; }
  int load_threads() const { return load_threads_; }
  // All ops. Not changed after loading.
  const std::shared_ptr<const ops::Registry>& registry() const { return registry_; }

  // Loading calls one of these: take() for a model that was found in an index, or read_first().
  void take(LoadedModel model, ModelStructure structure);
  // The same for a graph that is nested in another model; read() cannot be called. `registry`: that
  // of the other model.
  void take_nested(Graph graph, std::shared_ptr<const ops::Registry> registry, ThreadPool& pool);
  // Returns whether the model needs ops that plug-ins of third parties in `set` define. Throws an
  // error that lists everything that this build lacks.
  bool read_first(BackendSet& set);

  // Reads the model, or reads it again if weights were released. Throws DeviceFailed if one of its
  // files has changed since the first reading.
  void read();
  // How often read() has succeeded.
  int times_read() const { return times_read_; }

  // Throws as tessera::check_ranges() does.
  void check_ranges(const BindOptions& wanted) const;
  // "", or why bound() refuses these options.
  std::string explain_refusal(const BindOptions& wanted);
  // Throws OutOfMemory if the largest sizes of the ranges lead to a value that is larger than the
  // machine's memory.
  void check_largest(const BindOptions& wanted);
  // The dimensions of all inputs with these options; those of an input that nothing reads may be
  // missing. Throws as bound() does.
  std::vector<std::vector<int64_t>> input_dims(const BindOptions& wanted) const;
  // Whether bound() would lack shapes of inputs. If so, throws as bound() does for those that are
  // given, and for files that have changed.
  bool needs_shapes(const BindOptions& wanted) const;
  // The graph for these options. The elements of weights may have been released.
  Graph bound(const BindOptions& wanted, ThreadPool& pool);
  // A graph for a family of shapes to which those of these options belong, and what computes the
  // sizes of other members; or why there is none.
  struct Family {
    OpenGraph open;
    ValueSizes sizes;
  };
  std::variant<std::string, Family> family(const BindOptions& wanted, FamilySizes sizes,
                                           ThreadPool& pool);
  // bound() with the elements of all weights. Reads the model again if some were released.
  Graph bound_with_weights(const BindOptions& wanted, ThreadPool& pool);
  // Describes the model; `bound` is a result of bound(), or null for the graph as it was loaded.
  ModelDescription describe(const Graph* bound = nullptr) const;
  DeclaredShapes declared_shapes(const BindOptions& wanted) const;
  const ModelStructure& structure();
  // The ingredients of the model's cache file, and those of a plan for these options. `backends`
  // are those that the user named.
  std::vector<cache::Ingredient> ingredients();
  tuning::Binding binding(const BindOptions& wanted, const std::vector<std::string>& backends,
                          int threads);

  // The files from which the model was read; empty before.
  std::vector<StampedFile> files() const;
  // Throws DeviceFailed if a file with mapped weights has changed.
  void check_weights() const;
  // The digests of the weights that are known.
  std::set<Digest> weight_digests() const;
  // Counts packed bytes. If there are enough of them, returns the resident pages of mapped weights
  // to the system, which loads them again when they are read.
  void note_packed(int64_t bytes);
  // Releases weights that `built` has packed; see release_packed_constants(). With
  // `returns_memory`, returns freed memory and resident pages to the system if they are many.
  void release_packed(BuiltPlan& built, const BuiltPlan* other = nullptr,
                      bool returns_memory = false);

  // Calls `work` with the loaded model, which no other thread uses meanwhile. Messages to `log` are
  // passed on afterwards, because the callback of the user may call the model.
  void with_loaded(const std::function<void(LoadedModel& loaded, const Log& log)>& work);

 private:
  LoadedModel read_source(ThreadPool& pool) const;
  const ModelStructure& locked_structure();  // requires a locked mutex

  ModelSource source_;
  CompileOptions options_;
  int load_threads_;
  std::shared_ptr<const ops::Registry> registry_;
  bool is_nested_ = false;
  const Log& log_;
  std::atomic<int> times_read_ = 0;
  mutable LongHeldMutex mutex_;  // protects the members below
  LoadedModel loaded_;
  std::optional<ModelStructure> structure_;  // computed on first use, then never changed
  int64_t packed_bytes_ = 0;                 // since pages were last returned to the system
};

}  // namespace tessera
