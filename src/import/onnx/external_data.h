// Weights in files beside the model: which files may be read, and mapping them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "import/onnx/byte_source.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// What TensorProto.external_data says.
struct ExternalLocation {
  std::string location;           // relative to the model's folder
  int64_t offset = 0;             // in bytes
  std::optional<int64_t> length;  // in bytes; nullopt: what the tensor needs
};

// Throws InvalidModel at `where` for a missing location, and numbers that are none.
ExternalLocation external_location(const onnx::TensorProto& tensor, const std::string& where);

struct ExternalFile {
  ByteSource source;
  ByteSource::Mapping mapping;  // nothing until mapped() is called
};

// The data files of one model, each opened and mapped once. A file must be a regular one inside the
// folder; links are followed only as long as they stay there. Where they lead is decided first, and
// opened without following any: nobody can exchange a link in between.
class ExternalData {
 public:
  // No folder at all: every external tensor is refused.
  ExternalData() = default;
  // `folders` may hold data: the model's own and, where the model is a link, that of its target.
  // `name` is how errors call the folder.
  explicit ExternalData(const std::vector<std::filesystem::path>& folders,
                        std::string name = "the model's folder");

  // Throws InvalidModel at `where`: an absolute location, one with "..", one that is behind a link
  // to somewhere else, or no readable regular file.
  ExternalFile& open(const std::string& location, const std::string& where);

  // From here on files are opened under read leases.
  void take_leases() { takes_leases_ = true; }
  // Releases those; the worst of them.
  ReadLease release_leases();

  // Every file that was opened.
  const std::map<std::filesystem::path, ExternalFile>& files() const { return files_; }

 private:
  std::filesystem::path resolve(const std::string& location, const std::string& where) const;

  std::vector<std::filesystem::path> folders_;  // canonical
  std::string name_ = "the model's folder";
  bool takes_leases_ = false;
  std::map<std::filesystem::path, ExternalFile> files_;
};

// The start of the mapped file. Throws InvalidArgument where it cannot be mapped.
const std::shared_ptr<const std::byte>& mapped(ExternalFile& file);

}  // namespace tessera::onnx_import
