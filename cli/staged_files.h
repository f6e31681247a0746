// Files that a command writes: all of them appear, or none.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "tessera/tensor.h"

namespace tessera::cli {

// Throws InvalidArgument, naming `option` ("--html"), where it can be told already that `file`
// cannot be written: what it is to hold may take minutes to find out. Passes "", which is no file.
void check_writable_file(std::string_view option, const std::filesystem::path& file);
// The same for files in `folder`, which StagedFiles makes where it is missing.
void check_writable_folder(std::string_view option, const std::filesystem::path& folder);

// Files are written under other names beside where they belong and get their own in commit(). What
// was not committed is removed again, with the folders that were made for it, so that a command
// which fails halfway leaves nothing partial.
class StagedFiles {
 public:
  StagedFiles() = default;
  ~StagedFiles();
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;

  // Where to write what commit() makes `file`. Makes the folders above it that are missing. A
  // device or pipe is given back as it is. Throws DeviceFailed where a folder cannot be made, and
  // InvalidArgument where `file` is a folder.
  std::filesystem::path stage(const std::filesystem::path& file);

  // Stages `file` with `text` in it. Throws DeviceFailed where that cannot be written.
  void write_text(const std::filesystem::path& file, std::string_view text);

  // Stages `file` with `tensor` in it, as .npy. Throws DeviceFailed where that cannot be written.
  void write_tensor(const std::filesystem::path& file, const Tensor& tensor);

  // Throws DeviceFailed naming the first file that cannot get its name.
  void commit();

 private:
  struct StagedFile {
    std::filesystem::path staged;
    std::filesystem::path final;
  };

  void make_folders(const std::filesystem::path& folder);

  std::vector<StagedFile> files_;
  std::vector<std::filesystem::path> folders_;  // made here, outer before inner
};

}  // namespace tessera::cli
