// Weights in files beside the model: decides which files may be read, and maps them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "import/onnx/import.h"
#include "import/onnx/wire/byte_source.h"
#include "onnx.pb.h"

namespace tessera::onnx_import {

// The content of TensorProto.external_data.
struct ExternalLocation {
  std::string location;           // relative to the model's folder
  int64_t offset = 0;             // in bytes
  std::optional<int64_t> length;  // in bytes; nullopt: as many as the tensor needs
};

// Throws InvalidModel at `where` if the location is missing or a number is malformed.
ExternalLocation external_location(const onnx::TensorProto& tensor, const std::string& where);

struct ExternalFile {
  ByteSource source;
  ByteSource::Mapping mapping;  // empty until mapped() is called
};

// The data files of one model; each is opened and mapped once. A file must be a regular file inside
// the folder. Links may be followed only if they stay inside: the path is made canonical and
// checked first, and then opened without following links, so that nobody can exchange a link in
// between.
class ExternalData {
 public:
  // Without a folder: every external tensor is refused.
  ExternalData() = default;
  // `folders` may contain data: the model's own folder and, if the model is a link, that of its
  // target. `name` is the folder's name in errors.
  explicit ExternalData(const std::vector<std::filesystem::path>& folders,
                        std::string name = "the model's folder");

  // Data in these files instead, which `owner` keeps alive.
  ExternalData(const EmbeddedFiles& files, const std::shared_ptr<const std::byte>& owner);

  // Throws InvalidModel at `where` for an absolute location, one with "..", one that a link leads
  // out of the folder, and for anything but a readable regular file.
  ExternalFile& open(const std::string& location, const std::string& where);

  // From now on, files are opened under read leases.
  void take_leases() { takes_leases_ = true; }
  // Releases all leases and returns the worst result.
  ReadLease release_leases();

  // The files that were opened, by location.
  const std::map<std::string, std::filesystem::path>& locations() const { return locations_; }
  // All files that were opened, and all that are embedded.
  const std::map<std::filesystem::path, ExternalFile>& files() const { return files_; }

 private:
  std::filesystem::path resolve(const std::string& location, const std::string& where) const;

  std::vector<std::filesystem::path> folders_;  // canonical
  std::string name_ = "the model's folder";
  bool is_embedded_ = false;
  bool takes_leases_ = false;
  std::map<std::string, std::filesystem::path> locations_;
  std::map<std::filesystem::path, ExternalFile> files_;
};

// The start of the mapped file. Throws InvalidArgument if it cannot be mapped.
const std::shared_ptr<const std::byte>& mapped(ExternalFile& file);

}  // namespace tessera::onnx_import
