#include "store/model_index.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "backend/packs.h"
#include "base/files/byte_archive.h"
#include "cache/cache_file.h"
#include "cache/origin.h"
#include "cache/stored_file.h"
#include "graph/graph_archive.h"
#include "graph/verify.h"
#include "tessera/backend_abi.h"
#include "tessera/error.h"

namespace tessera {
namespace {

constexpr const char* kType = "model";
constexpr const char* kContent = "graph";
// A model with more small constants gains little from an index.
constexpr int64_t kMaxIndexBytes = int64_t{64} << 20;

// A weight that is stored in one of the model's files.
struct MappedWeight {
  int32_t value = 0;
  uint32_t file = 0;  // of ModelIndex::files
  int64_t offset = 0;
};

template <class Archive>
void transfer(Archive& archive, MappedWeight& weight) {
  auto& [value, file, offset] = weight;
  archive(value, file, offset);
}

std::string display_name_of(const std::filesystem::path& file) {
  return "index '" + file.string() + "'";
}

int64_t align(int64_t bytes) {
  constexpr auto kUnit = static_cast<int64_t>(kTensorAlignmentBytes);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

bool has_sparse(const Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(),
                     [](const Value& value) { return value.sparse_constant != nullptr; }) ||
         std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
           return std::any_of(node.bodies.begin(), node.bodies.end(),
                              [](const Body& body) { return has_sparse(body.graph); });
         });
}

// Their elements would be lost: an index has only the digests of those of the outer graph.
bool has_large_nested_weight(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return std::ranges::any_of(node.bodies, [](const Body& body) {
      return std::ranges::any_of(body.graph.values, is_large_weight) ||
             has_large_nested_weight(body.graph);
    });
  });
}

// `graph` without the elements of large weights.
Graph without_weights(Graph graph) {
  for (Value& value : graph.values) {
    if (!is_large_weight(value)) continue;
    if (!value.digest) value.digest = digest_of(value.constant);
    value.constant = value.constant.without_elements();
  }
  return graph;
}

std::vector<MappedWeight> mapped_weights(const ModelIndex& index) {
  std::vector<MappedWeight> mapped;
  for (const WeightMapping& mapping : index.model.source.mappings) {
    const std::shared_ptr<const std::byte> start = mapping.start.lock();
    const auto file = std::find_if(index.files.begin(), index.files.end(),
                                   [&](const auto& one) { return one.path == mapping.file; });
    if (start == nullptr || file == index.files.end()) continue;
    for (size_t id = 0; id < index.model.graph.values.size(); ++id) {
      const Value& value = index.model.graph.values[id];
      if (!is_large_weight(value) || !value.constant.has_elements()) continue;
      const auto* const data = static_cast<const std::byte*>(value.constant.data());
      if (data < start.get() || data >= start.get() + mapping.bytes) continue;
      mapped.push_back({.value = static_cast<int32_t>(id),
                        .file = static_cast<uint32_t>(file - index.files.begin()),
                        .offset = data - start.get()});
    }
  }
  return mapped;
}

// Transfers all members except the files and the graph.
template <class Archive>
void transfer_head(Archive& archive, ModelIndex& index) {
  archive(index.plugins, index.packs, index.warnings, index.weights, index.structure.digest,
          index.structure.names);
  auto& [source, graph, passes, made_values, binds_unchanged] = index.model;
  archive(source.ir_version, source.producer, source.opsets, passes, made_values, binds_unchanged);
}

// `files` are the index's, perhaps by other names.
std::string index_bytes(const ModelIndex& index, const std::vector<StampedFile>& files) {
  ByteWriter content;
  // transfer_head() serves both reading and writing, so it takes a mutable reference.
  transfer_head(content, const_cast<ModelIndex&>(index));
  content(without_weights(index.model.graph), mapped_weights(index));
  std::vector<BlockRange> ranges;
  int64_t end = 0;
  for (const Tensor& tensor : content.tensors()) {
    ranges.push_back({.offset = end, .bytes = tensor.bytes()});
    end = align(end + tensor.bytes());
  }
  const std::vector<Tensor> tensors = content.tensors();
  ByteWriter whole;
  whole(files, ranges, end, content.take_bytes());
  std::string bytes = whole.take_bytes();
  for (const Tensor& tensor : tensors) {
    bytes.append(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
    bytes.append(static_cast<size_t>(align(tensor.bytes()) - tensor.bytes()), '\0');
  }
  return bytes;
}

// Explains which of the model's files has changed; "" if none has.
std::string explain_changed(const std::vector<StampedFile>& files) {
  for (const StampedFile& file : files) {
    if (stamp_of(file.path) != file.stamp) return "'" + file.path.string() + "' has changed";
  }
  return files.empty() ? "it is of no file" : "";
}

std::vector<ByteReader::Block> read_blocks(const std::vector<BlockRange>& ranges, int64_t bytes,
                                           std::span<const char> behind) {
  if (bytes < 0 || static_cast<uint64_t>(bytes) != behind.size()) {
    ByteReader::fail("other constants than it names");
  }
  Tensor memory(DataType::UInt8, {bytes});
  if (bytes > 0) std::memcpy(memory.mutable_data(), behind.data(), behind.size());
  const auto held = std::make_shared<const Tensor>(std::move(memory));
  std::vector<ByteReader::Block> blocks;
  for (const BlockRange& location : ranges) {
    const bool is_inside = location.offset >= 0 && location.bytes >= 0 &&
                           location.offset <= bytes && location.bytes <= bytes - location.offset &&
                           align(location.offset) == location.offset;
    if (!is_inside) ByteReader::fail("a constant outside of it");
    const auto* const start = static_cast<const char*>(held->data()) + location.offset;
    blocks.push_back({{held, start}, location.bytes});
  }
  return blocks;
}

void map_all(const std::vector<MappedWeight>& mapped, ModelIndex& index,
             const FindFile& find_file) {
  std::map<uint32_t, std::shared_ptr<const std::byte>> starts;
  for (const MappedWeight& weight : mapped) {
    const bool is_there = weight.file < index.files.size() && weight.value >= 0 &&
                          static_cast<size_t>(weight.value) < index.model.graph.values.size();
    if (!is_there) ByteReader::fail("a weight of no file");
    Value& value = index.model.graph.values[static_cast<size_t>(weight.value)];
    const StampedFile& file = index.files[weight.file];
    const int64_t bytes = value.constant.bytes();
    const bool is_inside = weight.offset >= 0 && weight.offset <= file.stamp.bytes &&
                           bytes <= file.stamp.bytes - weight.offset &&
                           align(weight.offset) == weight.offset;
    if (!is_inside) ByteReader::fail("a weight outside of its file");
    std::shared_ptr<const std::byte>& start = starts[weight.file];
    if (start == nullptr) start = find_file(file);
    if (start == nullptr) ByteReader::fail("weights in a file that has changed");
    value.constant =
        Tensor(value.constant.type(), value.constant.dims(), start, start.get() + weight.offset);
  }
}

}  // namespace

template <class Archive>
void transfer(Archive& archive, StampedFile& file) {
  if constexpr (Archive::kIsReading) {
    std::string path;
    archive(path, file.stamp);
    file.path = path;
  } else {
    archive(file.path.string(), file.stamp);
  }
}

template <class Archive>
void transfer(Archive& archive, LibraryIngredient& ingredient) {
  archive(ingredient.name, ingredient.value);
}

template <class Archive>
void transfer(Archive& archive, RememberedPlugin& plugin) {
  archive(plugin.stamp, plugin.libraries, plugin.version.backend, plugin.version.ingredients);
}

template <class Archive>
void transfer(Archive& archive, PassReport& report) {
  auto& [name, nodes_before, nodes_after, seconds, changes] = report;
  archive(name, nodes_before, nodes_after, seconds, changes);
}

bool is_large_weight(const Value& value) {
  return value.is_constant() && !value.is_state && is_floating(value.constant.type()) &&
         value.constant.bytes() > TESSERA_SMALL_CONSTANT_BYTES;
}

namespace {

// `checks_files`: whether the index is of files that must not have changed.
FoundIndex decode(const std::string& bytes, std::span<const cache::Ingredient> ingredients,
                  const cache::UserKey& key, const std::string& location, bool checks_files,
                  const std::function<std::shared_ptr<const std::byte>(
                      const StampedFile& file, ModelIndex& index)>& find_file) {
  try {
    const cache::CacheFile stored = cache::decode(bytes, &key, location);
    const std::string difference = cache::explain_difference(stored.ingredients, ingredients);
    const cache::Section* const section = stored.find(kType, kContent);
    if (!difference.empty() || section == nullptr) return {{}, difference};
    if (!cache::trusts_bytes(section->origin)) return {{}, "it is another user's"};
    ModelIndex index;
    std::vector<BlockRange> ranges;
    int64_t block_bytes = 0;
    std::string content;
    ByteReader outside(section->bytes);
    outside(index.files, ranges, block_bytes, content);
    const std::string change = checks_files ? explain_changed(index.files) : "";
    if (!change.empty()) return {{}, change};
    ByteReader inside(content, read_blocks(ranges, block_bytes, outside.rest()));
    transfer_head(inside, index);
    std::vector<MappedWeight> mapped;
    inside(index.model.graph, mapped);
    inside.expect_end();
    map_all(mapped, index, [&](const StampedFile& file) { return find_file(file, index); });
    const std::string illegal = explain_illegal(index.model.graph);
    if (!illegal.empty()) return {{}, illegal};
    return {std::move(index), ""};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

cache::CacheFile stored_index(std::span<const cache::Ingredient> ingredients, std::string bytes) {
  cache::CacheFile stored{.ingredients = {ingredients.begin(), ingredients.end()}};
  stored.sections.push_back({.type = kType, .content = kContent, .bytes = std::move(bytes)});
  return stored;
}

}  // namespace

FoundIndex read_model_index(const std::filesystem::path& file,
                            std::span<const cache::Ingredient> ingredients,
                            const cache::UserKey& key) {
  const cache::FileText text = cache::read_stored_file(file, 2 * kMaxIndexBytes);
  if (!text.bytes) return {{}, text.refusal};
  const auto map_file = [](const StampedFile& wanted,
                           ModelIndex& index) -> std::shared_ptr<const std::byte> {
    MappedWeights opened = map_weights(wanted.path);
    // The file that was opened may differ from the file whose stamp was compared, and access beyond
    // its end would kill the process.
    if (opened.mapping.stamp != wanted.stamp) return nullptr;
    index.model.source.mappings.push_back(std::move(opened.mapping));
    return std::move(opened.start);
  };
  FoundIndex found = decode(*text.bytes, ingredients, key, display_name_of(file),
                            /*checks_files=*/true, map_file);
  if (found.index) found.index->model.source.files = found.index->files;
  return found;
}

FoundIndex decode_model_index(const std::string& bytes,
                              std::span<const cache::Ingredient> ingredients,
                              const cache::UserKey& key, const std::string& location,
                              const FindFile& find_file) {
  FoundIndex found = decode(bytes, ingredients, key, location, /*checks_files=*/false,
                            [&](const StampedFile& file, ModelIndex&) { return find_file(file); });
  if (found.index) found.index->files.clear();
  return found;
}

std::string encode_model_index(std::span<const cache::Ingredient> ingredients,
                               const cache::UserKey& key, ModelIndex index,
                               std::span<const NamedFile> files) {
  if (has_sparse(index.model.graph) || has_large_nested_weight(index.model.graph)) return "";
  std::erase_if(index.files, [&](const StampedFile& file) {
    return std::ranges::find(files, file.path, &NamedFile::path) == files.end();
  });
  std::vector<StampedFile> named;
  for (const StampedFile& file : index.files) {
    const auto one = std::ranges::find(files, file.path, &NamedFile::path);
    named.push_back({one->name, {.bytes = file.stamp.bytes}});
  }
  std::string bytes = index_bytes(index, named);
  if (static_cast<int64_t>(bytes.size()) > kMaxIndexBytes) return "";
  return cache::encode(stored_index(ingredients, std::move(bytes)), &key);
}

std::string write_model_index(const std::filesystem::path& file,
                              std::span<const cache::Ingredient> ingredients,
                              const cache::UserKey& key, const ModelIndex& index) {
  if (has_sparse(index.model.graph)) return "it has sparse constants";
  if (has_large_nested_weight(index.model.graph)) return "a nested graph has large weights";
  const cache::CacheFile stored = stored_index(ingredients, index_bytes(index, index.files));
  if (static_cast<int64_t>(stored.sections.front().bytes.size()) > kMaxIndexBytes) {
    return "its small constants take too much";
  }
  return cache::replace_file(file, [&] { return cache::encode(stored, &key); });
}

}  // namespace tessera
