// The packs of one model's weights, and compiled kernels, that the user's folder keeps
// (cache/pack_file.h). All of it is a shortcut: what is missing or damaged is made anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "assemble/stored_kernels.h"
#include "backend/packs.h"
#include "base/file_stamp.h"
#include "base/log.h"
#include "cache/pack_file.h"
#include "cache/user_key.h"
#include "compile/compile.h"

namespace tessera {

// Of names of files.
inline constexpr size_t kNameDigits = 16;

// Hex digits of the text's digest, as the name of a file.
std::string short_digest(const std::string& text);

// find_pack(), find_kernel() and add() are safe from any thread, the others not.
class PersistentPacks {
 public:
  // Opens what there is. `folder` is the user's, `weights` names all weights of the model; files
  // that have stamps in `sound` were found to be right before.
  PersistentPacks(std::filesystem::path folder, const std::string& weights,
                  std::vector<StampedFile> sound, const Log& log);

  // One that was stored; null where there is none.
  std::shared_ptr<const void> find_pack(const PackKey& key, int64_t bytes) const;
  // A kernel that was stored, by this model or any other, under a key of StoredKernels.
  std::optional<StoredKernel> find_kernel(const std::string& key);
  // Packs or kernels that somebody handed over; they are looked at behind the user's own.
  void add(std::shared_ptr<cache::PackFile> given);
  // Gives weights back that are stored as they are.
  void restore_weights(Graph& graph) const;

  // Keeps what is not kept yet: packs, weights of `model` that are in memory as they are, and
  // kernels. Where it cannot be, nothing is lost but time.
  void keep(LoadedModel& model, const PackStore& packs, const std::vector<SavableKernel>& kernels);
  // Those that are right.
  std::vector<StampedFile> sound_files() const;

  // What keep() stores, for a file to ship: of one backend, or, where that is "", of all. nullopt
  // without a key, "" where there are none.
  std::optional<std::string> encode_packs(LoadedModel& model, const PackStore& packs,
                                          const std::string& backend);
  std::optional<std::string> encode_kernels(const std::string& backend) const;

 private:
  struct OpenFile {
    std::filesystem::path path;
    std::shared_ptr<cache::PackFile> file;
  };
  std::filesystem::path kernel_folder(const std::string& key) const;
  std::shared_ptr<cache::PackFile> open_file(const std::filesystem::path& path, const Log* log);
  std::vector<cache::StoredPack> packs_to_store(LoadedModel& model, const PackStore& packs,
                                                bool with_stored) const;
  bool keep_kernels(const std::vector<SavableKernel>& kernels);
  bool has_key() const;
  bool has_key_or_makes_one();
  bool is_stored(const std::string& key) const;
  void write_file(const std::filesystem::path& path, std::span<const cache::StoredPack> packs);
  void add_file(const std::filesystem::path& path, std::shared_ptr<cache::PackFile> file);
  void drop_damaged();

  std::filesystem::path folder_;
  std::filesystem::path packs_folder_;
  std::vector<StampedFile> sound_;
  mutable std::shared_mutex mutex_;    // of the next members
  std::optional<cache::UserKey> key_;  // none before the first keep() of a user
  std::vector<OpenFile> files_;
  std::vector<std::shared_ptr<cache::PackFile>> given_;
};

}  // namespace tessera
