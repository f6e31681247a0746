// The layouts that the opened plug-ins bring, under strong ids, and what converts between them.
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
// Dense, row-major, in the host's memory: the same in every table.
inline constexpr LayoutId kDefaultLayout{0};

// A tensor's logical type with every size known.
struct TensorType {
  DataType element = DataType::Undefined;
  std::vector<int64_t> dims;
  bool operator==(const TensorType&) const = default;
};
// nullopt unless `type` is a tensor whose sizes are all known.
std::optional<TensorType> known_type(const Type& type);

// A plug-in that asks for more memory at once is mistaken: sums of such numbers could exceed 64
// bits.
inline constexpr int64_t kMostPluginBytes = int64_t{1} << 48;

// One function call that takes a tensor from one layout to another.
struct ConversionStep {
  LayoutId from;
  LayoutId to;
  const Plugin* plugin = nullptr;  // null: the host's own, to or from a sparse layout
  tessera_convert convert = nullptr;
  void* self = nullptr;
};

// Whether all libraries share the layout of this name, and its meaning.
bool is_shared_layout_name(std::string_view name);

// "" or what is wrong with a plug-in's layout of this name: names without a colon are those that
// all libraries share, others begin with the backend's own.
std::string explain_illegal_layout_name(const std::string& name, const std::string& backend);

// The sparse forms that values of `graph` have, each once.
std::vector<SparseForm> sparse_forms(const Graph& graph);

// Made of the plug-ins that a model is bound with, which must outlive it, and of the sparse forms
// of its values: each is a layout of its own, as capacities differ. Immutable.
class LayoutTable {
 public:
  explicit LayoutTable(std::span<const std::shared_ptr<const Plugin>> plugins,
                       std::span<const SparseForm> forms = {});

  size_t size() const { return entries_.size(); }
  const std::string& name(LayoutId id) const { return entry(id).name; }
  bool is_dense(LayoutId id) const { return entry(id).is_dense; }
  // On which device its tensors lie: "cpu" for the host's memory, "kind" or "kind:ordinal".
  const std::string& device(LayoutId id) const { return entry(id).device; }
  // nullopt where it is dense, or of a plug-in.
  std::optional<SparseForm> sparse_form(LayoutId id) const;
  // nullopt where no plug-in brings it.
  std::optional<LayoutId> find(const std::string& name) const;
  // The layout in which the caller gives or gets `value`.
  LayoutId exchanged_layout(const Value& value) const;
  // Bytes of such a tensor; nullopt where the layout does not hold it.
  std::optional<int64_t> storage_bytes(LayoutId id, const TensorType& type) const;
  // The same where it was given before. Throws DeviceFailed where it is not any more, because the
  // plug-in found no memory, say.
  int64_t known_storage_bytes(LayoutId id, const TensorType& type) const;

  // Steps from one to the other where both hold the value: 0, 1, or 2 through the default layout.
  int hops(LayoutId from, LayoutId to) const;

  // The cheapest way by bytes read and written, through the default layout where no direct one
  // exists; empty where `from` is `to`. Both must hold `type`.
  std::vector<ConversionStep> route(LayoutId from, LayoutId to, const TensorType& type) const;

 private:
  struct Entry {
    std::string name;
    bool is_dense = true;
    const tessera_layout* face = nullptr;  // null: the default layout, or a sparse one
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

// Runs one step. Throws DeviceFailed, naming `place` and the plug-in, where it fails.
void convert(const ConversionStep& step, const std::string& place, RunContext& context,
             const tessera_buffer& from, const tessera_buffer& to);

// Throws the failure of a conversion at `place`; of `plugin`, or of the host's own where it is
// null.
[[noreturn]] void fail_conversion(const Plugin* plugin, const std::string& place,
                                  const Status& status);

}  // namespace tessera
