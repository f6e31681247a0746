// Reads an ONNX file into a Graph. protobuf stays inside this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/errors/log.h"
#include "base/files/file_stamp.h"
#include "graph/graph.h"
#include "ops/registry.h"
#include "tessera/tensor.h"

namespace tessera {

// A mapped file of weights, which lives as long as a tensor that uses it.
struct WeightMapping {
  std::weak_ptr<const std::byte> start;
  int64_t bytes = 0;
  std::filesystem::path file;
  FileStamp stamp = {};  // at the time it was opened
  int descriptor = -1;   // of the file, valid as long as a tensor uses it; -1: none was available
};

// Lets the system reclaim the memory of mapped weights; later reads load them again.
void drop_resident_pages(const std::vector<WeightMapping>& mappings);

// Throws DeviceFailed, naming the file, if a mapped file was written to or truncated since it was
// opened. Renaming or unlinking a file does not count, because that does not change what is mapped.
void check_unchanged(const std::vector<WeightMapping>& mappings);

// Files of external data inside another file or in memory, by name.
using EmbeddedFiles = std::map<std::string, std::span<const std::byte>>;

struct ImportOptions {
  // Copy external weights instead of mapping them, as for those in the model's file.
  bool copies_weights = false;
  // Hold read leases (base/files/file_stamp.h) on all files until they are read, to detect writers.
  bool takes_leases = false;
  // Graph inputs that are fed although the file has a value for them, which is ignored.
  std::set<std::string> free_inputs = {};
  // If set, external data is in these files, and none is looked up in a folder. `embedded_owner`
  // keeps them alive; constants that lie in them keep a copy of it.
  const EmbeddedFiles* embedded = nullptr;
  std::shared_ptr<const std::byte> embedded_owner = {};
};

struct ImportedModel {
  // Legal (graph/verify.h) and topologically ordered, whatever the order in the file; every node is
  // complete (ops/schema.h). Types are as declared, or unknown. Model-local functions are inlined.
  Graph graph;
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;
  std::vector<WeightMapping> mappings;  // of external data
  // The files of external data, by the names with which the model refers to them.
  std::map<std::string, std::filesystem::path> external_files;
  std::vector<StampedFile> files;  // all files that were read, the model's first
  // The worst lease of all files, if ImportOptions asks for leases.
  ReadLease lease = ReadLease::Granted;
};

// A whole mapped file, mapped as import_onnx() maps external data.
struct MappedWeights {
  std::shared_ptr<const std::byte> start;
  WeightMapping mapping;
};
// Throws InvalidArgument.
MappedWeights map_weights(const std::filesystem::path& file);

// Reads `file` and its external data. Initializers become constants. External ones are mapped, or
// copied if they are not aligned to kTensorAlignmentBytes or `options` says so; others are copied
// once. A graph input with an initializer becomes a constant too, whatever the IR version, unless
// it is one of ImportOptions::free_inputs. Throws InvalidArgument if the file cannot be read or has
// no value for a free input, InvalidModel if its contents are inconsistent, Unsupported if an op, a
// version or an element type is not supported. Does not keep a reference to `registry`.
ImportedModel import_onnx(const std::filesystem::path& file, const ops::Registry& registry,
                          const Log& log, const ImportOptions& options = {});

// Same as import_onnx(), from bytes. External data is looked up in `folder`; "" means the working
// folder. `location` is the name of the bytes in errors.
ImportedModel import_onnx_bytes(std::string_view bytes, const std::filesystem::path& folder,
                                const ops::Registry& registry, const Log& log,
                                const std::string& location = "the given bytes",
                                const ImportOptions& options = {});

// Reads a file that holds one TensorProto. Throws InvalidArgument.
Tensor read_tensor_proto(const std::filesystem::path& file);

}  // namespace tessera
