#include "backend/plugin.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "backend/contract/status.h"
#include "backend/device.h"
#include "backend/layouts.h"
#include "backend/plugin_ops/plugin_ops.h"
#include "base/threads/fork.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The size of the struct in the first version of the contract; later members were appended.
constexpr size_t kMinBackendBytes = offsetof(tessera_backend, device_interfaces);

bool has_known_size(const tessera_backend& backend) {
  return backend.struct_size >= kMinBackendBytes && backend.struct_size <= sizeof(backend);
}

[[noreturn]] void fail(const std::string& location, const std::string& reason) {
  throw Error(ErrorKind::Unsupported, location, reason);
}

void* load_library(const std::filesystem::path& file, const std::string& location) {
  void* library = nullptr;
  std::string failure;
  const Status status = call_plugin([&](tessera_error*) {
    // RTLD_LOCAL: two plug-ins may use different versions of one library.
    library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) failure = ::dlerror();
    return TESSERA_OK;
  });
  if (!status.is_fine()) fail(location, "could not be loaded: " + status.message);
  if (library == nullptr) fail(location, "could not be loaded: " + failure);
  return library;
}

// The files of all loaded libraries.
std::set<std::string> loaded_files() {
  std::set<std::string> files;
  ::dl_iterate_phdr(
      [](struct dl_phdr_info* info, size_t, void* found) {
        if (info->dlpi_name != nullptr && *info->dlpi_name == '/') {
          static_cast<std::set<std::string>*>(found)->insert(info->dlpi_name);
        }
        return 0;
      },
      &files);
  return files;
}

void* find_symbol(void* library, const char* symbol, const std::string& location) {
  void* found = ::dlsym(library, symbol);
  if (found == nullptr) {
    fail(location, std::string("is no plug-in: it exports no function '") + symbol + "'");
  }
  return found;
}

bool is_legal_name(const char* name) {
  if (name == nullptr || *name == '\0') return false;
  const std::string_view text = name;
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
  });
}

// The reason why an array of a plug-in is illegal; "" if it is legal.
std::string explain_illegal_array(const void* items, int32_t count, const std::string& name) {
  if (count < 0) return "it says that it has " + std::to_string(count) + " " + name;
  if (count > 0 && items == nullptr) return "its list of " + name + " is null";
  return "";
}

std::string explain_illegal_devices(const tessera_backend& backend) {
  for (const tessera_device& device :
       std::span(backend.devices, static_cast<size_t>(backend.device_count))) {
    if (device.kind == nullptr || *device.kind == '\0') return "a device has no kind";
  }
  if (backend.device_interfaces == nullptr) return "";
  std::set<std::string> seen;
  for (int32_t index = 0; index < backend.device_count; ++index) {
    if (backend.device_interfaces[index] == nullptr) continue;
    const std::string name = device_name(backend.devices[index]);
    const std::string location = "device '" + name + "' ";
    if (std::string wrong = explain_illegal_interface(*backend.device_interfaces[index]);
        !wrong.empty()) {
      return location + wrong;
    }
    if (std::string wrong = explain_illegal_device_name(name); !wrong.empty()) {
      return location + wrong;
    }
    if (!seen.insert(name).second) return location + "is listed twice";
  }
  return "";
}

std::string explain_illegal_layouts(const tessera_backend& backend) {
  std::set<std::string> seen;
  for (const tessera_layout& layout :
       std::span(backend.layouts, static_cast<size_t>(backend.layout_count))) {
    if (layout.name == nullptr || *layout.name == '\0') return "a layout has no name";
    const std::string location = "layout '" + std::string(layout.name) + "' ";
    if (std::string wrong = explain_illegal_layout_name(layout.name, backend.name);
        !wrong.empty()) {
      return location + wrong;
    }
    if (layout.device < 0 || layout.device >= backend.device_count) {
      return location + "is on device " + std::to_string(layout.device) + " of " +
             std::to_string(backend.device_count);
    }
    // Without memory of its own, the device is only a label of the host's memory.
    const bool is_on_host = interface_of(backend, layout.device) == nullptr;
    const std::string full = layout.name + (is_on_host ? "" : "@" + std::to_string(layout.device));
    if (!seen.insert(full).second) return location + "is listed twice";
    if (layout.to_default == nullptr) return location + "lacks its conversion to_default";
    if (layout.from_default == nullptr) return location + "lacks its conversion from_default";
    if (layout.storage_bytes == nullptr) return location + "lacks storage_bytes";
  }
  for (const tessera_conversion& conversion :
       std::span(backend.conversions, static_cast<size_t>(backend.conversion_count))) {
    if (conversion.from == nullptr || conversion.to == nullptr || conversion.convert == nullptr) {
      return "a direct conversion lacks its layouts or its function";
    }
  }
  return "";
}

std::string explain_illegal_kernels(const tessera_backend& backend) {
  for (const tessera_op& op : std::span(backend.ops, static_cast<size_t>(backend.op_count))) {
    const std::string wrong = explain_illegal_op(op);
    if (!wrong.empty()) {
      return "its op " + (op.name == nullptr ? "" : "'" + std::string(op.name) + "' ") +
             "is not legal: " + wrong;
    }
  }
  for (const tessera_simple_kernel& kernel :
       std::span(backend.simple_kernels, static_cast<size_t>(backend.simple_kernel_count))) {
    if (kernel.op == nullptr || kernel.domain == nullptr || kernel.run == nullptr ||
        kernel.explain_refusal == nullptr) {
      return "a simple kernel lacks its op, its domain or a function";
    }
  }
  return "";
}

}  // namespace

std::string explain_illegal(const tessera_backend& backend) {
  if (!has_known_size(backend)) {
    return "its tessera_backend has " + std::to_string(backend.struct_size) + " bytes, expected " +
           std::to_string(kMinBackendBytes) + " to " + std::to_string(sizeof(backend));
  }
  if (!is_legal_name(backend.name)) {
    return "its name is not made of lower-case letters, digits and '_'";
  }
  if (backend.version == nullptr) return "it has no version";
  if (backend.device_count < 1) return "it has no device";
  for (const auto& [items, count, name] :
       {std::tuple<const void*, int32_t, std::string>(backend.ingredients, backend.ingredient_count,
                                                      "ingredients"),
        {backend.devices, backend.device_count, "devices"},
        {backend.layouts, backend.layout_count, "layouts"},
        {backend.conversions, backend.conversion_count, "conversions"},
        {backend.ops, backend.op_count, "ops"},
        {backend.simple_kernels, backend.simple_kernel_count, "simple kernels"}}) {
    if (std::string wrong = explain_illegal_array(items, count, name); !wrong.empty()) return wrong;
  }
  if (std::string wrong = explain_illegal_devices(backend); !wrong.empty()) return wrong;
  if (std::string wrong = explain_illegal_layouts(backend); !wrong.empty()) return wrong;
  return explain_illegal_kernels(backend);
}

Plugin::Plugin(tessera_open_backend_function open_function, const std::string& location,
               std::shared_ptr<HostServices> services)
    : host_(std::move(services), location) {
  abi_.struct_size = sizeof(abi_);
  const Status status =
      call_plugin([&](tessera_error* error) { return open_function(host_.abi(), &abi_, error); });
  if (!status.is_fine()) fail(location, "could not be opened: " + status.message);
  // An older plug-in does not know the members that were appended.
  if (abi_.struct_size < offsetof(tessera_backend, compile_counts)) {
    abi_.device_interfaces = nullptr;
  }
  if (abi_.struct_size < sizeof(abi_)) abi_.compile_counts = nullptr;
  if (std::string wrong = explain_illegal(abi_); !wrong.empty()) {
    // In a struct of another size, `release` may have another position.
    if (has_known_size(abi_)) release();
    fail(location, "is not a legal plug-in: " + wrong);
  }
  name_ = abi_.name;
  version_ = abi_.version;
  for (const tessera_ingredient& ingredient :
       std::span(abi_.ingredients, static_cast<size_t>(abi_.ingredient_count))) {
    if (ingredient.name == nullptr || ingredient.value == nullptr) continue;
    ingredients_ += std::string(ingredient.name) + "=" + ingredient.value + ";";
  }
}

// The state of the library belongs to the process that opened it.
Plugin::~Plugin() {
  if (!is_forked()) release();
}

std::optional<tessera_compile_counts> Plugin::compile_counts() const {
  if (abi_.compile_counts == nullptr) return std::nullopt;
  tessera_compile_counts counts = {};
  counts.struct_size = sizeof(counts);
  counts.kernels = -1;
  abi_.compile_counts(abi_.self, &counts);
  if (counts.kernels < 0) return std::nullopt;
  counts.compiled += compiled_elsewhere_;
  counts.compile_seconds += seconds_elsewhere_;
  return counts;
}

void Plugin::add_compiled_elsewhere(int64_t codes, double seconds) const {
  compiled_elsewhere_ += codes;
  seconds_elsewhere_ += seconds;
}

void Plugin::release() {
  if (abi_.release == nullptr) return;
  call_plugin([&](tessera_error*) {
    abi_.release(abi_.self);
    return TESSERA_OK;
  });
}

std::shared_ptr<const Plugin> Plugin::open(const std::filesystem::path& file,
                                           std::shared_ptr<HostServices> services) {
  const NoForkSection section;
  const std::string location = "plug-in '" + file.filename().string() + "'";
  const std::set<std::string> before = loaded_files();
  void* library = load_library(file, location);
  const auto contract = reinterpret_cast<tessera_contract_version_function>(
      find_symbol(library, TESSERA_CONTRACT_VERSION_SYMBOL, location));
  const auto open_backend = reinterpret_cast<tessera_open_backend_function>(
      find_symbol(library, TESSERA_OPEN_BACKEND_SYMBOL, location));
  uint32_t version = 0;
  const Status status = call_plugin([&](tessera_error*) {
    version = contract();
    return TESSERA_OK;
  });
  if (!status.is_fine()) fail(location, "could not be opened: " + status.message);
  if (version != TESSERA_CONTRACT_VERSION) {
    fail(location, "was built for version " + std::to_string(version) +
                       " of the plug-in contract, this is version " +
                       std::to_string(TESSERA_CONTRACT_VERSION) + "; build it again");
  }
  std::shared_ptr<Plugin> plugin(new Plugin(open_backend, location, std::move(services)));
  plugin->file_ = file;
  for (const std::string& loaded : loaded_files()) {
    if (!before.contains(loaded) && loaded != file) plugin->libraries_.emplace_back(loaded);
  }
  return plugin;
}

std::shared_ptr<const Plugin> Plugin::open_linked(tessera_open_backend_function open,
                                                  const std::string& location,
                                                  std::shared_ptr<HostServices> services) {
  return std::shared_ptr<const Plugin>(new Plugin(open, location, std::move(services)));
}

}  // namespace tessera
