// The result of load(), stored for the next process; docs/formats/model_index.md specifies the
// bytes. Large weights are not part of it: it has their digests, by which packs are found, and the
// locations of those weights that are in files beside the model.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/catalog/library_version.h"
#include "base/files/file_stamp.h"
#include "cache/fingerprint.h"
#include "cache/user_key.h"
#include "compile/compile.h"

namespace tessera {

// The properties of a loaded graph that fingerprints need; see tuning::structure_text().
struct ModelStructure {
  std::string digest;              // of the text
  std::vector<std::string> names;  // by value
};

struct ModelIndex {
  std::vector<StampedFile> files;         // from which the model was read
  std::vector<RememberedPlugin> plugins;  // that were usable when it was read
  std::vector<StampedFile> packs;         // pack files that were verified
  std::vector<std::string> warnings;      // of load()
  std::string weights;                    // digest of all weights
  ModelStructure structure;
  LoadedModel model;
};

// Whether an index has only the digest of this weight.
bool is_large_weight(const Value& value);

struct FoundIndex {
  std::optional<ModelIndex> index;
  std::string reason;  // why there is none
};

// Reads the index in `file` if this user made it with these ingredients and no file of the model
// has changed since. Weights in files beside the model are mapped; other large weights have no
// elements.
FoundIndex read_model_index(const std::filesystem::path& file,
                            std::span<const cache::Ingredient> ingredients,
                            const cache::UserKey& key);

// Returns the start of a file with the name and size in an index; null: there is no such file.
using FindFile = std::function<std::shared_ptr<const std::byte>(const StampedFile& file)>;

// Same as read_model_index(), for bytes of encode_model_index(). They belong to no file: stamps are
// not compared, and `find_file` finds the weights. The result has neither files nor mappings.
FoundIndex decode_model_index(const std::string& bytes,
                              std::span<const cache::Ingredient> ingredients,
                              const cache::UserKey& key, const std::string& location,
                              const FindFile& find_file);

// The bytes of an index that refers to weights in these files, which are some of index.files, by
// the names given here. "" if the graph cannot have an index.
struct NamedFile {
  std::filesystem::path path;  // of index.files
  std::string name;
  bool operator==(const NamedFile&) const = default;
};
std::string encode_model_index(std::span<const cache::Ingredient> ingredients,
                               const cache::UserKey& key, ModelIndex index,
                               std::span<const NamedFile> files);

// Returns why the index could not be written, or "". Graphs with sparse constants cannot have an
// index.
std::string write_model_index(const std::filesystem::path& file,
                              std::span<const cache::Ingredient> ingredients,
                              const cache::UserKey& key, const ModelIndex& index);

}  // namespace tessera
