// Backends: the public handle of a set of plug-ins, and the environment variables that configure
// it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "api/options/backends_state.h"
#include "api/options/environment.h"
#include "backend/device.h"
#include "backend/device_memory/owned_storage.h"
#include "base/process/module_folder.h"
#include "base/process/trusted_code.h"
#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

std::vector<std::string> split(const char* text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (const char* letter = text; letter != nullptr && *letter != '\0'; ++letter) {
    if (*letter != separator) {
      part += *letter;
    } else if (!part.empty()) {
      parts.push_back(std::exchange(part, {}));
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}

}  // namespace

std::filesystem::path plugin_folder() {
  const std::filesystem::path folder = module_folder();
  if (folder.empty()) return {};
  std::filesystem::path refused;
  std::error_code failure;
  for (const std::filesystem::path& directory :
       {folder / "backends", folder / ".." / "lib" / "tessera",
        folder / ".." / ".." / "lib" / "tessera"}) {
    if (!std::filesystem::is_directory(directory, failure)) continue;
    std::filesystem::path found = std::filesystem::canonical(directory, failure);
    if (failure) continue;
    if (explain_untrusted_folder(found, trusted_owners()).empty()) return found;
    if (refused.empty()) refused = std::move(found);
  }
  return refused;
}

void Backends::State::warn_once_if_slow(const BindOptions& options, const Log& log) {
  if (!options.backends.empty() || !backends_of_environment().empty()) return;
  if (set.choose_names({}).size() > 1) return;
  std::call_once(has_warned_of_slowness, [&] {
    constexpr const char* kSlow =
        ", so models run on the reference kernels, which are many times slower; ";
    // The program `tessera` is installed elsewhere, if at all, and cannot tell why.
    const auto is_found = [](const BackendState& state) { return !state.file.empty(); };
    if (plugin_folder().empty() && std::ranges::none_of(set.states(), is_found)) {
      log.warn(
          "no acceleration library can be used: no folder lib/tessera with plug-ins lies "
          "beside '" +
          module_file().string() + "'" + kSlow +
          "install the whole of Tessera, or name the folder in TESSERA_BACKEND_PATH");
      return;
    }
    std::string reasons;
    for (const BackendState& state : set.states()) {
      if (state.plugin != nullptr) continue;
      reasons += reasons.empty() ? "" : ", ";
      reasons += state.name + ": " + name(state.unusable.status);
    }
    log.warn("no acceleration library can be used (" + reasons + ")" + kSlow +
             "'tessera backends' says why, and what to do");
  });
}

std::string version() { return TESSERA_VERSION; }

const char* name(BackendStatus status) {
  constexpr std::array kNames = {"usable", "not built", "library missing", "refused"};
  return kNames[static_cast<size_t>(status)];
}

std::vector<std::string> backends_of_environment() {
  return split(std::getenv("TESSERA_BACKENDS"), ',');
}

std::vector<std::string> backend_paths_of_environment() {
  return split(std::getenv("TESSERA_BACKEND_PATH"), ':');
}

Backends::Backends() : state_(std::make_shared<State>(plugin_folder())) {
  for (const std::string& path : backend_paths_of_environment()) {
    try {
      state_->set.add_path(path);
    } catch (const Error& error) {
      // A wrong variable must not stop a program that does not need it.
      state_->services->log().warn("TESSERA_BACKEND_PATH: " + error.message());
    }
  }
}

void Backends::add_path(const std::filesystem::path& path) { state_->set.add_path(path); }

void Backends::load_backend(const std::filesystem::path& library) { state_->set.load(library); }

Tensor Backends::new_tensor(DataType type, std::vector<int64_t> dims,
                            const std::string& device) const {
  return tessera::new_tensor(state_->set.device(device), type, std::move(dims));
}

Tensor Backends::to_device(const Tensor& tensor, const std::string& device) const {
  if (tensor.type() == DataType::String) {
    throw Error(ErrorKind::InvalidArgument, "device '" + device + "'",
                "expected a tensor of numbers or bools, found strings");
  }
  const Tensor source = tensor.to_host();
  const Tensor copy = new_tensor(source.type(), source.dims(), device);
  copy.device_storage()->copy_from_host(0, source.data(), source.bytes());
  return copy;
}

Tensor Backends::tensor_over(DataType type, std::vector<int64_t> dims, const std::string& device,
                             std::shared_ptr<void> owner, void* handle,
                             int64_t offset_bytes) const {
  return tessera::tensor_over(state_->set.device(device), type, std::move(dims), std::move(owner),
                              handle, offset_bytes);
}

std::string Backends::device_named(const DlpackDevice& called) const {
  const std::optional<Device> device = state_->set.find_device(called);
  return device ? device->name() : "";
}

std::vector<BackendDescription> Backends::describe() const {
  std::vector<BackendDescription> descriptions;
  for (const BackendState& state : state_->set.states()) {
    BackendDescription& description = descriptions.emplace_back();
    description.name = state.name;
    description.aliases = state.aliases;
    description.file = state.file;
    description.status = state.unusable.status;
    description.reason = state.unusable.reason;
    description.remedy = state.unusable.remedy;
    description.is_usable = state.plugin != nullptr;
    if (!state.plugin) continue;
    const tessera_backend& abi = state.plugin->abi();
    description.version = state.plugin->version();
    for (int32_t index = 0; index < abi.device_count; ++index) {
      description.devices.push_back(device_name(abi.devices[index]));
    }
    for (int32_t index = 0; index < abi.layout_count; ++index) {
      const tessera_layout& layout = abi.layouts[index];
      const bool is_on_device = interface_of(abi, layout.device) != nullptr;
      description.layouts.push_back(
          layout.name +
          (is_on_device ? "@" + device_name(abi.devices[layout.device]) : std::string()));
    }
    description.op_count = abi.simple_kernel_count;
  }
  // The last entry is the reference backend, which supports all ops that have a kernel.
  int64_t op_count = 0;
  const ops::Registry registry = ops::make_registry();
  for (const ops::Op* op : registry.all()) op_count += op->kernel != nullptr ? 1 : 0;
  descriptions.back().op_count = op_count;
  return descriptions;
}

}  // namespace tessera
