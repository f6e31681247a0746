// Random access to the bytes of a file or of memory. The weights of a model are read from the file
// directly into their tensors, so nothing ever holds the whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file_stamp.h"

namespace tessera::onnx_import {

class ByteSource {
 public:
  // Throws InvalidArgument if `file` is missing, is not a regular file, or may not be read.
  static ByteSource open(const std::filesystem::path& file);
  // Same as open(), for a canonical path, without following links; errors call it `shown`.
  static ByteSource open_without_links(const std::filesystem::path& file,
                                       const std::filesystem::path& shown);
  // `bytes` must outlive the source. `location` is its name in errors.
  static ByteSource over(std::string_view bytes, std::string location = "the given bytes");

  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&&) = delete;
  ~ByteSource();

  int64_t size() const { return size_; }
  // The name in errors: "file 'a.onnx'".
  const std::string& location() const { return location_; }

  // Copies [offset, offset + count), which must lie inside. Throws InvalidArgument if the file has
  // become shorter or cannot be read.
  void read(int64_t offset, void* target, size_t count) const;

  // The stamp of the file when it was opened; nullopt for memory.
  const std::optional<FileStamp>& stamp() const { return stamp_; }

  // Takes or releases a read lease on the file; see base/files/file_stamp.h. Memory counts as
  // Granted.
  void take_lease();
  ReadLease release_lease();

  // A file mapped into memory.
  struct Mapping {
    std::shared_ptr<const std::byte> start;  // page-aligned; keeps the mapping alive
    int descriptor = -1;  // of the same file and lifetime; -1: none was available
  };
  // Maps the whole file, which must not be empty. Throws InvalidArgument.
  Mapping map() const;

 private:
  ByteSource() = default;
  // Takes ownership of `descriptor`; if it is -1, errno says why.
  static ByteSource from(int descriptor, const std::filesystem::path& shown);

  int descriptor_ = -1;
  std::string_view memory_;
  int64_t size_ = 0;
  std::optional<FileStamp> stamp_;
  ReadLease lease_ = ReadLease::Granted;
  std::string location_;
};

}  // namespace tessera::onnx_import
