// How ScatterND and ScatterElements combine an update with the existing element.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "ops/op.h"
#include "ops/visit_type.h"

namespace tessera::ops {

enum class Reduction : uint8_t { None, Add, Multiply, Max, Min };

// The reduction that a node asks for; nullopt if its version has none of that name.
inline std::optional<Reduction> reduction_of(const Node& node) {
  if (node.version < 16) return Reduction::None;
  const std::string& name = node.attributes.get_string("reduction");
  if (name == "none") return Reduction::None;
  if (name == "add") return Reduction::Add;
  if (name == "mul") return Reduction::Multiply;
  if (name == "max" && node.version >= 18) return Reduction::Max;
  if (name == "min" && node.version >= 18) return Reduction::Min;
  return std::nullopt;
}

inline void check_reduction(const InferContext& context) {
  const std::optional<Reduction> reduction = reduction_of(context.node());
  if (reduction && *reduction != Reduction::None && context.element(0) == DataType::String) {
    context.fail("expected reduction 'none' for strings, found '" +
                 context.node().attributes.get_string("reduction") + "'");
  }
  if (reduction) return;
  context.fail(std::string("expected reduction 'none', 'add'") +
               (context.version() >= 18 ? ", 'mul', 'max' or 'min'" : " or 'mul'") + ", found '" +
               context.node().attributes.get_string("reduction") + "'");
}

// Integers wrap around; on bool, addition is "or" and multiplication "and"; NaN wins over any
// number.
template <class T>
T combined(Reduction reduction, T before, T update) {
  using C = compute_t<T>;
  if (reduction == Reduction::None) return update;
  if constexpr (std::is_same_v<T, bool>) {
    const bool is_or = reduction == Reduction::Add || reduction == Reduction::Max;
    return is_or ? before || update : before && update;
  } else if constexpr (std::is_integral_v<T>) {
    // 64 unsigned bits hold the low bits of any sum and product.
    const auto left = static_cast<uint64_t>(before);
    const auto right = static_cast<uint64_t>(update);
    if (reduction == Reduction::Add) return static_cast<T>(left + right);
    if (reduction == Reduction::Multiply) return static_cast<T>(left * right);
    return (reduction == Reduction::Max) == (before < update) ? update : before;
  } else {
    const C left = static_cast<C>(before);
    const C right = static_cast<C>(update);
    if (reduction == Reduction::Add) return T(left + right);
    if (reduction == Reduction::Multiply) return T(left * right);
    if (std::isnan(left) || std::isnan(right)) return std::isnan(left) ? before : update;
    return (reduction == Reduction::Max) == (left < right) ? update : before;
  }
}

// Calls visit(TypeTag<T>{}) for any element type; without a combination, one instance per element
// size.
template <class Visit>
void visit_scattered(DataType type, Reduction reduction, const Visit& visit) {
  if (reduction == Reduction::None) {
    visit_size(type, visit);
  } else if (type == DataType::Bool) {
    visit(TypeTag<bool>{});
  } else {
    visit_numeric(type, visit);
  }
}

// The kernel of both ops. Copies the data and, if there are updates, calls scatter(put), where
// put(target, update) combines update number `update` with element number `target` of the output.
// Runs on one thread, because two indices may refer to one element.
template <class Scatter>
void run_scatter(const KernelCall& call, const Scatter& scatter) {
  const TensorView& data = call.inputs[0];
  const TensorView& updates = call.inputs[2];
  std::memcpy(call.outputs[0].data, data.data,
              static_cast<size_t>(data.elements * element_bytes(data.type)));
  if (updates.elements == 0) return;
  const Reduction reduction = *reduction_of(call.node);
  visit_scattered(data.type, reduction, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = updates.as<T>().data();
    T* result = call.outputs[0].as<T>().data();
    scatter([&](int64_t target, int64_t update) {
      result[target] = combined(reduction, result[target], source[update]);
    });
  });
}

}  // namespace tessera::ops
