#include "backend/layouts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "backend/contract/status.h"
#include "base/errors/check.h"
#include "base/errors/likely_name.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// backend_abi.h defines each of them.
constexpr std::array<std::string_view, 3> kSharedNames = {"nhwc", "nchw8c", "nchw16c"};

tessera_type to_abi(const TensorType& type) {
  return {static_cast<int32_t>(type.element), static_cast<int32_t>(type.dims.size()),
          type.dims.data()};
}

}  // namespace

std::optional<TensorType> known_type(const Type& type) {
  if (!type.is_known_tensor() || type.element == DataType::String) return std::nullopt;
  return TensorType{type.element, dims_from(*type.shape)};
}

bool is_shared_layout_name(std::string_view name) {
  return std::find(kSharedNames.begin(), kSharedNames.end(), name) != kSharedNames.end();
}

std::string explain_illegal_layout_name(const std::string& name, const std::string& backend) {
  if (is_shared_layout_name(name)) return "";
  if (name.starts_with(backend + ":") && name.size() > backend.size() + 1) {
    // Names are printed and are part of the keys of packs.
    const std::string own = name.substr(backend.size() + 1);
    const bool is_plain = std::all_of(own.begin(), own.end(), [](char letter) {
      return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
    });
    return is_plain ? "" : "has a name that is not made of lower-case letters, digits and '_'";
  }
  return "has a name that is neither shared (nhwc, nchw8c, nchw16c) nor begins with '" + backend +
         ":'";
}

DeviceFilter allow_devices(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return [names](const std::string& name) -> std::string {
    const bool is_named = std::ranges::find(names, name) != names.end();
    return is_named ? "" : "it is not among the chosen devices";
  };
}

std::vector<SparseForm> sparse_forms(const Graph& graph) {
  std::vector<SparseForm> forms;
  for (const Value& value : graph.values) {
    if (value.sparse) forms.push_back(*value.sparse);
  }
  std::sort(forms.begin(), forms.end());
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  return forms;
}

LayoutTable::LayoutTable(std::span<const std::shared_ptr<const Plugin>> plugins,
                         std::span<const SparseForm> forms, const DeviceFilter& filter) {
  add({.name = TESSERA_LAYOUT_DEFAULT, .format = TESSERA_LAYOUT_DEFAULT});
  for (const auto& plugin : plugins) add_devices(plugin, filter);
  for (const auto& plugin : plugins) add_layouts(*plugin);
  add_copies();
  for (const auto& plugin : plugins) add_conversions(*plugin);
  for (const SparseForm& form : forms) add_form(form);
}

LayoutId LayoutTable::add(Entry entry) {
  entries_.push_back(std::move(entry));
  return LayoutId{static_cast<int32_t>(entries_.size()) - 1};
}

void LayoutTable::add_form(const SparseForm& form) {
  const LayoutId id = add({.name = text(form),
                           .format = text(form),
                           .is_dense = false,
                           .form = std::make_unique<SparseForm>(form)});
  void* self = entries_.back().form.get();
  conversions_.push_back({id, kDefaultLayout, nullptr, sparse_to_default, self});
  conversions_.push_back({kDefaultLayout, id, nullptr, sparse_from_default, self});
}

void LayoutTable::add_devices(const std::shared_ptr<const Plugin>& plugin,
                              const DeviceFilter& filter) {
  for (int32_t index = 0; index < plugin->abi().device_count; ++index) {
    if (interface_of(plugin->abi(), index) == nullptr) continue;
    Device device(plugin, index);
    std::string reason = filter ? filter(device.name()) : "";
    if (reason.empty() && find_device(device.name())) {
      reason = "another backend has a device of that name";
    }
    if (reason.empty()) reason = device.explain_unusable();
    if (reason.empty()) {
      add_device(std::move(device));
    } else {
      left_out_.push_back({plugin.get(), device.name(), std::move(reason)});
    }
  }
}

void LayoutTable::add_device(Device device) {
  Entry entry{.name = std::string(TESSERA_LAYOUT_DEFAULT) + "@" + device.name(),
              .format = TESSERA_LAYOUT_DEFAULT,
              .device_label = device.name()};
  devices_.push_back(std::move(device));
  entry.device = DeviceId{static_cast<int32_t>(devices_.size())};
  add(std::move(entry));
}

void LayoutTable::add_layouts(const Plugin& plugin) {
  const tessera_backend& abi = plugin.abi();
  for (const tessera_layout& layout :
       std::span(abi.layouts, static_cast<size_t>(abi.layout_count))) {
    add_layout(plugin, layout);
  }
}

void LayoutTable::add_layout(const Plugin& plugin, const tessera_layout& layout) {
  const tessera_backend& abi = plugin.abi();
  Entry entry{.name = layout.name,
              .format = layout.name,
              .is_dense = (layout.flags & TESSERA_LAYOUT_IS_DENSE) != 0,
              .abi = &layout,
              .device_label = device_name(abi.devices[layout.device])};
  if (interface_of(abi, layout.device) != nullptr) {
    const std::optional<DeviceId> device = find_device(entry.device_label);
    if (!device || &this->device(*device).plugin() != &plugin) return;
    entry.device = *device;
    entry.name += "@" + entry.device_label;
  }
  const DeviceId device = entry.device;
  // A shared layout of two plug-ins is the same.
  const std::optional<LayoutId> known = find(entry.name);
  const LayoutId id = known ? *known : add(std::move(entry));
  const LayoutId dense = default_layout(device);
  add_conversion({id, dense, &plugin, layout.to_default, layout.self, device});
  add_conversion({dense, id, &plugin, layout.from_default, layout.self, device});
}

// The first plug-in's conversion is used, unless it is a simple one and the other's is not.
void LayoutTable::add_conversion(const ConversionStep& step) {
  const auto known = std::ranges::find_if(conversions_, [&](const ConversionStep& other) {
    return other.from == step.from && other.to == step.to;
  });
  if (known == conversions_.end()) {
    conversions_.push_back(step);
  } else if (is_simple(*known) && !is_simple(step)) {
    *known = step;
  }
}

bool LayoutTable::is_simple(const ConversionStep& step) const {
  if (step.plugin == nullptr) return false;
  const tessera_backend& abi = step.plugin->abi();
  return std::ranges::any_of(
      std::span(abi.layouts, static_cast<size_t>(abi.layout_count)),
      [&](const tessera_layout& layout) {
        return (layout.flags & TESSERA_LAYOUT_HAS_SIMPLE_CONVERSIONS) != 0 &&
               (layout.name == format(step.from) || layout.name == format(step.to));
      });
}

// Copies between the memories that have the same format, which need no conversion.
void LayoutTable::add_copies() {
  const auto count = static_cast<int32_t>(entries_.size());
  for (int32_t from = 0; from < count; ++from) {
    for (int32_t to = 0; to < count; ++to) add_copy({from}, {to});
  }
}

void LayoutTable::add_copy(LayoutId from, LayoutId to) {
  const DeviceId source = device_of(from);
  const DeviceId target = device_of(to);
  if (source == target || format(from) != format(to)) return;
  const bool is_to_host = target == kHostDevice;
  const Device& device = this->device(is_to_host ? source : target);
  ConversionStep step{.from = from,
                      .to = to,
                      .plugin = &device.plugin(),
                      .convert = is_to_host ? copy_to_host : copy_to_device,
                      .device = is_to_host ? source : target};
  DeviceCopy copy{.device = &device.abi()};
  if (!is_to_host && source != kHostDevice) {
    const Device& peer = this->device(source);
    if (&peer.plugin() != &device.plugin() || device.abi().copy_from_peer == nullptr) return;
    step.convert = copy_from_peer;
    copy.peer = &peer.abi();
  }
  copies_.push_back(std::make_unique<const DeviceCopy>(copy));
  step.self = const_cast<DeviceCopy*>(copies_.back().get());
  conversions_.push_back(step);
}

void LayoutTable::add_conversions(const Plugin& plugin) {
  const tessera_backend& abi = plugin.abi();
  for (const tessera_conversion& conversion :
       std::span(abi.conversions, static_cast<size_t>(abi.conversion_count))) {
    const std::optional<LayoutId> from = find(conversion.from);
    const std::optional<LayoutId> to = find(conversion.to);
    // A conversion between layouts of which one is missing is useless.
    if (!from || !to) continue;
    const DeviceId device = device_of(*to) != kHostDevice ? device_of(*to) : device_of(*from);
    add_conversion({*from, *to, &plugin, conversion.convert, conversion.self, device});
  }
}

std::optional<DeviceId> LayoutTable::find_device(const std::string& name) const {
  for (size_t index = 0; index < devices_.size(); ++index) {
    if (devices_[index].name() == name) return DeviceId{static_cast<int32_t>(index) + 1};
  }
  return std::nullopt;
}

std::string LayoutTable::explain_left_out(const Plugin& plugin, const std::string& name) const {
  for (const LeftOut& device : left_out_) {
    if (device.plugin == &plugin && device.device == name) return device.reason;
  }
  return "";
}

LayoutId LayoutTable::default_layout(DeviceId device) const {
  // Devices are added in order, right after the default layout of the host.
  return LayoutId{device.index};
}

std::optional<LayoutId> LayoutTable::find(const std::string& name) const {
  for (size_t index = 0; index < entries_.size(); ++index) {
    if (entries_[index].name == name) return LayoutId{static_cast<int32_t>(index)};
  }
  return std::nullopt;
}

std::optional<SparseForm> LayoutTable::sparse_form(LayoutId id) const {
  return entry(id).form ? std::optional(*entry(id).form) : std::nullopt;
}

LayoutId LayoutTable::io_layout(const Value& value) const {
  if (!value.io_device.empty()) {
    const std::optional<DeviceId> device = find_device(value.io_device);
    TESSERA_CHECK(device.has_value(), "check_io_devices() was called before");
    return default_layout(*device);
  }
  if (!value.is_io_sparse) return kDefaultLayout;
  const std::optional<LayoutId> found = find(text(*value.sparse));
  TESSERA_CHECK(found.has_value(), "the table is made with the forms of the graph's values");
  return *found;
}

const Value* LayoutTable::find_missing_io_device(const Graph& graph) const {
  const auto found = std::ranges::find_if(graph.values, [&](const Value& value) {
    return !value.io_device.empty() && !find_device(value.io_device);
  });
  return found == graph.values.end() ? nullptr : &*found;
}

void LayoutTable::check_io_devices(const Graph& graph) const {
  const Value* const value = find_missing_io_device(graph);
  if (value == nullptr) return;
  std::vector<std::string> names;
  std::string known;
  for (const Device& device : devices_) {
    names.push_back(device.name());
    known += (known.empty() ? "one of '" : ", '") + device.name() + "'";
  }
  throw Error(ErrorKind::InvalidArgument, "layout of '" + value->name + "'",
              "expected a device in use that has memory of its own (" +
                  (known.empty() ? "there is none" : known) + "), found '" + value->io_device +
                  "'" + did_you_mean(value->io_device, names) +
                  (known.empty() ? "; name its backend to use it" : ""));
}

std::optional<int64_t> LayoutTable::storage_bytes(LayoutId id, const TensorType& type) const {
  if (const SparseForm* form = entry(id).form.get()) {
    const int64_t bytes = sparse_bytes(form->format, type.element, type.dims, form->capacity);
    return bytes < 0 ? std::nullopt : std::optional(bytes);
  }
  const int64_t dense = tensor_bytes(type.element, type.dims);
  // Devices take no strings: these are pointers into the host's memory.
  if (device_of(id) != kHostDevice && type.element == DataType::String) return std::nullopt;
  const tessera_layout* layout = entry(id).abi;
  // A plug-in may not know them.
  if (layout != nullptr && is_small(type.element)) return std::nullopt;
  if (layout == nullptr) return dense;
  const tessera_type abi = to_abi(type);
  int64_t bytes = -1;
  call_plugin([&](tessera_error*) {
    bytes = layout->storage_bytes(layout->self, &abi);
    return TESSERA_OK;
  });
  return bytes < 0 || bytes > kMaxPluginBytes ? std::nullopt : std::optional(bytes);
}

int64_t LayoutTable::known_storage_bytes(LayoutId id, const TensorType& type) const {
  const std::optional<int64_t> bytes = storage_bytes(id, type);
  if (bytes) return *bytes;
  throw Error(ErrorKind::DeviceFailed, "layout '" + name(id) + "'",
              "expected the plug-in to return the storage size of a tensor as it did before, found "
              "no valid size");
}

int LayoutTable::hops(LayoutId from, LayoutId to) const {
  const auto has_direct = [&](LayoutId begin, LayoutId end) {
    return std::ranges::any_of(conversions_, [&](const ConversionStep& step) {
      return step.from == begin && step.to == end;
    });
  };
  const auto in_one_memory = [&](LayoutId begin, LayoutId end) {
    return begin == end ? 0 : has_direct(begin, end) ? 1 : 2;
  };
  if (from == to) return 0;
  if (has_direct(from, to)) return 1;
  const LayoutId source = default_layout(device_of(from));
  const LayoutId target = default_layout(device_of(to));
  if (source == target) return 2;
  const int between = has_direct(source, target) ? 1 : 2;  // through the host's memory
  return in_one_memory(from, source) + between + in_one_memory(target, to);
}

std::vector<ConversionStep> LayoutTable::route(LayoutId from, LayoutId to,
                                               const TensorType& type) const {
  // Dijkstra's algorithm; with a dozen layouts, a linear search for the nearest is sufficient.
  constexpr int64_t kUnreached = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> distance(entries_.size(), kUnreached);
  std::vector<const ConversionStep*> arrival(entries_.size(), nullptr);
  std::vector<bool> is_done(entries_.size(), false);
  const auto at = [](LayoutId id) { return static_cast<size_t>(id.index); };
  distance[at(from)] = 0;
  while (true) {
    size_t nearest = entries_.size();
    for (size_t index = 0; index < entries_.size(); ++index) {
      if (is_done[index] || distance[index] == kUnreached) continue;
      if (nearest == entries_.size() || distance[index] < distance[nearest]) nearest = index;
    }
    if (nearest == entries_.size() || nearest == at(to)) break;
    is_done[nearest] = true;
    for (const ConversionStep& step : conversions_) {
      if (at(step.from) != nearest) continue;
      const std::optional<int64_t> read = storage_bytes(step.from, type);
      const std::optional<int64_t> written = storage_bytes(step.to, type);
      if (!read || !written) continue;
      // One more byte per step: prefers the shorter of two routes with equal traffic.
      const int64_t length = distance[nearest] + *read + *written + 1;
      if (length >= distance[at(step.to)]) continue;
      distance[at(step.to)] = length;
      arrival[at(step.to)] = &step;
    }
  }
  TESSERA_CHECK(distance[at(to)] != kUnreached, "every layout converts to and from the default");
  std::vector<ConversionStep> steps;
  for (LayoutId layout = to; layout != from; layout = arrival[at(layout)]->from) {
    steps.push_back(*arrival[at(layout)]);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

void convert(const ConversionStep& step, const std::string& layout, RunContext& context,
             const tessera_buffer& from, const tessera_buffer& to) {
  const Status status = call_plugin([&](tessera_error* error) {
    return context.checked(step.convert(step.self, context.abi(), &from, &to, error), error);
  });
  if (!status.is_fine()) fail_conversion(step.plugin, layout, status);
}

void fail_conversion(const Plugin* plugin, const std::string& layout, const Status& status) {
  const std::string reason = status.message.empty() ? "failed without a reason" : status.message;
  if (plugin == nullptr) throw Error(status.kind(), layout, reason);
  throw Error(status.kind(), layout,
              "backend '" + plugin->name() + "' could not convert: " + reason);
}

}  // namespace tessera
