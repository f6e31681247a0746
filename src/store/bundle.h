// A bundle that is open for reading (cache/bundle_file.h), and the parts of it that a model uses.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/catalog/backend_set.h"
#include "base/errors/log.h"
#include "base/files/file_stamp.h"
#include "cache/bundle_file.h"
#include "cache/pack_file.h"
#include "cache/user_key.h"
#include "import/onnx/import.h"
#include "store/plan_request.h"
#include "store/stored_model.h"

namespace tessera {

// 16 hex digits that change with every source that decides the content of an index. The build
// generates them (cmake/TesseraKernelRevision.cmake).
namespace loading {
const char* kernel_revision();
}

// Header and table are verified at once, each part when it is read. Thread-safe.
class Bundle {
 public:
  // Whether `file` begins like a bundle; false if it cannot be read.
  static bool is_one(const std::filesystem::path& file);
  // nullptr if `file` cannot be read or does not begin like a bundle. Throws InvalidArgument if it
  // cannot be mapped, Corrupt and Unsupported as read_bundle_table() does.
  static std::shared_ptr<const Bundle> open(const std::filesystem::path& file);
  // Same as open(), for bytes, which are moved from if they are a bundle. Errors call them `name`.
  static std::shared_ptr<const Bundle> over(std::string& bytes, const std::string& name);

  // "bundle 'a.bundle'"
  const std::string& location() const { return location_; }
  const cache::BundleTable& table() const { return table_; }
  std::span<const char> bytes() const { return {start_of_chars(), static_cast<size_t>(bytes_)}; }
  // The file, with an absolute path; nullopt for memory.
  const std::optional<StampedFile>& file() const { return file_; }
  // Why others could change the file while it is used, so that nothing in it may be executed or
  // mapped as packs; "" if they cannot.
  const std::string& changeable() const { return changeable_; }

  // The bytes of the model, whose checksum was not compared.
  std::string_view model_bytes() const;

  // Reads the model and its external data, whose checksums are compared. The weights in files are
  // mapped like those of other models, so check_unchanged() sees changes of the bundle. Throws as
  // import_onnx_bytes() does, and Corrupt.
  ImportedModel import(const ops::Registry& registry, const Log& log,
                       const ImportOptions& options) const;

  // The caches, whose sections have their origin by `key`; null if there are none. If this Tessera
  // cannot read their format, they have no ingredients and no plans. Throws Corrupt.
  std::shared_ptr<const BundledCache> read_caches(const cache::UserKey* key) const;
  // The packs, made on this processor by the user with this key. If `is_verified`, their bytes were
  // verified before.
  cache::PackFile::Opened open_packs(const cache::UserKey& key, bool is_verified) const;
  // The model, if its index was written by the user with this key and has these ingredients.
  FoundIndex read_index(std::span<const cache::Ingredient> ingredients,
                        const cache::UserKey& key) const;

 private:
  Bundle() = default;
  const char* start_of_chars() const { return reinterpret_cast<const char*>(start_.get()); }
  // A copy of the part, if there is one: nobody can change it between a check and its use.
  std::optional<std::string> copy_of(cache::PartKind kind) const;
  void note_files(ImportedModel& model) const;

  std::string location_;
  std::shared_ptr<const std::byte> start_;
  int64_t bytes_ = 0;
  std::optional<StampedFile> file_;
  std::optional<WeightMapping> mapping_;  // of a file
  std::string changeable_;
  cache::BundleTable table_;
};

// The ingredients of an index in a bundle. `core` identifies the code that rewrote the model.
std::vector<cache::Ingredient> bundled_index_ingredients(const std::string& version,
                                                         const std::string& core,
                                                         const CompileOptions& options);

}  // namespace tessera
