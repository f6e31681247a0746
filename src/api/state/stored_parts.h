// The stored parts of one model: what is read from files and written to them for it. These are the
// caches with plans and prices, the bundle, packed weights, compiled kernels, and the index of the
// model. The store of all models (store/store.h) searches plans and writes their files; this says
// what belongs to the model.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/state/model_graph.h"
#include "assemble/stored_kernels.h"
#include "backend/catalog/backend_set.h"
#include "backend/packs.h"
#include "base/errors/log.h"
#include "base/threads/fork.h"
#include "base/threads/parallel.h"
#include "cache/cache_file.h"
#include "cache/pack_file.h"
#include "store/cache_record.h"
#include "store/plan_request.h"
#include "store/stored_blobs.h"
#include "store/stored_model.h"
#include "tessera/tessera.h"

namespace tessera {

// Thread-safe, except for what loading calls. A function that needs the loaded model locks it
// before this object.
class StoredParts {
 public:
  // `model` and `log` must outlive this. `blobs` are those of the plug-ins in `set`, which get new
  // ones through `services`.
  StoredParts(ModelGraph& model, std::shared_ptr<BackendSet> set,
              std::shared_ptr<StoredBlobs> blobs, std::shared_ptr<HostServices> services,
              const Log& log);
  StoredParts(const StoredParts&) = delete;
  StoredParts& operator=(const StoredParts&) = delete;

  // Loading calls these. open() takes from the index at `location`, and from the bundle of the
  // model, what this user may use: the loaded model, plans, packs and kernels. Returns whether the
  // loaded model was among these, so that it need not be read. Otherwise, keep_at() says where
  // later processes are to find the parts of the model that was read.
  bool open(const IndexLocation& location);
  void keep_at(IndexLocation location);

  // Packed weights, which all plans of the model share.
  PackStore& packs() { return packs_; }
  // Releases packs that no plan uses of constants that passes have made for some shapes. Those of
  // the model's own weights stay for other plans: there are only so many of them.
  void drop_packs_of_shapes();

  // Opens the stored packs and kernels of the model.
  void open_packs(ThreadPool& pool);
  // Stores packs, compiled kernels and the index of the model, unless they are stored already.
  void keep(const BuiltPlan& built, int threads, const KernelLatitude& latitude);
  // Stores the blobs that plug-ins have put, for later processes and other models.
  void keep_blobs();
  // Null if no stored kernels were opened.
  FindStoredKernel kernel_finder() const;

  // The request to the store for a plan. `more`: cache files of this call only.
  PlanRequest request(const BindOptions& wanted, const std::vector<LoadedCache>& more,
                      int threads) const;

  // The record of the newest bind with optimize; null if there is none.
  std::shared_ptr<const CacheRecord> newest_record() const;
  // Those of its nested graphs.
  CacheRecords newest_nested_records() const;
  // Does nothing if `record` is null.
  void note_record(std::shared_ptr<const CacheRecord> record, CacheRecords nested);
  // What the bundle, the files that the user loaded, and `more` know of a nested graph, whose cache
  // files have these ingredients.
  std::vector<LoadedCache> nested_caches(std::span<const cache::Ingredient> ingredients,
                                         const std::vector<LoadedCache>& more) const;
  // The files that the user loaded.
  std::vector<LoadedCache> loaded_caches() const;
  void set_loaded_caches(std::vector<LoadedCache> caches);
  // A file that is loaded again is replaced by its present contents, and keeps its place.
  void add_cache(LoadedCache given);
  // Takes packs and kernels from a loaded file if this user made them; otherwise warns in the log.
  void take_packs(const LoadedCache& given);
  // Sections for save_cache(): compiled kernels of a backend, or of all if it is "", and optionally
  // their packs.
  std::vector<cache::Section> sections(const std::string& backend, bool with_packs);

  // For a bundle. Whether the model keeps packs, kernels and an index; the index, with the names of
  // `files` in the bundle; the packs, which are valid until the model is bound again.
  bool are_kept() const { return stored_model_ != nullptr; }
  std::string encode_index(std::span<const NamedFile> files);
  std::vector<cache::StoredPack> packs_to_bundle();

 private:
  bool take_index(const IndexLocation& location);
  bool open_bundle(const IndexLocation& location, bool takes_index);
  void take(FoundModel found);
  void use_bundled_packs();

  ModelGraph& model_;
  std::shared_ptr<BackendSet> set_;
  std::shared_ptr<StoredBlobs> blobs_;
  std::shared_ptr<HostServices> services_;
  const Log& log_;
  PackStore packs_;
  std::shared_ptr<const BundledCache> bundled_cache_;  // of the bundle; may be null
  std::shared_ptr<cache::PackFile> bundled_packs_;     // the same
  mutable LongHeldMutex mutex_;                        // protects the members below
  std::unique_ptr<StoredModel> stored_model_;  // set by loading; null if the model has no index
  int times_read_ = 0;                         // of the model when its index was last compared
  std::vector<LoadedCache> loaded_caches_;
  std::shared_ptr<const CacheRecord> newest_record_;
  CacheRecords newest_nested_records_;
};

}  // namespace tessera
