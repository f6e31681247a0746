#include "store/bundle.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/files/file_handle.h"
#include "base/machine/processor.h"
#include "cache/origin.h"
#include "cache/stored_file.h"
#include "price/cost_sections.h"
#include "store/nested_cache.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kMagicBytes = 8;

}  // namespace

bool Bundle::is_one(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a pipe must not block.
  const FileHandle handle(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, kMagicBytes> bytes = {};
  // Bytes of a pipe would be lost: only a regular file has a stamp.
  return handle.is_open() && stamp_of(handle.get()) &&
         ::pread(handle.get(), bytes.data(), bytes.size(), 0) ==
             static_cast<ssize_t>(bytes.size()) &&
         cache::is_bundle(bytes);
}

std::shared_ptr<const Bundle> Bundle::open(const std::filesystem::path& file) {
  if (!is_one(file)) return nullptr;
  MappedWeights mapped = map_weights(file);
  const std::shared_ptr<Bundle> bundle(new Bundle());
  bundle->location_ = "bundle '" + file.string() + "'";
  bundle->start_ = std::move(mapped.start);
  bundle->bytes_ = mapped.mapping.bytes;
  bundle->file_ = {.path = std::filesystem::absolute(file), .stamp = mapped.mapping.stamp};
  bundle->mapping_ = std::move(mapped.mapping);
  bundle->mapping_->file = bundle->file_->path;
  bundle->changeable_ = bundle->mapping_->descriptor < 0
                            ? "it cannot be watched"
                            : cache::explain_changeable(bundle->mapping_->descriptor);
  bundle->table_ = cache::read_bundle_table(bundle->bytes(), bundle->location_);
  return bundle;
}

std::shared_ptr<const Bundle> Bundle::over(std::string& bytes, const std::string& name) {
  if (!cache::is_bundle(bytes)) return nullptr;
  const std::shared_ptr<Bundle> bundle(new Bundle());
  bundle->location_ = "bundle in " + name;
  bundle->bytes_ = static_cast<int64_t>(bytes.size());
  cache::read_bundle_table(bytes, bundle->location_);  // before the bytes are copied
  // Parts are aligned relative to the start.
  constexpr auto kAligned = std::align_val_t{kPageBytes};
  auto* const memory = static_cast<std::byte*>(::operator new(bytes.size(), kAligned));
  bundle->start_ = {memory, [](const std::byte* held) {
                      ::operator delete(const_cast<std::byte*>(held), kAligned);
                    }};
  std::memcpy(memory, bytes.data(), bytes.size());
  bytes = {};
  bundle->table_ = cache::read_bundle_table(bundle->bytes(), bundle->location_);
  return bundle;
}

std::optional<std::string> Bundle::copy_of(cache::PartKind kind) const {
  const cache::BundlePart* const part = table_.find(kind);
  if (part == nullptr) return std::nullopt;
  std::string copy(cache::part_bytes(bytes(), *part, location_, /*is_checked=*/false));
  if (cache::checksum_of(copy) != part->checksum) {
    cache::part_bytes(bytes(), *part, location_);  // throws
  }
  return copy;
}

std::string_view Bundle::model_bytes() const {
  return cache::part_bytes(bytes(), *table_.find(cache::PartKind::Model), location_,
                           /*is_checked=*/false);
}

// Notes the files and mappings of a model that is read from a bundle.
void Bundle::note_files(ImportedModel& model) const {
  model.files.clear();
  model.mappings.clear();
  model.external_files.clear();
  if (!file_) return;
  model.files = {*file_};
  model.lease = ReadLease::Unavailable;
  if (table_.find(cache::PartKind::ExternalData) == nullptr) return;
  model.mappings = {*mapping_};
  model.mappings.front().start = start_;
}

ImportedModel Bundle::import(const ops::Registry& registry, const Log& log,
                             const ImportOptions& options) const {
  EmbeddedFiles embedded;
  for (const cache::BundlePart& part : table_.parts) {
    if (part.kind != cache::PartKind::ExternalData) continue;
    const std::string_view data = cache::part_bytes(bytes(), part, location_);
    embedded[part.name] = std::as_bytes(std::span(data));
  }
  const cache::BundlePart& part = *table_.find(cache::PartKind::Model);
  const std::string_view model = cache::part_bytes(bytes(), part, location_);
  if (cache::is_bundle(model)) {
    throw Error(ErrorKind::Corrupt, location_,
                "expected an ONNX file as its model, found a bundle in it; make the bundle again");
  }
  ImportOptions from_here = options;
  from_here.embedded = &embedded;
  from_here.embedded_owner = start_;
  ImportedModel imported =
      import_onnx_bytes(model, "", registry, log, "'" + part.name + "' in " + location_, from_here);
  note_files(imported);
  return imported;
}

std::shared_ptr<const BundledCache> Bundle::read_caches(const cache::UserKey* key) const {
  std::optional<std::string> copy = copy_of(cache::PartKind::Caches);
  if (!copy) return nullptr;
  BundledCache caches{
      .name = location_, .path = file_ ? file_->path : "", .plans = {}, .bytes = {}};
  try {
    caches.plans = cache::decode(*copy, key, location_, [](const cache::Section& section) {
      return tuning::is_plan(section) || is_nested_cache(section);
    });
    caches.bytes = std::make_shared<const std::string>(*std::move(copy));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
  }
  return std::make_shared<const BundledCache>(std::move(caches));
}

cache::PackFile::Opened Bundle::open_packs(const cache::UserKey& key, bool is_verified) const {
  const std::string location = "packed weights and kernels of " + location_;
  const cache::BundlePart* const part = table_.find(cache::PartKind::Packs);
  if (part == nullptr) return {nullptr, ""};
  if (!changeable_.empty()) return {nullptr, location + " are not used: " + changeable_};
  return cache::PackFile::within({start_, start_of_chars() + part->offset}, part->bytes, location,
                                 processor_model(), key, is_verified);
}

FoundIndex Bundle::read_index(std::span<const cache::Ingredient> ingredients,
                              const cache::UserKey& key) const {
  if (!changeable_.empty()) return {{}, changeable_};
  const std::optional<std::string> copy = copy_of(cache::PartKind::Index);
  if (!copy) return {{}, "there is none"};
  const auto find_file = [&](const StampedFile& wanted) -> std::shared_ptr<const std::byte> {
    for (const cache::BundlePart& part : table_.parts) {
      const bool is_it = part.kind == cache::PartKind::ExternalData &&
                         part.name == wanted.path.string() &&
                         std::cmp_equal(part.bytes, wanted.stamp.bytes);
      if (is_it) return {start_, start_.get() + part.offset};
    }
    return nullptr;
  };
  FoundIndex found = decode_model_index(*copy, ingredients, key, location_, find_file);
  if (found.index) note_files(found.index->model.source);
  return found;
}

std::vector<cache::Ingredient> bundled_index_ingredients(const std::string& version,
                                                         const std::string& core,
                                                         const CompileOptions& options) {
  return {{"tessera", version},
          {"core revision", core},
          {"loading revision", loading::kernel_revision()},
          {"strict", options.is_strict ? "yes" : "no"},
          {"all values", options.keeps_all_values ? "yes" : "no"},
          {"copied weights", options.copies_weights ? "yes" : "no"}};
}

}  // namespace tessera
