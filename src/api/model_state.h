// What stands behind the public handle Model.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/bind_cache.h"
#include "backend/packs.h"
#include "base/log.h"
#include "base/parallel.h"
#include "compile/compile.h"
#include "ops/registry.h"
#include "tessera/tessera.h"
#include "tune/group_text.h"

namespace tessera {

struct Model::State : std::enable_shared_from_this<Model::State> {
  explicit State(Log::Callback told) : log(std::move(told)) {}

  std::filesystem::path file;
  CompileOptions compile_options;
  int load_threads = 0;
  Backends backends;
  std::shared_ptr<const ops::Registry> registry;
  Log log;
  PackStore packs;
  std::vector<StageRecord> stages;
  mutable std::mutex mutex;  // of the next members
  LoadedModel loaded;        // its weights come and go
  std::optional<tuning::StructureText>
      structure;             // of the graph that was loaded, once it was needed
  int64_t packed_bytes = 0;  // since pages were given back
  std::vector<GivenCache> given_caches;
  std::shared_ptr<const CacheRecord> newest_cache;  // of the binds with optimize

  Graph bound_graph(const BindOptions& wanted, ThreadPool& pool) const;
  // Reads the weights again that were let go.
  void restore();
  // Gives back the pages of the file's weights that were read, which come again when needed, once
  // enough was packed for that.
  void note_packed(int64_t bytes);
  const tuning::StructureText& loaded_structure();  // needs the mutex
  std::vector<cache::Ingredient> ingredients(
      const BindOptions& wanted, const std::vector<std::shared_ptr<const Plugin>>& plugins,
      int threads);

  CacheQuestion cache_question(const BindOptions& wanted, const std::vector<GivenCache>& more,
                               const std::vector<std::shared_ptr<const Plugin>>& plugins,
                               int threads);

  // The prices of the user's other models.
  void read_cost_store(const std::vector<std::shared_ptr<const Plugin>>& plugins);
  void add_to_cost_store(const std::vector<std::shared_ptr<const Plugin>>& plugins, double seconds,
                         const tuning::CostTable& costs);

  // Model::bind(), with files that count for this bind alone.
  Executor bind(const BindOptions& wanted, const std::vector<GivenCache>& more);
};

}  // namespace tessera
