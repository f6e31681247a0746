// The layouts of the opened plug-ins, under strong ids, and the conversions between them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/plugin.h"
#include "backend/run_context.h"
#include "backend/status.h"
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
// nullopt unless `type` is a tensor with all sizes known.
std::optional<TensorType> known_type(const Type& type);

// A larger request of a plug-in is an error; the limit keeps sums of sizes within 64 bits.
inline constexpr int64_t kMaxPluginBytes = int64_t{1} << 48;

// A function call that converts a tensor from one layout to another.
struct ConversionStep {
  LayoutId from;
  LayoutId to;
  const Plugin* plugin = nullptr;  // null: the host's own, to or from a sparse layout
  tessera_convert convert = nullptr;
  void* self = nullptr;
};

// Whether the contract defines a layout of this name for all libraries.
bool is_shared_layout_name(std::string_view name);

// "" or the error in a plug-in's layout name: names without a colon are the shared ones, all others
// begin with the backend's own name.
std::string explain_illegal_layout_name(const std::string& name, const std::string& backend);

// The distinct sparse forms of the values of `graph`.
std::vector<SparseForm> sparse_forms(const Graph& graph);

// Built from the plug-ins that a model is bound with, which must outlive it, and from the sparse
// forms of its values. Each form is a layout of its own, because capacities differ. Immutable.
class LayoutTable {
 public:
  explicit LayoutTable(std::span<const std::shared_ptr<const Plugin>> plugins,
                       std::span<const SparseForm> forms = {});

  size_t size() const { return entries_.size(); }
  const std::string& name(LayoutId id) const { return entry(id).name; }
  bool is_dense(LayoutId id) const { return entry(id).is_dense; }
  // The device of its tensors: "cpu" for the host's memory, "kind" or "kind:ordinal".
  const std::string& device(LayoutId id) const { return entry(id).device; }
  // nullopt if it is dense or belongs to a plug-in.
  std::optional<SparseForm> sparse_form(LayoutId id) const;
  // nullopt if no plug-in provides it.
  std::optional<LayoutId> find(const std::string& name) const;
  // The layout in which the caller passes or receives `value`.
  LayoutId io_layout(const Value& value) const;
  // Size in bytes of such a tensor; nullopt if the layout does not support it.
  std::optional<int64_t> storage_bytes(LayoutId id, const TensorType& type) const;
  // The same for a size that was known before. Throws DeviceFailed if it no longer is, for example
  // because the plug-in ran out of memory.
  int64_t known_storage_bytes(LayoutId id, const TensorType& type) const;

  // The number of steps from one layout to the other if both support the value: 0, 1, or 2 through
  // the default layout.
  int hops(LayoutId from, LayoutId to) const;

  // The cheapest route by bytes read and written, through the default layout if there is no direct
  // one; empty if `from` equals `to`. Both must support `type`.
  std::vector<ConversionStep> route(LayoutId from, LayoutId to, const TensorType& type) const;

 private:
  struct Entry {
    std::string name;
    bool is_dense = true;
    const tessera_layout* abi = nullptr;  // null: the default layout, or a sparse one
    std::unique_ptr<SparseForm> form = {};
    std::string device = "cpu";
  };
  const Entry& entry(LayoutId id) const { return entries_[static_cast<size_t>(id.index)]; }
  void add_form(const SparseForm& form);
  void add_layouts(const Plugin& plugin);
  void add_conversions(const Plugin& plugin);

  std::vector<Entry> entries_;
  std::vector<ConversionStep> conversions_;
};

// Runs one step. Throws DeviceFailed, naming `location` and the plug-in, if it fails.
void convert(const ConversionStep& step, const std::string& location, RunContext& context,
             const tessera_buffer& from, const tessera_buffer& to);

// Throws the failure of a conversion at `location`, by `plugin` or, if that is null, by the host.
[[noreturn]] void fail_conversion(const Plugin* plugin, const std::string& location,
                                  const Status& status);

}  // namespace tessera
