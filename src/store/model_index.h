// What load() came to, kept for the next process: docs/formats/model_index.md has its bytes. Large
// weights are not in it: it has their digests, by which packs are found, and the places of those
// that lie in files beside the model.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/library_version.h"
#include "base/file_stamp.h"
#include "cache/fingerprint.h"
#include "cache/user_key.h"
#include "compile/compile.h"

namespace tessera {

// What fingerprints need of a loaded graph; see tuning::structure_text().
struct ModelStructure {
  std::string digest;              // of the text
  std::vector<std::string> names;  // by value
};

struct ModelIndex {
  std::vector<StampedFile> files;         // that the model was read from
  std::vector<RememberedPlugin> plugins;  // that could be used then
  std::vector<StampedFile> packs;         // files of packs that were found to be right
  std::vector<std::string> warnings;      // of load()
  std::string weights;                    // digest of all weights
  ModelStructure structure;
  LoadedModel model;
};

// The weights that an index has by digest alone.
bool is_large_weight(const Value& value);

struct FoundIndex {
  std::optional<ModelIndex> index;
  std::string reason;  // why there is none
};

// The index in `file`, where it was made with these ingredients by this user and none of the
// model's files has changed since. Weights in files beside the model are mapped; the other large
// ones have no elements.
FoundIndex read_model_index(const std::filesystem::path& file,
                            std::span<const cache::Ingredient> ingredients,
                            const cache::UserKey& key);

// Gives why it could not be written, or "". Graphs with sparse constants have no index.
std::string write_model_index(const std::filesystem::path& file,
                              std::span<const cache::Ingredient> ingredients,
                              const cache::UserKey& key, const ModelIndex& index);

}  // namespace tessera
