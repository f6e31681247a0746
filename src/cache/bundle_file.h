// The byte format of bundles: files that hold the files of a model and the artifacts of binds, as
// parts; docs/formats/bundle.md documents every byte. A bundle authenticates nothing itself: its
// caches, index and packs carry the codes by which origin.h judges them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/stored_fields.h"
#include "cache/stored_file.h"

namespace tessera::cache {

// The kinds of parts, in the order in which a bundle has them.
enum class PartKind : uint8_t {
  Model,         // an ONNX file; exactly one
  ExternalData,  // a file of weights, with the name by which the model refers to it
  Caches,        // a cache file (cache_file.h); at most one
  Index,         // the loaded model (store/model_index.h); at most one
  Packs,         // packed weights, compiled kernels and blobs (pack_file.h); at most one
};

// "model", "external data", ...
std::string_view name(PartKind kind);

struct BundlePart {
  PartKind kind = PartKind::Model;
  std::string name;
  uint64_t offset = 0;  // in the file; a multiple of the size of a page
  uint64_t bytes = 0;
  Checksum checksum = {};
};

struct BundleTable {
  std::string version;  // of the Tessera that wrote it
  std::vector<BundlePart> parts;

  // nullptr if there is none.
  const BundlePart* find(PartKind kind) const;
};

// Whether the bytes begin like a bundle, valid or not.
bool is_bundle(std::span<const char> bytes);

// Reads header and table, of which every byte is checked; the parts are only checked to be inside.
// Throws Corrupt, naming `location`, and Unsupported for another version of the format. Allocates
// no more than the size of the table.
BundleTable read_bundle_table(std::span<const char> bytes, const std::string& location);

// The bytes of a part. Throws Corrupt if `is_checked` and they are not as they were written.
std::string_view part_bytes(std::span<const char> bundle, const BundlePart& part,
                            const std::string& location, bool is_checked = true);

// Throws Corrupt unless all parts are as they were written, with zeros between them.
void check_parts(std::span<const char> bundle, const BundleTable& table,
                 const std::string& location);

// A part that is to be written: views of its bytes, in order.
struct NewPart {
  PartKind kind = PartKind::Model;
  std::string name;
  std::vector<std::string_view> pieces;
};

// Writes a bundle piece by piece, so that memory need not hold it. `parts` are in the order of
// their kinds. `check_wanted` is called before each piece; if it throws, the file is as it was.
ReplacedFile write_bundle(const std::filesystem::path& file, const std::string& version,
                          std::span<const NewPart> parts,
                          const std::function<void()>& check_wanted);

}  // namespace tessera::cache
