// Keeps parts of a model in the user's folder, in addition to plans and prices, so that the next
// process need not read, rewrite and pack the model again: the index of the model (model_index.h),
// its packs and its compiled kernels (persistent_packs.h). All of it is optional: if anything is
// missing, damaged or changed, the model's file is read as if there were none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assemble/stored_kernels.h"
#include "backend/catalog/backend_set.h"
#include "backend/packs.h"
#include "base/errors/log.h"
#include "cache/cache_file.h"
#include "cache/pack_file.h"
#include "compile/compile.h"
#include "store/model_index.h"
#include "store/persistent_packs.h"

namespace tessera {

// The location of a model's index, and all ingredients of the index except the model's files.
struct IndexLocation {
  std::filesystem::path folder;  // the user's
  std::filesystem::path file;    // "": no index, and nothing else, is kept
  std::vector<cache::Ingredient> ingredients;
  int64_t started_ns = 0;  // when loading began
  // If set, the index is written only if the model's files were read under leases.
  bool is_strict = false;
};

// For a model in a file; `version` is that of Tessera. nullopt if `folder` is "", or if the running
// code or the model's file cannot be identified.
std::optional<IndexLocation> index_location(const std::filesystem::path& folder,
                                            const std::filesystem::path& model,
                                            const std::string& version,
                                            const CompileOptions& options, bool strict_stamps);

class StoredModel;

// A model that was restored from the index of an earlier process.
struct FoundModel {
  LoadedModel model;
  ModelStructure structure;
  std::unique_ptr<StoredModel> stored;
};

// nullopt if the model must be read from its file. Creates no files.
std::optional<FoundModel> find_model(const IndexLocation& location, BackendSet& set,
                                     const Log& log);

// A model that was restored from its index in a bundle.
FoundModel found_in_bundle(ModelIndex index, IndexLocation location, BackendSet& set,
                           const Log& log);

// The stored parts of one loaded model. Not thread-safe.
class StoredModel {
 public:
  // For a model that was read from its file, with these warnings.
  StoredModel(IndexLocation location, std::vector<std::string> warnings);
  // For a model that was restored from its index.
  StoredModel(IndexLocation location, ModelIndex& index);

  // Adds the packs of the bundle that the model comes from, before open_packs(). `file` is the
  // bundle, if it is a file.
  void set_bundled(std::shared_ptr<cache::PackFile> packs, std::optional<StampedFile> file) {
    bundled_ = std::move(packs);
    bundle_ = std::move(file);
  }
  // Whether all packs in this file were verified, according to the index.
  bool is_sound(const StampedFile& file) const;

  // The index of the model, for a bundle; see encode_model_index().
  std::string encode_index(const LoadedModel& model, const ModelStructure& structure,
                           const BackendSet& set, std::span<const cache::Ingredient> ingredients,
                           std::span<const NamedFile> files) const;

  // Must be called if the model was read although it has an index, because a weight was needed of
  // which the index has only the digest. keep() then writes a new index, with the locations of the
  // weights that are in memory by then.
  void note_read_again() { has_index_ = false; }

  // At the first call, opens the packs for the weights of `graph` and restores weights that are
  // stored unpacked. Reads all weights, on the threads of `pool`, if their digests are not known
  // yet. The result lives as long as this object.
  PersistentPacks& open_packs(Graph& graph, ThreadPool& pool, const Log& log);
  // nullptr before open_packs().
  PersistentPacks* persistent_packs() const { return persistent_packs_.get(); }
  // Adds packs or kernels that the user loaded from a section of `file`, in place of those that the
  // user loaded from there before. Returns why they are not used, or "".
  std::string add_packs(const cache::Section& section, const std::filesystem::path& file);

  // Stores packs, kernels and the index if they are not stored yet; does nothing before
  // open_packs(). If that fails, the next process only has to do the work again.
  void keep(LoadedModel& model, const ModelStructure& structure, const PackStore& packs,
            const std::vector<SavableKernel>& kernels, const BackendSet& set);

 private:
  IndexLocation location_;
  bool has_index_ = false;          // equal to what keep() would write
  std::vector<StampedFile> sound_;  // pack files that were verified, with the stamps of then
  std::vector<RememberedPlugin> plugins_;
  std::vector<std::string> warnings_;
  std::string weights_;                       // identifies all weights; "": not known yet
  std::vector<GivenPacks> given_;             // before open_packs()
  std::shared_ptr<cache::PackFile> bundled_;  // the same
  std::optional<StampedFile> bundle_;
  std::unique_ptr<PersistentPacks> persistent_packs_;
};

}  // namespace tessera
