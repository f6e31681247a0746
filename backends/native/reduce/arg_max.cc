// ArgMax and ArgMin: the index of the largest or smallest element along an axis.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/any_address.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/grain.h"
#include "copy/copy_offer.h"
#include "reduce/arg_max_kernels.h"
#include "reduce/line_shape.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

constexpr int32_t kFirstLastIndexVersion = 12;
// Neighbouring lines that are processed together, so that whole cache lines are used.
constexpr int64_t kColumns = 256;

using Arg = void (*)(RunContext& run, const ArgRule& rule, const LineShape& shape,
                     const ArgLoops& loops, const void* from, int64_t* to);

template <class T>
bool is_better(const ArgRule& rule, T value, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(best)) return rule.is_last && std::isnan(value);
    if (std::isnan(value)) return true;
  }
  if (rule.is_last && value == best) return true;
  return rule.is_max ? value > best : value < best;
}

template <class T>
void find_positions(RunContext& run, const ArgRule& rule, const LineShape& shape,
                    const ArgLoops& /*loops*/, const void* source, int64_t* to) {
  const T* from = static_cast<const T*>(source);
  const int64_t grain = std::max<int64_t>(1, kGrain / shape.length);
  run.parallel_for(shape.outer * shape.stride, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const T* elements =
          from + line / shape.stride * shape.length * shape.stride + line % shape.stride;
      T best = elements[0];
      int64_t position = 0;
      for (int64_t index = 1; index < shape.length; ++index) {
        const T value = elements[index * shape.stride];
        if (!is_better(rule, value, best)) continue;
        best = value;
        position = index;
      }
      to[line] = position;
    }
  });
}

void find_float_positions(RunContext& run, const ArgRule& rule, const LineShape& shape,
                          const ArgLoops& loops, const void* source, int64_t* to) {
  const float* from = static_cast<const float*>(source);
  if (shape.stride == 1) {
    const int64_t grain = std::max<int64_t>(1, kGrain / shape.length);
    return run.parallel_for(shape.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        to[line] = loops.row(rule, from + line * shape.length, shape.length);
      }
    });
  }
  // The loop counts positions in 32 bits.
  if (shape.length > std::numeric_limits<int32_t>::max()) {
    return find_positions<float>(run, rule, shape, loops, source, to);
  }
  const int64_t width = std::min(shape.stride, kColumns);
  const int64_t groups = (shape.stride + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, kGrain / (shape.length * width));
  run.parallel_for(shape.outer * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t outer = index / groups;
      const int64_t first = index % groups * width;
      loops.columns(rule, from + outer * shape.length * shape.stride + first, shape.length,
                    shape.stride, std::min(width, shape.stride - first),
                    to + outer * shape.stride + first);
    }
  });
}

Arg find_arg(int32_t data_type) {
  return find_number_loop(data_type, []<class T>() -> Arg {
    if constexpr (std::is_same_v<T, float>) {
      return find_float_positions;
    } else {
      return find_positions<T>;
    }
  });
}

void offer_arg(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type type = node.input(0).type();
  const Arg arg = find_arg(type.data_type);
  if (arg == nullptr)
    return context.refuse(node.id(), "does not compare 16-bit floating-point types");
  const int64_t given_axis = node.attributes().get_int("axis");
  const size_t axis = type.dims.empty() ? 0 : plugin::normalized_axis(given_axis, type.dims.size());
  ArgRule rule;
  rule.is_max = node.op() == "ArgMax";
  rule.is_last = node.version() >= kFirstLastIndexVersion &&
                 node.attributes().get_int("select_last_index") != 0;
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.algorithm = line_shape_of(type.dims, axis).stride == 1 ? "rows" : "columns";
  candidate.built_for = std::vector<tessera_built_for>();
  candidate.optimistic_seconds =
      context.optimistic_seconds(0, static_cast<double>(type.dense_bytes()));
  candidate.build = [=, loops = find_arg_loops()](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [=](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          const LineShape shape = line_shape_of(inputs[0].sizes(), axis);
          if (shape.outer * shape.stride * shape.length == 0) return;
          arg(run, rule, shape, loops, inputs[0].data, outputs[0].as<int64_t>());
        });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_arg_max(ProposeContext& context) {
  context.for_each({"ArgMax", "ArgMin"}, [&](const Node& node) { offer_arg(context, node); });
}

}  // namespace tessera::native
