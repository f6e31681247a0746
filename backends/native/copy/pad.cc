// Pad, in each layout with whole blocks of channels.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/element_type.h"
#include "base/families.h"
#include "copy/copy_offer.h"
#include "copy/table_copy.h"
#include "layout/strided_layout.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

constexpr int32_t kFirstInputVersion = 11;

// The number of elements added at both ends of an axis; negative: removed.
struct Pads {
  int64_t begin = 0;
  int64_t end = 0;
};

// The element with which the padding is filled.
struct Filling {
  std::array<char, kMaxElementBytes> element = {};  // the bits of zero of any type
  bool is_input = false;                            // known only at run time
  bool is_zero() const {
    return !is_input && std::all_of(element.begin(), element.end(), [](char c) { return c == 0; });
  }
};

std::optional<std::vector<Pads>> pads_of(const Node& node, size_t rank) {
  std::optional<std::vector<int64_t>> pads;
  std::optional<std::vector<int64_t>> axes = std::vector<int64_t>();
  const bool has_axes = node.version() >= kFirstInputVersion && node.input(3).is_present();
  if (node.version() < kFirstInputVersion) {
    pads = node.attributes().get_ints("pads");
  } else {
    pads = plugin::constant_integers(node.input(1));
    if (has_axes) axes = plugin::constant_integers(node.input(3));
  }
  if (!pads || !axes) return std::nullopt;
  std::vector<Pads> result(rank);
  const size_t count = pads->size() / 2;
  for (size_t index = 0; index < count; ++index) {
    const size_t axis =
        has_axes && !axes->empty() ? plugin::normalized_axis((*axes)[index], rank) : index;
    result[axis] = {(*pads)[index], (*pads)[index + count]};
  }
  return result;
}

int64_t remainder(int64_t value, int64_t period) {
  const int64_t rest = value % period;
  return rest < 0 ? rest + period : rest;
}

// Negative pads are applied first. The remaining elements, `kept` from `first` on, are mirrored or
// repeated.
SourceTable table_of(const std::string& mode, int64_t dim, const Pads& pads) {
  const int64_t first = std::max<int64_t>(0, -pads.begin);
  const int64_t kept = dim + std::min<int64_t>(0, pads.begin) + std::min<int64_t>(0, pads.end);
  SourceTable table(static_cast<size_t>(dim + pads.begin + pads.end));
  for (size_t position = 0; position < table.size(); ++position) {
    const int64_t source = static_cast<int64_t>(position) - pads.begin;
    if (mode == "constant") {
      table[position] = source >= 0 && source < dim ? source : kFill;
    } else if (mode == "edge") {
      table[position] = std::clamp(source, first, first + kept - 1);
    } else if (mode == "wrap") {
      table[position] = first + remainder(source - first, kept);
    } else if (kept == 1) {
      table[position] = first;
    } else {
      const int64_t phase = remainder(source - first, 2 * (kept - 1));
      table[position] = first + std::min(phase, 2 * (kept - 1) - phase);
    }
  }
  return table;
}

Filling filling_of(const Node& node) {
  Filling filling;
  const int32_t type = node.input(0).type().data_type;
  const auto bytes = static_cast<size_t>(plugin::element_bytes(type));
  if (node.version() < kFirstInputVersion) {
    const float value = node.attributes().get_float("value");
    if (value == 0) return filling;
    if (type != TESSERA_FLOAT32) {
      throw plugin::Failure(TESSERA_UNSUPPORTED, "pads with values other than 0 in float32 only");
    }
    std::memcpy(filling.element.data(), &value, sizeof(value));
  } else if (node.input(2).is_present()) {
    const void* value = node.input(2).constant();
    filling.is_input = value == nullptr;
    if (value != nullptr) std::memcpy(filling.element.data(), value, bytes);
  }
  return filling;
}

void offer_in(ProposeContext& context, const Node& node, const std::string& layout,
              const StorageTables& tables, const Filling& filling) {
  const int64_t element_bytes = plugin::element_bytes(node.input(0).type().data_type);
  plugin::Candidate candidate;
  candidate.nodes = {node.id()};
  candidate.algorithm = "tables";
  candidate.inputs = {{.value = node.input(0).id(), .layout = layout}};
  const bool is_same_value = node.input(2).id() == node.input(0).id();
  if (filling.is_input && !is_same_value) candidate.inputs.push_back({.value = node.input(2).id()});
  candidate.outputs = {{.value = node.output(0).id(), .layout = layout}};
  candidate.optimistic_seconds =
      context.optimistic_seconds(0, 2 * static_cast<double>(node.output(0).type().dense_bytes()));
  candidate.build = [=](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [copy = TableCopy(tables.tables, tables.strides, element_bytes), filling](
            RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          const void* fill = filling.is_input ? inputs.back().data : filling.element.data();
          copy.run(run, inputs[0].data, outputs[0].data, fill);
        });
  };
  context.add(std::move(candidate));
}

void offer_pad(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type type = node.input(0).type();
  const auto pads = pads_of(node, type.dims.size());
  if (!pads) return context.refuse(node.id(), "takes pads and axes as constants");
  const Filling filling = filling_of(node);
  const std::string mode = node.attributes().get_string("mode", "constant");
  std::vector<SourceTable> tables;
  for (size_t axis = 0; axis < type.dims.size(); ++axis) {
    tables.push_back(node.output(0).type().dims[axis] == 0
                         ? SourceTable()
                         : table_of(mode, type.dims[axis], (*pads)[axis]));
  }
  for (const std::string& layout : kSharedLayouts) {
    if (layout != TESSERA_LAYOUT_DEFAULT && !has_channels(type)) break;
    const int64_t block = strided_layout(layout, type.dims).block;
    if (block > 1) {
      const Pads& channels = (*pads)[1];
      const bool keeps_channels = channels.begin == 0 && channels.end == 0;
      // The padding lanes of blocks must stay zero.
      const bool is_clean = mode != "constant" || filling.is_zero() || type.dims[1] % block == 0;
      if (!keeps_channels || !is_clean) continue;
    }
    offer_in(context, node, layout, storage_tables(layout, type.dims, tables), filling);
  }
}

}  // namespace

void propose_pads(ProposeContext& context) {
  context.for_each({"Pad"}, [&](const Node& node) { offer_pad(context, node); });
}

}  // namespace tessera::native
