// The layouts of the opened plug-ins, under strong ids, and the conversions between them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/contract/run_context.h"
#include "backend/contract/status.h"
#include "backend/device.h"
#include "backend/plugin.h"
#include "graph/graph.h"
#include "graph/sparse_form.h"
#include "tessera/backend_abi.h"
#include "tessera/data_type.h"

namespace tessera {

using LayoutId = StrongId<struct LayoutTag>;
// Dense, row-major, in the host's memory; has the same id in every table.
inline constexpr LayoutId kDefaultLayout{0};

// A tensor's logical type with all sizes known.
struct TensorType {
  DataType element = DataType::Undefined;
  std::vector<int64_t> dims;
  bool operator==(const TensorType&) const = default;
};
// nullopt unless `type` is a tensor of numbers or bools with all sizes known.
std::optional<TensorType> known_type(const Type& type);

// A larger request of a plug-in is an error; the limit keeps sums of sizes within 64 bits.
inline constexpr int64_t kMaxPluginBytes = int64_t{1} << 48;

// A function call that converts a tensor from one layout to another, or copies it from one memory
// to another.
struct ConversionStep {
  LayoutId from;
  LayoutId to;
  // The plug-in that has the function or the device; null: the host, for a sparse layout.
  const Plugin* plugin = nullptr;
  tessera_convert convert = nullptr;
  void* self = nullptr;
  DeviceId device = kHostDevice;  // the device in whose queue it runs
};

// "" if the devices that have memory of their own may be used, or why not, by name.
using DeviceFilter = std::function<std::string(const std::string& name)>;
// Allows the devices with these names; all if there are none.
DeviceFilter allow_devices(const std::vector<std::string>& names);

// Whether the contract defines a layout of this name for all libraries.
bool is_shared_layout_name(std::string_view name);

// "" or the error in a plug-in's layout name: names without a colon are the shared ones, all others
// begin with the backend's own name.
std::string explain_illegal_layout_name(const std::string& name, const std::string& backend);

// The distinct sparse forms of the values of `graph`.
std::vector<SparseForm> sparse_forms(const Graph& graph);

// Built from the plug-ins that a model is bound with, which must outlive it, and from the sparse
// forms of its values. Each form is a layout of its own, because capacities differ. A layout is a
// format on a device: each device with memory of its own has the default format and those of its
// plug-in. Immutable.
class LayoutTable {
 public:
  // Devices that `filter` does not allow, that cannot be used now, or whose name another plug-in
  // has already, are left out.
  explicit LayoutTable(std::span<const std::shared_ptr<const Plugin>> plugins,
                       std::span<const SparseForm> forms = {}, const DeviceFilter& filter = {});

  size_t size() const { return entries_.size(); }
  // "nhwc"; of a device with memory of its own: "nhwc@mylib:1".
  const std::string& name(LayoutId id) const { return entry(id).name; }
  // The name without the device.
  const std::string& format(LayoutId id) const { return entry(id).format; }
  bool is_dense(LayoutId id) const { return entry(id).is_dense; }
  // The device of its tensors: "cpu" for the host's memory, "kind" or "kind:ordinal". A device
  // without memory of its own is a label of the host's memory.
  const std::string& device_label(LayoutId id) const { return entry(id).device_label; }
  DeviceId device_of(LayoutId id) const { return entry(id).device; }

  // One past the largest DeviceId.
  size_t device_count() const { return devices_.size() + 1; }
  // Of a device that is not the host's processor.
  const Device& device(DeviceId id) const { return devices_[static_cast<size_t>(id.index - 1)]; }
  // nullopt if there is none, or it was left out.
  std::optional<DeviceId> find_device(const std::string& name) const;
  // Why the device of `plugin` with this name was left out; "" if it was not.
  std::string explain_left_out(const Plugin& plugin, const std::string& name) const;
  // The default format in the memory of `device`.
  LayoutId default_layout(DeviceId device) const;
  // nullopt if it is dense or belongs to a plug-in.
  std::optional<SparseForm> sparse_form(LayoutId id) const;
  // By its full name; nullopt if no plug-in provides it.
  std::optional<LayoutId> find(const std::string& name) const;
  // An input or output of `graph` on a device that is not in this table; null if there is none.
  const Value* find_missing_io_device(const Graph& graph) const;
  // Throws InvalidArgument if find_missing_io_device() finds one.
  void check_io_devices(const Graph& graph) const;
  // The layout in which the caller passes or receives `value`.
  LayoutId io_layout(const Value& value) const;
  // Size in bytes of such a tensor; nullopt if the layout does not support it.
  std::optional<int64_t> storage_bytes(LayoutId id, const TensorType& type) const;
  // Same as storage_bytes(), for a size that was known before. Throws DeviceFailed if it is no
  // longer known, for example because the plug-in ran out of memory.
  int64_t known_storage_bytes(LayoutId id, const TensorType& type) const;

  // The smallest number of steps from one layout to the other, through the default layouts of their
  // memories if there is no direct conversion.
  int hops(LayoutId from, LayoutId to) const;

  // The cheapest route by bytes read and written; empty if `from` equals `to`. Both must support
  // `type`.
  std::vector<ConversionStep> route(LayoutId from, LayoutId to, const TensorType& type) const;

 private:
  struct Entry {
    std::string name;
    std::string format;
    bool is_dense = true;
    const tessera_layout* abi = nullptr;  // null: a default layout, or a sparse one
    std::unique_ptr<SparseForm> form = {};
    std::string device_label = "cpu";
    DeviceId device = kHostDevice;
  };
  struct LeftOut {
    const Plugin* plugin = nullptr;
    std::string device;
    std::string reason;
  };
  const Entry& entry(LayoutId id) const { return entries_[static_cast<size_t>(id.index)]; }
  LayoutId add(Entry entry);
  void add_form(const SparseForm& form);
  void add_devices(const std::shared_ptr<const Plugin>& plugin, const DeviceFilter& filter);
  void add_device(Device device);
  void add_layouts(const Plugin& plugin);
  void add_layout(const Plugin& plugin, const tessera_layout& layout);
  void add_conversions(const Plugin& plugin);
  // Adds a step, or puts it in the place of one of the same layouts whose loops are simple.
  void add_conversion(const ConversionStep& step);
  bool is_simple(const ConversionStep& step) const;
  void add_copies();
  void add_copy(LayoutId from, LayoutId to);

  std::vector<Entry> entries_;
  std::vector<ConversionStep> conversions_;
  std::vector<Device> devices_;  // by DeviceId - 1
  std::vector<LeftOut> left_out_;
  std::vector<std::unique_ptr<const DeviceCopy>> copies_;  // arguments of conversions
};

// Runs one step. Throws DeviceFailed, naming `location` and the plug-in, if it fails.
void convert(const ConversionStep& step, const std::string& location, RunContext& context,
             const tessera_buffer& from, const tessera_buffer& to);

// Throws the failure of a conversion at `location`, by `plugin` or, if that is null, by the host.
[[noreturn]] void fail_conversion(const Plugin* plugin, const std::string& location,
                                  const Status& status);

// Conversions to and from the host's sparse layouts, csr and row_sparse (sparse_layouts.cc).
// tessera_sparse_header documents their bytes. The functions of a sparse layout. `self` is the
// SparseForm, which must outlive the calls. Conversion to a sparse layout fails with
// TESSERA_INVALID_ARGUMENT if the capacity is exceeded.
int32_t sparse_to_default(void* self, tessera_run_context* context, const tessera_buffer* from,
                          const tessera_buffer* to, tessera_error* error);
int32_t sparse_from_default(void* self, tessera_run_context* context, const tessera_buffer* from,
                            const tessera_buffer* to, tessera_error* error);

}  // namespace tessera
