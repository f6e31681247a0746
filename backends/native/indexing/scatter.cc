// ScatterND and ScatterElements: a copy of the data, or the data in place, with elements replaced
// by updates or combined with them.
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/any_address.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/indices.h"
#include "copy/copy_offer.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

constexpr int32_t kFirstReductionVersion = 16;

enum class Reduction : uint8_t { None, Add, Multiply, Max, Min };

Reduction reduction_of(const Node& node) {
  const std::string name = node.version() < kFirstReductionVersion
                               ? "none"
                               : node.attributes().get_string("reduction", "none");
  if (name == "none") return Reduction::None;
  if (name == "add") return Reduction::Add;
  if (name == "mul") return Reduction::Multiply;
  if (name == "max") return Reduction::Max;
  if (name == "min") return Reduction::Min;
  throw plugin::Failure(TESSERA_UNSUPPORTED, "has no reduction '" + name + "'");
}

// Integers wrap around; bools are added by "or" and multiplied by "and"; NaN wins over any number.
template <Reduction kReduction, class T>
T combined(T before, T update) {
  if constexpr (kReduction == Reduction::None) {
    return update;
  } else if constexpr (std::is_same_v<T, bool>) {
    constexpr bool kIsOr = kReduction == Reduction::Add || kReduction == Reduction::Max;
    return kIsOr ? before || update : before && update;
  } else if constexpr (kReduction == Reduction::Add || kReduction == Reduction::Multiply) {
    if constexpr (std::is_integral_v<T>) {
      // 64 unsigned bits hold the low bits of every sum and product.
      const auto left = static_cast<uint64_t>(before);
      const auto right = static_cast<uint64_t>(update);
      return static_cast<T>(kReduction == Reduction::Add ? left + right : left * right);
    } else {
      return kReduction == Reduction::Add ? before + update : before * update;
    }
  } else {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(before) || std::isnan(update)) return std::isnan(before) ? before : update;
    }
    return (kReduction == Reduction::Max) == (before < update) ? update : before;
  }
}

// The elements that updates replace. It points to dimensions of the buffers for which it was made.
struct Targets {
  bool is_slices = true;  // slices selected by tuples of indices; else elements along one axis
  // Slices: the axes that a tuple selects in; elements: those of the indices.
  std::span<const int64_t> dims;
  // Elements: of the data, 0 along the axis.
  std::array<int64_t, LoopNest::kMaxAxes> strides = {};
  int64_t dim = 0;  // elements: of the data along the axis
  int64_t step = 1;
  int64_t count = 0;   // of updates: slices or elements
  int64_t length = 1;  // elements of an update
};

// Those of ScatterND.
Targets slices_of(const Buffer& data, const Buffer& indices) {
  Targets targets;
  const std::span<const int64_t> dims = indices.sizes();
  const auto tuple = static_cast<size_t>(dims.back());
  targets.dims = data.sizes().first(tuple);
  targets.count = 1;
  for (const int64_t dim : dims.first(dims.size() - 1)) targets.count *= dim;
  for (const int64_t dim : data.sizes().subspan(tuple)) targets.length *= dim;
  return targets;
}

// Those of ScatterElements.
Targets elements_of(const Buffer& data, const Buffer& indices, size_t axis) {
  Targets targets;
  targets.is_slices = false;
  targets.dims = indices.sizes();
  const StorageAxes axes = storage_axes(StorageOrder(), data);
  for (size_t position = 0; position < axes.count; ++position) {
    targets.strides[position] = axes[position].stride;
  }
  targets.step = targets.strides[axis];
  targets.strides[axis] = 0;
  targets.dim = axes[axis].dim;
  targets.count = indices.elements();
  return targets;
}

// Sequential, because two indices may select the same element.
template <Reduction kReduction, class T>
void scatter(const Targets& targets, const Indices& list, const T* updates, T* to) {
  if (targets.is_slices) {
    const auto tuple = static_cast<int64_t>(targets.dims.size());
    for (int64_t update = 0; update < targets.count; ++update) {
      int64_t slice = 0;
      for (int64_t position = 0; position < tuple; ++position) {
        const int64_t dim = targets.dims[static_cast<size_t>(position)];
        slice = slice * dim + list.at(update * tuple + position, dim);
      }
      const T* from = updates + update * targets.length;
      T* target = to + slice * targets.length;
      for (int64_t index = 0; index < targets.length; ++index) {
        target[index] = combined<kReduction>(target[index], from[index]);
      }
    }
    return;
  }
  std::array<int64_t, LoopNest::kMaxAxes> position = {};
  int64_t offset = 0;
  for (int64_t update = 0; update < targets.count; ++update) {
    T& target = to[offset + list.at(update, targets.dim) * targets.step];
    target = combined<kReduction>(target, updates[update]);
    for (size_t axis = targets.dims.size(); axis-- > 0;) {
      offset += targets.strides[axis];
      if (++position[axis] < targets.dims[axis]) break;
      offset -= targets.strides[axis] * targets.dims[axis];
      position[axis] = 0;
    }
  }
}

using Scatter = void (*)(const Targets& targets, const Indices& list, const void* updates,
                         void* to);

template <Reduction kReduction, class T>
void scatter_any(const Targets& targets, const Indices& list, const void* updates, void* to) {
  scatter<kReduction>(targets, list, static_cast<const T*>(updates), static_cast<T*>(to));
}

template <class T>
Scatter scatter_by(Reduction reduction) {
  switch (reduction) {
    case Reduction::Add:
      return scatter_any<Reduction::Add, T>;
    case Reduction::Multiply:
      return scatter_any<Reduction::Multiply, T>;
    case Reduction::Max:
      return scatter_any<Reduction::Max, T>;
    case Reduction::Min:
      return scatter_any<Reduction::Min, T>;
    case Reduction::None:
      break;
  }
  return scatter_any<Reduction::None, T>;
}

// Null for types without arithmetic here.
Scatter scatter_of(int32_t data_type, Reduction reduction) {
  if (reduction == Reduction::None) {
    return find_loop_for_size(plugin::element_bytes(data_type),
                              []<class T>() -> Scatter { return scatter_any<Reduction::None, T>; });
  }
  if (data_type == TESSERA_BOOL) return scatter_by<bool>(reduction);
  return find_number_loop(data_type, [&]<class T>() { return scatter_by<T>(reduction); });
}

// `targets_of` returns the targets for buffers of data and indices.
template <class TargetsOf>
void offer(ProposeContext& context, const Node& node, const char* algorithm, TargetsOf targets_of) {
  const plugin::Type data = node.input(0).type();
  const Scatter scatter = scatter_of(data.data_type, reduction_of(node));
  if (scatter == nullptr) {
    return context.refuse(node.id(), "does not compute with 16-bit floating-point types");
  }
  plugin::Candidate candidate = plugin::candidate_for(node);
  const size_t indices = port_of(candidate, node.input(1));
  const size_t updates = port_of(candidate, node.input(2));
  // A value that is also read as indices or updates must not be overwritten.
  if (indices != 0 && updates != 0) {
    candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    candidate.outputs[0].in_place_input = 0;
  }
  candidate.algorithm = algorithm;
  candidate.built_for.emplace();
  const auto bytes = static_cast<double>(node.input(2).type().dense_bytes() * 2 +
                                         node.input(1).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(0, bytes);
  candidate.build = [=, element_bytes =
                            plugin::element_bytes(data.data_type)](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [=](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          const char* from = inputs[0].as<const char>();
          char* to = outputs[0].as<char>();
          if (from != to) {
            const int64_t data_bytes = inputs[0].elements() * element_bytes;
            run.parallel_for(data_bytes, kGrainBytes, [&](int64_t begin, int64_t end) {
              std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
            });
          }
          const Targets targets = targets_of(inputs[0], inputs[indices]);
          if (targets.count * targets.length == 0) return;
          scatter(targets, Indices(inputs[indices]), inputs[updates].data, to);
        });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

std::optional<std::string> explain_unscatterable(const Node& node) {
  if (auto reason = explain_uncopyable(node)) return reason;
  for (const size_t index : {1, 2}) {
    if (auto reason = explain_uncopyable(node.input(index))) return reason;
  }
  if (!is_index_type(node.input(1).type().data_type)) return "takes indices of int32 or int64 only";
  return std::nullopt;
}

void offer_scatter_nd(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unscatterable(node)) return context.refuse(node.id(), *reason);
  offer(context, node, "slices", slices_of);
}

void offer_scatter_elements(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unscatterable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type data = node.input(0).type();
  if (data.dims.size() > LoopNest::kMaxAxes) {
    return context.refuse(node.id(), "takes tensors of up to 16 axes only");
  }
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis"), data.dims.size());
  offer(context, node, "elements", [axis](const Buffer& values, const Buffer& indices) {
    return elements_of(values, indices, axis);
  });
}

}  // namespace

void propose_scatters(ProposeContext& context) {
  context.for_each({"ScatterND"}, [&](const Node& node) { offer_scatter_nd(context, node); });
  context.for_each({"ScatterElements"},
                   [&](const Node& node) { offer_scatter_elements(context, node); });
}

}  // namespace tessera::native
