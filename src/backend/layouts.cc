#include "backend/layouts.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "backend/sparse_layouts.h"
#include "backend/status.h"
#include "base/check.h"
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
  if (!type.is_known_tensor()) return std::nullopt;
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
                         std::span<const SparseForm> forms) {
  entries_.push_back({TESSERA_LAYOUT_DEFAULT, true, nullptr, {}});
  for (const auto& plugin : plugins) add_layouts(*plugin);
  for (const auto& plugin : plugins) add_conversions(*plugin);
  for (const SparseForm& form : forms) add_form(form);
}

void LayoutTable::add_form(const SparseForm& form) {
  const LayoutId id{static_cast<int32_t>(entries_.size())};
  entries_.push_back({text(form), false, nullptr, std::make_unique<SparseForm>(form)});
  void* self = entries_.back().form.get();
  conversions_.push_back({id, kDefaultLayout, nullptr, sparse_to_default, self});
  conversions_.push_back({kDefaultLayout, id, nullptr, sparse_from_default, self});
}

void LayoutTable::add_layouts(const Plugin& plugin) {
  const tessera_backend& abi = plugin.abi();
  for (const tessera_layout& layout :
       std::span(abi.layouts, static_cast<size_t>(abi.layout_count))) {
    // A shared layout of two plug-ins is the same; the conversions of the first one are used.
    if (find(layout.name)) continue;
    const LayoutId id{static_cast<int32_t>(entries_.size())};
    const tessera_device& device = abi.devices[layout.device];
    const std::string ordinal = device.ordinal == 0 ? "" : ":" + std::to_string(device.ordinal);
    entries_.push_back({layout.name,
                        (layout.flags & TESSERA_LAYOUT_IS_DENSE) != 0,
                        &layout,
                        {},
                        device.kind + ordinal});
    conversions_.push_back({id, kDefaultLayout, &plugin, layout.to_default, layout.self});
    conversions_.push_back({kDefaultLayout, id, &plugin, layout.from_default, layout.self});
  }
}

void LayoutTable::add_conversions(const Plugin& plugin) {
  const tessera_backend& abi = plugin.abi();
  for (const tessera_conversion& conversion :
       std::span(abi.conversions, static_cast<size_t>(abi.conversion_count))) {
    const std::optional<LayoutId> from = find(conversion.from);
    const std::optional<LayoutId> to = find(conversion.to);
    // A conversion between layouts of which one is missing is useless.
    if (!from || !to) continue;
    conversions_.push_back({*from, *to, &plugin, conversion.convert, conversion.self});
  }
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
  if (!value.is_io_sparse) return kDefaultLayout;
  const std::optional<LayoutId> found = find(text(*value.sparse));
  TESSERA_CHECK(found.has_value(), "the table is made with the forms of the graph's values");
  return *found;
}

std::optional<int64_t> LayoutTable::storage_bytes(LayoutId id, const TensorType& type) const {
  if (const SparseForm* form = entry(id).form.get()) {
    const int64_t bytes = sparse_bytes(form->format, type.element, type.dims, form->capacity);
    return bytes < 0 ? std::nullopt : std::optional(bytes);
  }
  const int64_t dense = tensor_bytes(type.element, type.dims);
  const tessera_layout* layout = entry(id).abi;
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
              "expected to be told again how much a tensor takes in it, was told nothing");
}

int LayoutTable::hops(LayoutId from, LayoutId to) const {
  if (from == to) return 0;
  const bool is_direct =
      std::any_of(conversions_.begin(), conversions_.end(),
                  [&](const ConversionStep& step) { return step.from == from && step.to == to; });
  return is_direct ? 1 : 2;
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
