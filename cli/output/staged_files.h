// Writes the files of a command so that either all of them appear, or none.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::cli {

// Throws InvalidArgument, naming `option` ("--html"), if it is already certain that `file` cannot
// be written. Commands call this first, because their results may take minutes to compute. Accepts
// "", which means no file.
void check_writable_file(std::string_view option, const std::filesystem::path& file);
// Same as check_writable_file() for files in `folder`, which StagedFiles creates if necessary.
void check_writable_folder(std::string_view option, const std::filesystem::path& folder);

// Writes files under temporary names next to their destinations; commit() renames them. The
// destructor removes files that were not committed, and the folders created for them, so that a
// command that fails halfway leaves nothing behind.
class StagedFiles {
 public:
  StagedFiles() = default;
  ~StagedFiles();
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;

  // Returns the path to write to; commit() renames it to `file`. Creates missing parent folders. A
  // device or pipe is returned unchanged. Throws DeviceFailed if a folder cannot be created, and
  // InvalidArgument if `file` is a folder.
  std::filesystem::path stage(const std::filesystem::path& file);

  // Stages `file` with the content `text`. Throws DeviceFailed if it cannot be written.
  void write_text(const std::filesystem::path& file, std::string_view text);

  // Stages `file` with `tensor` as .npy. Throws DeviceFailed if it cannot be written.
  void write_tensor(const std::filesystem::path& file, const Tensor& tensor);

  // Throws DeviceFailed, naming the first file that cannot be renamed.
  void commit();

 private:
  struct StagedFile {
    std::filesystem::path staged;
    std::filesystem::path final;
  };

  void make_folders(const std::filesystem::path& folder);

  std::vector<StagedFile> files_;
  std::vector<std::filesystem::path> folders_;  // folders created here, parents before children
};

}  // namespace tessera::cli
