#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "targets.h"
#include "tessera/error.h"
#include "tessera/tessera.h"

namespace tessera::fuzzing {
namespace {

// Limits for a run, so that many runs fit into a minute.
constexpr int64_t kMaxBytes = int64_t{1} << 24;
constexpr int64_t kMaxFlops = 10'000'000;
constexpr double kMaxSeconds = 2;

std::map<std::string, std::vector<int64_t>> shapes_of(const ModelDescription& model) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const ValueDescription& input : model.inputs) {
    if (!input.shape) continue;
    for (const Dimension& dim : *input.shape) shapes[input.name].push_back(dim.value.value_or(2));
  }
  return shapes;
}

// 0, 1, 2, 3, 0...: indices that may be out of range, and elements that differ.
Tensor small_numbers(DataType type, const std::vector<int64_t>& dims) {
  Tensor tensor(type, dims);
  const auto size = static_cast<size_t>(element_bytes(type));
  auto* const data = static_cast<char*>(tensor.mutable_data());
  std::memset(data, 0, static_cast<size_t>(tensor.bytes()));
  for (int64_t index = 0; index < tensor.elements(); ++index) {
    const auto at = static_cast<size_t>(index) * size;
    if (type == DataType::Float32) {
      const auto number = static_cast<float>(index % 4);
      std::memcpy(data + at, &number, size);
    } else {
      data[at] = static_cast<char>(type == DataType::Bool ? index % 2 : index % 4);
    }
  }
  return tensor;
}

// Sizes that are known only in a run are limited by the limits on memory and time alone.
bool is_large(const ModelDescription& model) {
  return model.peak_bytes.value_or(0) > kMaxBytes || model.flops.value_or(0) > kMaxFlops;
}

void run(const Model& model) {
  const auto shapes = shapes_of(model.describe());
  if (is_large(model.describe(shapes))) return;
  Executor executor = model.bind({.shapes = shapes,
                                  .threads = 1,
                                  .optimize = Optimize::Off,
                                  .limits = {.memory_budget_bytes = 4 * kMaxBytes}});
  executor.set_time_limit(kMaxSeconds);
  std::map<std::string, Tensor> inputs;
  for (const ValueDescription& input : executor.inputs()) {
    std::vector<int64_t> dims;
    for (const Dimension& dim : *input.shape) dims.push_back(dim.value.value_or(2));
    if (tensor_bytes(input.type, dims) > kMaxBytes) return;
    inputs[input.name] = small_numbers(input.type, dims);
  }
  // The second run tests the state that the first run left behind.
  executor.run(inputs);
  executor.run(inputs);
}

}  // namespace

void fuzz_model(Bytes bytes) {
  try {
    const Model model =
        load(ModelBytes{.bytes = {bytes.begin(), bytes.end()}, .folder = "/nonexistent"},
             {.log = [](const std::string&) {}, .threads = 1});
    run(model);
  } catch (const Error& error) {
    // A bundle begins like this, and may be damaged; there is a target for bundles.
    const bool is_bundle = std::string_view(bytes.data(), bytes.size()).starts_with("TESBNDL");
    expect(error.kind() != ErrorKind::Internal && error.kind() != ErrorKind::DeviceFailed &&
               (error.kind() != ErrorKind::Corrupt || is_bundle),
           error.what());
  }
}

}  // namespace tessera::fuzzing
