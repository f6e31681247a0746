// What of a model is kept in the user's folder beside plans and prices, so that the next process
// need not read, rewrite and pack it again: the index of the model (model_index.h) and its packs
// (cache/pack_file.h), among which kernels that a library gives as bytes count. All of it is a
// shortcut: where anything is missing, damaged, or not as it was, the model's file is read as if
// there were none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "backend/backend_set.h"
#include "backend/packs.h"
#include "base/log.h"
#include "cache/pack_file.h"
#include "cache/user_key.h"
#include "compile/compile.h"
#include "compile/stored_kernels.h"
#include "store/model_index.h"

namespace tessera {

// Of one model. Not safe from several threads at once, but for find_pack().
class StoredModel {
 public:
  // `folder` is the user's, "" for none; `version` is Tessera's. With `strict_stamps` an index is
  // kept only of a model whose files were read under leases.
  StoredModel(std::filesystem::path folder, const std::filesystem::path& model,
              const std::string& version, const CompileOptions& options, bool strict_stamps);

  // The model as an earlier process loaded it; nullopt where it must be read. Makes nothing.
  std::optional<LoadedModel> load(ModelStructure& structure, BackendSet& set, const Log& log);

  // Where the model was read: what load() will give the next time, as far as bind() keeps it.
  void note_loaded(std::vector<std::string> warnings) { warnings_ = std::move(warnings); }

  // Where the model was read though there is an index: weights were needed that it has by digest
  // alone. keep() writes another, with the places of those that are in memory by then.
  void note_read_again() { has_index_ = false; }

  // Opens the packs that are stored of the weights of `graph`, once, and gives weights back that
  // are stored as they are. Reads all weights, on the threads of `pool`, where their digest is not
  // known yet.
  void open_packs(Graph& graph, ThreadPool& pool, const Log& log);
  // One that was stored; null where there is none. From any thread, once open_packs() is through.
  std::shared_ptr<const void> find_pack(const PackKey& key, int64_t bytes) const;
  // A kernel that was stored, by this model or any other, under a key of StoredKernels. As
  // find_pack().
  std::optional<StoredKernel> find_kernel(const std::string& key);
  // Packs or kernels that somebody handed over; they are looked at behind the user's own.
  // Gives why they are not used, or "".
  std::string add_packs(const std::string& bytes, const std::filesystem::path& file);

  // Keeps what is not kept yet: packs, weights of `model` that are in memory as they are, kernels,
  // and the index. Where it cannot be, nothing is lost but time.
  void keep(LoadedModel& model, const ModelStructure& structure, const PackStore& packs,
            const std::vector<SavableKernel>& kernels, const BackendSet& set);

  // What keep() stores, for a file to ship: packs, weights as they are among them, or kernels; of
  // one backend, or, where that is "", of all. None without a key, "" where there are none.
  std::optional<std::string> encode_packs(LoadedModel& model, const PackStore& packs,
                                          const std::string& backend);
  std::optional<std::string> encode_kernels(const std::string& backend);

 private:
  struct OpenFile {
    std::filesystem::path path;
    std::shared_ptr<cache::PackFile> file;
  };
  // A saved kernel and its key.
  struct NamedBytes {
    std::string key;
    std::string bytes;
  };
  std::filesystem::path packs_folder() const { return folder_ / "packs" / weights_; }
  std::filesystem::path kernel_folder(const std::string& key) const;
  std::shared_ptr<cache::PackFile> open_file(const std::filesystem::path& path, const Log* log);
  std::vector<cache::StoredPack> packs_to_store(LoadedModel& model, const PackStore& packs,
                                                bool with_stored) const;
  std::vector<NamedBytes> kernels_to_store(const std::vector<SavableKernel>& kernels) const;
  bool is_stored(const std::string& key) const;
  void write_file(const std::filesystem::path& path, std::span<const cache::StoredPack> packs);
  void add_file(const std::filesystem::path& path, std::shared_ptr<cache::PackFile> file);
  void drop_damaged();
  void settle_weights(Graph& graph, ThreadPool& pool);
  bool keep_packs(LoadedModel& model, const PackStore& packs,
                  const std::vector<SavableKernel>& kernels);

  std::filesystem::path folder_;
  std::filesystem::path model_;  // canonical
  std::filesystem::path index_;  // its file
  std::vector<cache::Ingredient> ingredients_;
  int64_t started_ns_ = 0;
  bool strict_stamps_ = false;
  std::optional<cache::UserKey> key_;
  bool has_index_ = false;  // as it would be written now
  bool are_packs_open_ = false;
  std::vector<StampedFile> trusted_;  // files of packs that were right under these stamps
  std::vector<RememberedPlugin> plugins_;
  std::vector<std::string> warnings_;
  std::string weights_;
  mutable std::shared_mutex files_mutex_;  // of the next two, which find_pack() reads
  std::vector<OpenFile> files_;
  std::vector<std::shared_ptr<cache::PackFile>> given_;
};

}  // namespace tessera
