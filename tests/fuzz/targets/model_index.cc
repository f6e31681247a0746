#include "store/model_index.h"

#include <fstream>
#include <string>
#include <vector>

#include "base/files/byte_archive.h"
#include "cache/cache_file.h"
#include "targets.h"
#include "tessera/error.h"

namespace tessera::fuzzing {
namespace {

// The model that the index claims to describe; the index may refer to weights in it.
const std::filesystem::path& model_file() {
  static const std::filesystem::path kFile = [] {
    const auto file = scratch_folder() / "model.onnx";
    write_scratch_file(file, std::string(size_t{1} << 14, '\1'));
    return file;
  }();
  return kFile;
}

// A list with the one file that the model was read from, in the format of ModelIndex::files.
std::string files_field() {
  const FileStamp stamp = stamp_of(model_file()).value();
  ByteWriter writer;
  writer(uint64_t{1}, model_file().string(), stamp);
  return writer.take_bytes();
}

uint64_t sum_of(const Tensor& tensor) {
  uint64_t sum = 0;
  if (!tensor.has_elements()) return sum;
  const auto* const data = static_cast<const char*>(tensor.data());
  for (int64_t index = 0; index < tensor.bytes(); ++index) sum += static_cast<uint8_t>(data[index]);
  return sum;
}

}  // namespace

void fuzz_model_index(Bytes bytes) {
  const cache::UserKey key({});
  cache::CacheFile stored{.ingredients = {{"fuzz", "1"}}};
  stored.sections.push_back({.type = "model",
                             .content = "graph",
                             .bytes = files_field() + std::string(bytes.begin(), bytes.end())});
  const auto file = scratch_folder() / "model.index";
  write_scratch_file(file, cache::encode(stored, &key));
  const FoundIndex found = read_model_index(file, stored.ingredients, key);
  expect(found.index.has_value() || !found.reason.empty(), "there is an index or a reason");
  if (!found.index) return;
  // All its constants must be readable.
  for (const Value& value : found.index->model.graph.values) {
    if (value.is_constant()) use(sum_of(value.constant));
  }
}

}  // namespace tessera::fuzzing
