#include "import/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

int64_t parse_number(const std::string& text, const std::string& key, const std::string& where) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw Error(
        ErrorKind::InvalidModel, where,
        "expected a number of bytes as " + key + " of the external data, found '" + text + "'");
  }
  return value;
}

bool is_inside(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const auto [folder_end, file_position] =
      std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return folder_end == folder.end() && file_position != file.end();
}

}  // namespace

ExternalLocation external_location(const onnx::TensorProto& tensor, const std::string& where) {
  ExternalLocation result;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") result.location = entry.value();
    if (entry.key() == "offset") result.offset = parse_number(entry.value(), "offset", where);
    if (entry.key() == "length") result.length = parse_number(entry.value(), "length", where);
  }
  if (result.location.empty()) {
    throw Error(ErrorKind::InvalidModel, where, "its external data has no location");
  }
  return result;
}

ExternalData::ExternalData(const std::vector<std::filesystem::path>& folders, std::string name)
    : name_(std::move(name)) {
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    std::filesystem::path canonical =
        std::filesystem::canonical(folder.empty() ? std::filesystem::path(".") : folder, error);
    const bool is_new = std::find(folders_.begin(), folders_.end(), canonical) == folders_.end();
    if (!error && is_new) folders_.push_back(std::move(canonical));
  }
}

ExternalData::ExternalData(const EmbeddedFiles& files,
                           const std::shared_ptr<const std::byte>& owner)
    : is_embedded_(true) {
  for (const auto& [name, bytes] : files) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    files_.emplace(name, ExternalFile{ByteSource::over(text, "external data '" + name + "'"),
                                      {.start = {owner, bytes.data()}}});
  }
}

std::filesystem::path ExternalData::resolve(const std::string& location,
                                            const std::string& where) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorKind::InvalidModel, where,
                "expected external data in a file in " + name_ + ", found '" + location +
                    "', which " + why);
  };
  const std::filesystem::path path(location);
  if (location.find('\0') != std::string::npos) refuse("is no file name");
  if (path.is_absolute()) refuse("is absolute");
  if (std::find(path.begin(), path.end(), "..") != path.end()) refuse("has '..' in it");
  for (const std::filesystem::path& folder : folders_) {
    std::error_code error;
    std::filesystem::path found = std::filesystem::canonical(folder / path, error);
    if (error) continue;
    const bool is_allowed = std::any_of(
        folders_.begin(), folders_.end(),
        [&](const std::filesystem::path& allowed) { return is_inside(allowed, found); });
    if (!is_allowed) refuse("is a link that leaves the folder");
    return found;
  }
  refuse("does not exist");
  return {};
}

ExternalFile& ExternalData::open(const std::string& location, const std::string& where) {
  if (is_embedded_) {
    const auto found = files_.find(std::filesystem::path(location).lexically_normal());
    if (found != files_.end()) return found->second;
    throw Error(
        ErrorKind::InvalidModel, where,
        "expected its external data '" + location + "' inside the bundle, found no such file");
  }
  const std::filesystem::path file = resolve(location, where);
  locations_.emplace(location, file);
  const auto known = files_.find(file);
  if (known != files_.end()) return known->second;
  try {
    ByteSource source = ByteSource::open_without_links(file, file);
    if (takes_leases_) source.take_lease();
    return files_.emplace(file, ExternalFile{std::move(source), {}}).first->second;
  } catch (const Error& error) {
    throw Error(ErrorKind::InvalidModel, where,
                "its external data '" + location + "': " + error.message());
  }
}

ReadLease ExternalData::release_leases() {
  ReadLease worst = ReadLease::Granted;
  for (auto& [path, file] : files_) worst = std::max(worst, file.source.release_lease());
  return worst;
}

const std::shared_ptr<const std::byte>& mapped(ExternalFile& file) {
  if (file.mapping.start == nullptr) file.mapping = file.source.map();
  return file.mapping.start;
}

}  // namespace tessera::onnx_import
