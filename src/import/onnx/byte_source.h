// Bytes of a file or of memory, read piece by piece: a model's weights go from the file straight
// into their tensors, so nothing ever holds the file as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_stamp.h"

namespace tessera::onnx_import {

class ByteSource {
 public:
  // Throws InvalidArgument where `file` is missing, no regular file, or may not be read.
  static ByteSource open(const std::filesystem::path& file);
  // The same for a canonical path, following no links any more; errors call it `shown`.
  static ByteSource open_without_links(const std::filesystem::path& file,
                                       const std::filesystem::path& shown);
  // `bytes` must outlive the source. `place` is for errors.
  static ByteSource over(std::string_view bytes, std::string place = "the given bytes");

  ByteSource(ByteSource&& other) noexcept;
  ByteSource& operator=(ByteSource&&) = delete;
  ~ByteSource();

  int64_t size() const { return size_; }
  // How errors call it: "file 'a.onnx'".
  const std::string& place() const { return place_; }

  // Copies [offset, offset + count), which must lie inside. Throws InvalidArgument where the file
  // has become shorter or cannot be read.
  void read(int64_t offset, void* target, size_t count) const;

  // Of the file when it was opened; nullopt for memory.
  const std::optional<FileStamp>& stamp() const { return stamp_; }

  // Takes a read lease on the file, and releases it; see base/file_stamp.h. Memory has no writers.
  void take_lease();
  ReadLease release_lease();

  // A file mapped into memory.
  struct Mapping {
    std::shared_ptr<const std::byte> start;  // of a page; the mapping lives as long
    int descriptor = -1;                     // of the same file, as long; -1: none was left
  };
  // The whole file, which must not be empty. Throws InvalidArgument.
  Mapping map() const;

 private:
  ByteSource() = default;
  // `descriptor` is owned; -1: errno says why.
  static ByteSource from(int descriptor, const std::filesystem::path& shown);

  int descriptor_ = -1;
  std::string_view memory_;
  int64_t size_ = 0;
  std::optional<FileStamp> stamp_;
  ReadLease lease_ = ReadLease::Granted;
  std::string place_;
};

}  // namespace tessera::onnx_import
