#include "cli/output/staged_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "base/files/writable_path.h"
#include "tessera/error.h"
#include "tessera/tensor_file.h"

namespace tessera::cli {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::error_code& error) {
  throw Error(ErrorKind::DeviceFailed, "'" + path.string() + "'",
              "cannot be written: " + error.message());
}

std::error_code last_error() { return {errno != 0 ? errno : EIO, std::system_category()}; }

void refuse(std::string_view option, const std::filesystem::path& path, const std::string& reason) {
  if (reason.empty()) return;
  throw Error(ErrorKind::InvalidArgument, std::string(option) + " '" + path.string() + "'", reason);
}

}  // namespace

void check_writable_file(std::string_view option, const std::filesystem::path& file) {
  if (!file.empty()) refuse(option, file, explain_unwritable_file(file));
}

void check_writable_folder(std::string_view option, const std::filesystem::path& folder) {
  if (!folder.empty()) refuse(option, folder, explain_unwritable_folder(folder));
}

StagedFiles::~StagedFiles() {
  std::error_code ignored;
  for (const StagedFile& file : files_) std::filesystem::remove(file.staged, ignored);
  // A folder that contains files by now is not removed.
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
    std::filesystem::remove(*folder, ignored);
  }
}

void StagedFiles::make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return;
  make_folders(folder.parent_path());
  if (std::filesystem::create_directory(folder, error)) folders_.push_back(folder);
  if (error) fail(folder, error);
}

std::filesystem::path StagedFiles::stage(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(file, ignored).type();
  if (type == std::filesystem::file_type::directory) {
    throw Error(ErrorKind::InvalidArgument, "'" + file.string() + "'",
                "expected a file to write, found a folder");
  }
  const bool is_new = type == std::filesystem::file_type::not_found;
  if (!is_new && type != std::filesystem::file_type::regular) return file;
  const bool is_taken = std::any_of(files_.begin(), files_.end(), [&](const StagedFile& other) {
    return other.final.lexically_normal() == file.lexically_normal();
  });
  if (is_taken) {
    throw Error(ErrorKind::InvalidArgument, "'" + file.string() + "'",
                "expected one option to write it, found two: give them different places");
  }
  make_folders(file.parent_path());
  std::filesystem::path staged = file;
  staged += ".staged-" + std::to_string(getpid());
  files_.push_back({staged, file});
  return staged;
}

void StagedFiles::write_text(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path staged = stage(file);
  errno = 0;
  std::FILE* const stream = std::fopen(staged.c_str(), "wb");
  if (stream == nullptr) fail(file, last_error());
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  const std::error_code write_error = is_written ? std::error_code() : last_error();
  const bool is_closed = std::fclose(stream) == 0;
  if (write_error) fail(file, write_error);
  if (!is_closed) fail(file, last_error());
}

void StagedFiles::write_tensor(const std::filesystem::path& file, const Tensor& tensor) {
  const std::filesystem::path staged = stage(file);
  try {
    write_npy(staged, tensor);
  } catch (const Error& error) {
    // The user knows only the file's final name.
    throw Error(error.kind(), "'" + file.string() + "'", error.message());
  }
}

void StagedFiles::commit() {
  for (const StagedFile& file : files_) {
    std::error_code error;
    std::filesystem::rename(file.staged, file.final, error);
    if (error) fail(file.final, error);
  }
  files_.clear();
  folders_.clear();
}

}  // namespace tessera::cli
