// Descriptions of bundles: single files that hold a model with its weights, plans, packed weights
// and compiled kernels. Model::save_bundle() writes them, and load() reads them like models.
// docs/formats/bundle.md specifies every byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tessera/cache.h"

namespace tessera {

// One file inside a bundle.
struct BundlePart {
  // "model" (an ONNX file), "external data" (a file of weights beside it), "caches" (plans and
  // prices), "index" (the loaded and rewritten model) or "packs" (packed weights and compiled
  // kernels).
  std::string kind;
  std::string name;  // of a model or of external data: its file; otherwise ""
  int64_t bytes = 0;
};

struct BundleDescription {
  std::filesystem::path file;
  int64_t bytes = 0;
  std::string version;  // of the Tessera that wrote it
  std::string model;    // the name of the model's file
  // The machine and the model that its plans are for; empty if it has no plans.
  std::vector<CacheIngredient> ingredients;
  // The origin of its plans, packs and kernels: "found by this user", or "found by somebody else",
  // whose packs and kernels are not used; "" if it has no plans.
  std::string origin;
  std::string unused;  // why its plans are not used on this machine; "" if they may be
  std::vector<BundlePart> parts;
  std::vector<CacheSection> sections;  // plans and prices
};

// Whether the file begins like a bundle, valid or not. false if it cannot be read.
bool is_bundle(const std::filesystem::path& file);

// Verifies every byte of a bundle and describes its contents. Throws InvalidArgument if there is no
// such file or it is no bundle, Corrupt if it is damaged, Unsupported for another version of the
// format.
BundleDescription describe_bundle(const std::filesystem::path& file);

}  // namespace tessera
