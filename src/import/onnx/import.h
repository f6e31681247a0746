// From an ONNX file to a Graph. protobuf stays inside this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_stamp.h"
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
  FileStamp stamp = {};  // when it was opened
  int descriptor = -1;   // of the file, as long as a tensor is in it; -1: none was left
};

// Lets the system take the memory of mapped weights back; who reads them again finds them again.
void drop_resident_pages(const std::vector<WeightMapping>& mappings);

// Throws DeviceFailed, naming the file, where one that is mapped was written to or cut since it was
// opened. What happens to its name alone does not count: what is mapped stays as it was.
void check_unchanged(const std::vector<WeightMapping>& mappings);

struct ImportOptions {
  // External weights are copied, as those in the model's file are, rather than mapped.
  bool copies_weights = false;
  // Hold read leases (base/file_stamp.h) on all files until they are read, to see who writes.
  bool takes_leases = false;
};

struct ImportedModel {
  // Legal (graph/verify.h), topologically ordered whatever the file's order; every node complete
  // (ops/schema.h). Types are as declared, or unknown. Model-local functions are inlined.
  Graph graph;
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;
  std::vector<WeightMapping> mappings;  // of external data
  std::vector<StampedFile> files;       // all files that it was read from, the model's first
  // The worst of them, where ImportOptions wants leases.
  ReadLease lease = ReadLease::Granted;
};

// The whole file mapped, as import_onnx() maps external data.
struct MappedWeights {
  std::shared_ptr<const std::byte> start;
  WeightMapping mapping;
};
// Throws InvalidArgument.
MappedWeights map_weights(const std::filesystem::path& file);

// Reads `file` and its external data. Initializers become constants: external ones are mapped where
// they are aligned to kTensorAlignmentBytes, and copied where not or where `options` say so; others
// are copied once.
// A graph input that has an initializer is a constant too, whatever the IR version: a default that
// callers could override (IR version 4 and up) is taken as the model's value.
// Throws InvalidArgument where the file cannot be read, InvalidModel where its contents contradict
// themselves, Unsupported where an op, a version or an element type is not known. `registry` is not
// kept.
ImportedModel import_onnx(const std::filesystem::path& file, const ops::Registry& registry,
                          const Log& log, const ImportOptions& options = {});

// The same from bytes; external data is looked for in `folder`, "" being the working folder.
// `place` is how errors call the bytes.
ImportedModel import_onnx_bytes(std::string_view bytes, const std::filesystem::path& folder,
                                const ops::Registry& registry, const Log& log,
                                const std::string& place = "the given bytes",
                                const ImportOptions& options = {});

// A file that holds one TensorProto. Throws InvalidArgument.
Tensor read_tensor_proto(const std::filesystem::path& file);

}  // namespace tessera
