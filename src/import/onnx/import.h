// From an ONNX file to a Graph. protobuf stays inside this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera {

// A file of weights in memory, for as long as a tensor is in it.
struct WeightMapping {
  std::weak_ptr<const std::byte> start;
  int64_t bytes = 0;
  std::filesystem::path file;
};

// Lets the system take the memory of mapped weights back; who reads them again finds them again.
void drop_resident_pages(const std::vector<WeightMapping>& mappings);

struct ImportedModel {
  // Legal (graph/verify.h), topologically ordered whatever the file's order; every node complete
  // (ops/schema.h). Types are as declared, or unknown. Model-local functions are inlined.
  Graph graph;
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;
  std::vector<WeightMapping> mappings;       // of external data
  std::vector<std::filesystem::path> files;  // all files that it was read from, the model's first
};

// The whole file mapped, as import_onnx() maps external data. Throws InvalidArgument.
std::shared_ptr<const std::byte> map_weights(const std::filesystem::path& file);

// Reads `file` and its external data. Initializers become constants: external ones are mapped where
// they are aligned to kTensorAlignmentBytes and copied where not; others are copied once.
// A graph input that has an initializer is a constant too, whatever the IR version: a default that
// callers could override (IR version 4 and up) is taken as the model's value.
// Throws InvalidArgument where the file cannot be read, InvalidModel where its contents contradict
// themselves, Unsupported where an op, a version or an element type is not known. `registry` is not
// kept.
ImportedModel import_onnx(const std::filesystem::path& file, const ops::Registry& registry,
                          const Log& log);

// The same from bytes; external data is looked for in `folder`, "" being the working folder.
// `place` is how errors call the bytes.
ImportedModel import_onnx_bytes(std::string_view bytes, const std::filesystem::path& folder,
                                const ops::Registry& registry, const Log& log,
                                const std::string& place = "the given bytes");

// A file that holds one TensorProto. Throws InvalidArgument.
Tensor read_tensor_proto(const std::filesystem::path& file);

}  // namespace tessera
