// What of a model is kept in the user's folder beside plans and prices, so that the next process
// need not read, rewrite and pack it again: the index of the model (model_index.h), its packs and
// its compiled kernels (pack_shelf.h). All of it is a shortcut: where anything is missing, damaged,
// or not as it was, the model's file is read as if there were none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assemble/stored_kernels.h"
#include "backend/backend_set.h"
#include "backend/packs.h"
#include "base/log.h"
#include "cache/pack_file.h"
#include "compile/compile.h"
#include "store/model_index.h"
#include "store/persistent_packs.h"

namespace tessera {

// Where the index of a model is kept, and all that it depends on but the model's files.
struct IndexLocation {
  std::filesystem::path folder;  // the user's
  std::filesystem::path file;
  std::vector<cache::Ingredient> ingredients;
  int64_t started_ns = 0;  // when loading began
  // It is kept only of a model whose files were read under leases.
  bool is_strict = false;
};

// For a model in a file; `version` is Tessera's. nullopt without a folder (""), and where it cannot
// be seen which code and which file it is.
std::optional<IndexLocation> index_location(const std::filesystem::path& folder,
                                            const std::filesystem::path& model,
                                            const std::string& version,
                                            const CompileOptions& options, bool strict_stamps);

class StoredModel;

// A model as an earlier process loaded it.
struct FoundModel {
  LoadedModel model;
  ModelStructure structure;
  std::unique_ptr<StoredModel> stored;
};

// nullopt where it must be read. Makes nothing.
std::optional<FoundModel> find_model(const IndexLocation& place, BackendSet& set, const Log& log);

// Of one model that is loaded. Not safe from several threads at once.
class StoredModel {
 public:
  // Of one that was read, with these warnings.
  StoredModel(IndexLocation place, std::vector<std::string> warnings);
  // Of one that was found.
  StoredModel(IndexLocation place, ModelIndex& index);

  // It was read though there is an index: weights were needed that it has by digest alone. keep()
  // writes another, with the places of those that are in memory by then.
  void note_read_again() { has_index_ = false; }

  // Opens what is stored of the weights of `graph`, once, and gives weights back that are stored as
  // they are. Reads all weights, on the threads of `pool`, where their digest is not known yet. The
  // shelf lives as long as this.
  PersistentPacks& open_packs(Graph& graph, ThreadPool& pool, const Log& log);
  // null before that.
  PersistentPacks* shelf() const { return shelf_.get(); }
  // Packs or kernels that somebody handed over. Gives why they are not used, or "".
  std::string add_packs(const std::string& bytes, const std::filesystem::path& file);

  // Keeps what is not kept yet, once the shelf is open: what belongs on it, and the index. Where it
  // cannot be, nothing is lost but time.
  void keep(LoadedModel& model, const ModelStructure& structure, const PackStore& packs,
            const std::vector<SavableKernel>& kernels, const BackendSet& set);

 private:
  IndexLocation place_;
  bool has_index_ = false;          // as it would be written now
  std::vector<StampedFile> sound_;  // files of packs that were right under these stamps
  std::vector<RememberedPlugin> plugins_;
  std::vector<std::string> warnings_;
  std::string weights_;                                  // names all of them; "": not known yet
  std::vector<std::shared_ptr<cache::PackFile>> given_;  // before the shelf is open
  std::unique_ptr<PersistentPacks> shelf_;
};

}  // namespace tessera
