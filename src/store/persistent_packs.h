// Keeps the packs of one model's weights, and compiled kernels, in the user's folder
// (cache/pack_file.h). All of it is optional: missing or damaged data is made again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assemble/stored_kernels.h"
#include "backend/packs.h"
#include "base/errors/log.h"
#include "base/files/file_stamp.h"
#include "base/threads/fork.h"
#include "cache/pack_file.h"
#include "cache/user_key.h"
#include "compile/compile.h"

namespace tessera {

// The length of file names, in hexadecimal digits.
inline constexpr size_t kNameDigits = 16;

// The first hexadecimal digits of the text's digest, as a file name.
std::string short_digest(const std::string& text);

// Packs or kernels that the user loaded.
struct GivenPacks {
  std::string source;  // the file, and which of its sections
  Digest digest = {};  // of the bytes
  std::shared_ptr<cache::PackFile> file;
};

// Adds packs. Replaces packs of the same source, or with the same bytes, because users may load a
// file again and again.
void put(std::vector<GivenPacks>& all, GivenPacks given);

// find_pack(), find_kernel() and add() are thread-safe; the other functions are not.
class PersistentPacks {
 public:
  // Opens the stored files. `folder` is the user's; `weights` identifies all weights of the model;
  // files with stamps in `sound` were verified before.
  PersistentPacks(std::filesystem::path folder, const std::string& weights,
                  std::vector<StampedFile> sound, const Log& log);

  // Returns a stored pack; nullptr if there is none.
  std::shared_ptr<const void> find_pack(const PackKey& key, int64_t bytes) const;
  // Returns a kernel that this or another model stored, by a key of StoredKernels.
  std::optional<StoredKernel> find_kernel(const std::string& key);
  // Adds packs or kernels that the user loaded. They are searched after the user's own files.
  void add(GivenPacks given);
  // Adds the packs of the bundle that the model comes from, which need not be stored elsewhere.
  // `file` is the bundle, if it is a file.
  void set_bundled(std::shared_ptr<cache::PackFile> packs, std::optional<StampedFile> file);
  // Restores the elements of weights that are stored unpacked.
  void restore_weights(Graph& graph) const;

  // Stores missing data: packs, weights of `model` that are in memory unpacked and not mapped from
  // a file, and kernels. If that fails, the next process only has to do the work again.
  void keep(LoadedModel& model, const PackStore& packs, const std::vector<SavableKernel>& kernels);
  // The stored files that are not damaged.
  std::vector<StampedFile> sound_files() const;

  // The packs that keep() stores, encoded as a file to distribute: those of one backend or, if
  // `backend` is "", of all backends. nullopt without a key, "" if there are none.
  std::optional<std::string> encode_packs(LoadedModel& model, const PackStore& packs,
                                          const std::string& backend);
  std::optional<std::string> encode_kernels(const std::string& backend) const;

  // The data for a bundle: the packs that keep() stores, and the kernels and weights that were
  // found or stored. They are valid as long as this object, `model` and `packs` are not changed.
  std::vector<cache::StoredPack> packs_to_bundle(LoadedModel& model, const PackStore& packs) const;

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
  [[noreturn]] void fail_damaged_bundle() const;
  void write_file(const std::filesystem::path& path, std::span<const cache::StoredPack> packs,
                  cache::Durability durability);
  void add_file(const std::filesystem::path& path, std::shared_ptr<cache::PackFile> file);
  void drop_damaged();

  std::filesystem::path folder_;
  std::filesystem::path packs_folder_;
  std::vector<StampedFile> sound_;
  mutable LongHeldMutex mutex_;        // guards the members below
  std::optional<cache::UserKey> key_;  // none before the first keep() of a user
  std::vector<OpenFile> files_;
  std::vector<GivenPacks> given_;
  std::shared_ptr<cache::PackFile> bundled_;  // may be null
  std::optional<StampedFile> bundle_;
};

}  // namespace tessera
