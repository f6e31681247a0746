#include "import/onnx/import.h"

#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "base/errors/likely_name.h"
#include "graph/verify.h"
#include "import/onnx/external_data.h"
#include "import/onnx/graph_builder.h"
#include "import/onnx/names/functions.h"
#include "import/onnx/names/op_lookup.h"
#include "import/onnx/tensors.h"
#include "import/onnx/wire/byte_source.h"
#include "import/onnx/wire/wire_scan.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using onnx_import::build_graph;
using onnx_import::ByteSource;
using onnx_import::ExternalData;
using onnx_import::Functions;
using onnx_import::read_opsets;
using onnx_import::scan_model;
using onnx_import::scan_tensor;
using onnx_import::Scanned;
using onnx_import::TensorReader;

constexpr int64_t kOldestIrVersion = 1;
constexpr int64_t kNewestIrVersion = onnx::IR_VERSION;

void check_header(const onnx::ModelProto& model, const std::string& where) {
  if (!model.has_ir_version() || model.ir_version() <= 0) {
    throw Error(ErrorKind::InvalidModel, where,
                "expected an ONNX model, found no IR version (or none above 0)");
  }
  if (model.ir_version() < kOldestIrVersion || model.ir_version() > kNewestIrVersion) {
    throw Error(ErrorKind::Unsupported, where,
                "expected an IR version from " + std::to_string(kOldestIrVersion) + " to " +
                    std::to_string(kNewestIrVersion) + ", found " +
                    std::to_string(model.ir_version()));
  }
  if (!model.has_graph()) {
    throw Error(ErrorKind::InvalidModel, where, "expected a graph, found none");
  }
  const bool has_implied_opset = model.ir_version() < onnx_import::kFirstIrVersionWithOpsets;
  if (model.opset_import().empty() && !has_implied_opset) {
    throw Error(ErrorKind::InvalidModel, where,
                "expected the operator sets that it uses (opset_import), found none");
  }
}

void check_free_inputs(const onnx::GraphProto& graph, const std::set<std::string>& free_inputs) {
  if (free_inputs.empty()) return;
  std::set<std::string> inputs;
  for (const auto& input : graph.input()) inputs.insert(input.name());
  std::vector<std::string> defaults;
  const auto add = [&](const std::string& name) {
    if (inputs.contains(name)) defaults.push_back(name);
  };
  for (const auto& initializer : graph.initializer()) add(initializer.name());
  for (const auto& initializer : graph.sparse_initializer()) add(initializer.values().name());
  for (const std::string& name : free_inputs) {
    if (std::find(defaults.begin(), defaults.end(), name) != defaults.end()) continue;
    throw Error(
        ErrorKind::InvalidArgument, "free input '" + name + "'",
        "expected an input for which the model's file has a value, found none of this name" +
            did_you_mean(name, defaults));
  }
}

WeightMapping described(const ByteSource::Mapping& mapping, const ByteSource& source,
                        const std::filesystem::path& file) {
  return {mapping.start, source.size(), file, *source.stamp(), mapping.descriptor};
}

// The location of a model's file, and the folders that may hold its data: the folder of its name
// and, if the file is a link, that of its target. No folders if there is no such path, for example
// if the file was removed and is open as /proc/self/fd/3.
struct FoundModel {
  std::filesystem::path target;  // canonical
  std::vector<std::filesystem::path> folders;
};

FoundModel find_model(const std::filesystem::path& file) {
  std::error_code error;
  // The target is resolved relative to the canonical data folder. Otherwise somebody could exchange
  // a link in between and make the model and its data come from different folders.
  const std::filesystem::path folder = std::filesystem::canonical(
      file.has_parent_path() ? file.parent_path() : std::filesystem::path("."), error);
  if (error) return {};
  std::filesystem::path target = std::filesystem::canonical(folder / file.filename(), error);
  if (error) return {};
  const std::filesystem::path other = target.parent_path();
  return {std::move(target), {folder, other}};
}

ImportedModel import_from(const ByteSource& source, ExternalData external,
                          const ops::Registry& registry, const Log& log,
                          const ImportOptions& options) {
  const Scanned<onnx::ModelProto> scanned = scan_model(source);
  const onnx::ModelProto& model = scanned.message;
  check_header(model, source.location());
  ImportedModel result;
  result.ir_version = model.ir_version();
  result.producer = model.producer_name();
  if (!model.producer_version().empty()) result.producer += " " + model.producer_version();
  result.opsets = read_opsets(model.opset_import(), source.location());
  onnx_import::add_implied_opset(model.ir_version(), result.opsets);
  if (options.takes_leases) external.take_leases();
  TensorReader tensors(source, scanned.payloads, external, options.copies_weights);
  Functions functions(model, result.opsets);
  check_free_inputs(model.graph(), options.free_inputs);
  result.graph = build_graph(model.graph(), functions, tensors, registry, log, options.free_inputs);
  verify(result.graph, "import");
  result.lease = external.release_leases();
  result.external_files = external.locations();
  for (const auto& [path, file] : external.files()) {
    if (!file.source.stamp()) continue;  // embedded
    result.files.push_back({path, *file.source.stamp()});
    if (file.mapping.start) result.mappings.push_back(described(file.mapping, file.source, path));
  }
  return result;
}

}  // namespace

void drop_resident_pages(const std::vector<WeightMapping>& mappings) {
  for (const WeightMapping& mapping : mappings) {
    const std::shared_ptr<const std::byte> start = mapping.start.lock();
    if (start == nullptr) continue;
    // The mapping is private and never written to, so dropped pages are read from the file again.
    ::madvise(const_cast<std::byte*>(start.get()), static_cast<size_t>(mapping.bytes),
              MADV_DONTNEED);
  }
}

void check_unchanged(const std::vector<WeightMapping>& mappings) {
  for (const WeightMapping& mapping : mappings) {
    const std::shared_ptr<const std::byte> start = mapping.start.lock();
    if (start == nullptr || mapping.descriptor < 0) continue;
    const std::optional<FileStamp> now = stamp_of(mapping.descriptor);
    if (!now) continue;
    if (now->bytes != mapping.stamp.bytes) {
      fail_changed(mapping.file, std::to_string(now->bytes) + " bytes in it, expected " +
                                     std::to_string(mapping.stamp.bytes));
    }
    if (now->modified_ns != mapping.stamp.modified_ns) {
      fail_changed(mapping.file, "other contents of the same size");
    }
  }
}

ImportedModel import_onnx(const std::filesystem::path& file, const ops::Registry& registry,
                          const Log& log, const ImportOptions& options) {
  const FoundModel found = find_model(file);
  ByteSource source = found.folders.empty() ? ByteSource::open(file)
                                            : ByteSource::open_without_links(found.target, file);
  if (options.takes_leases) source.take_lease();
  ImportedModel model = import_from(source, ExternalData(found.folders), registry, log, options);
  model.lease = std::max(model.lease, source.release_lease());
  model.files.insert(model.files.begin(), {file, *source.stamp()});
  return model;
}

MappedWeights map_weights(const std::filesystem::path& file) {
  const ByteSource source = ByteSource::open(file);
  const ByteSource::Mapping mapping = source.map();
  return {mapping.start, described(mapping, source, file)};
}

ImportedModel import_onnx_bytes(std::string_view bytes, const std::filesystem::path& folder,
                                const ops::Registry& registry, const Log& log,
                                const std::string& location, const ImportOptions& options) {
  if (options.embedded != nullptr) {
    return import_from(ByteSource::over(bytes, location),
                       ExternalData(*options.embedded, options.embedded_owner), registry, log,
                       options);
  }
  const std::string name =
      folder.empty() ? "the working folder" : "the folder '" + folder.string() + "'";
  return import_from(ByteSource::over(bytes, location), ExternalData({folder}, name), registry, log,
                     options);
}

Tensor read_tensor_proto(const std::filesystem::path& file) {
  const ByteSource source = ByteSource::open(file);
  try {
    const Scanned<onnx::TensorProto> scanned = scan_tensor(source);
    ExternalData nowhere;
    TensorReader tensors(source, scanned.payloads, nowhere);
    return tensors.read(scanned.message, source.location());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::OutOfMemory) throw;
    throw Error(ErrorKind::InvalidArgument, source.location(), error.message());
  }
}

}  // namespace tessera
