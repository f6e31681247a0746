// CumSum: running sums along one axis.
#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/any_address.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/indices.h"
#include "copy/copy_offer.h"
#include "elementwise/generic_loops.h"
#include "reduce/compensated_sum.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

// Lines that are summed at once.
constexpr int64_t kMaxLines = 64;
constexpr int64_t kRowsAtOnce = 4;

struct Sums {
  int64_t length = 0;  // of a line
  int64_t stride = 1;  // between its elements, which is also the number of neighbouring lines
  bool is_exclusive = false;
  bool is_reverse = false;
};

// Floats are summed in double; integers wrap around, as unsigned arithmetic does.
template <class T, bool kIsFloat = std::is_floating_point_v<T>>
struct SumOf {
  using type = double;
};
template <class T>
struct SumOf<T, false> {
  using type = std::make_unsigned_t<T>;
};

// Exact enough where the sum is wider than the elements.
template <class A>
struct PlainSum {
  A sum = 0;
  void add_wide(A x) { sum += x; }
  A total() const { return sum; }
};

// Sums `count` lines at once, at most kMaxLines, which begin `apart` elements after each other.
// `to` may be `from`: each element is read before it is written.
template <class T, bool kIsExclusive>
void sum_lines_as(const Sums& sums, const T* from, T* to, int64_t count, int64_t apart) {
  using A = typename SumOf<T>::type;
  using Total = std::conditional_t<std::is_same_v<T, double>, CompensatedSum<A>, PlainSum<A>>;
  std::array<Total, kMaxLines> totals = {};
  for (int64_t index = 0; index < sums.length; ++index) {
    const int64_t position = (sums.is_reverse ? sums.length - 1 - index : index) * sums.stride;
    TESSERA_INDEPENDENT_STEPS
    for (int64_t line = 0; line < count; ++line) {
      Total& sum = totals[static_cast<size_t>(line)];
      const A before = sum.total();
      sum.add_wide(static_cast<A>(from[position + line * apart]));
      to[position + line * apart] = static_cast<T>(kIsExclusive ? before : sum.total());
    }
  }
}

template <class T>
void sum_lines(const Sums& sums, const T* from, T* to, int64_t count, int64_t apart) {
  if (sums.is_exclusive) return sum_lines_as<T, true>(sums, from, to, count, apart);
  sum_lines_as<T, false>(sums, from, to, count, apart);
}

// Sums several rows at once, because each addition waits for the one before.
template <class T>
void run_rows(RunContext& run, const Sums& sums, const T* from, T* to, int64_t elements) {
  const int64_t rows = elements / sums.length;
  const int64_t groups = (rows + kRowsAtOnce - 1) / kRowsAtOnce;
  const int64_t grain = std::max<int64_t>(1, kGrain / (sums.length * kRowsAtOnce));
  run.parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kRowsAtOnce;
      const int64_t start = first * sums.length;
      if (rows - first >= kRowsAtOnce) {
        sum_lines<T>(sums, from + start, to + start, kRowsAtOnce, sums.length);
      } else {
        sum_lines<T>(sums, from + start, to + start, rows - first, sums.length);
      }
    }
  });
}

template <class T>
void run_sums(RunContext& run, const Sums& sums, const Buffer& input, const Buffer& output,
              int64_t elements) {
  const T* from = input.as<const T>();
  T* to = output.as<T>();
  if (sums.stride == 1) return run_rows<T>(run, sums, from, to, elements);
  const int64_t side_by_side = std::min(sums.stride, kMaxLines);
  const int64_t groups = (sums.stride + side_by_side - 1) / side_by_side;
  const int64_t outer = elements / (sums.length * sums.stride);
  const int64_t grain = std::max<int64_t>(1, kGrain / (sums.length * side_by_side));
  run.parallel_for(outer * groups, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t first = index % groups * side_by_side;
      const int64_t start = index / groups * sums.length * sums.stride + first;
      sum_lines<T>(sums, from + start, to + start, std::min(side_by_side, sums.stride - first), 1);
    }
  });
}

using RunSums = void (*)(RunContext& run, const Sums& sums, const Buffer& input,
                         const Buffer& output, int64_t elements);

RunSums find_sums(int32_t data_type) {
  return find_loop<int32_t, int64_t, uint32_t, uint64_t, float, double>(
      data_type, []<class T>() -> RunSums { return run_sums<T>; });
}

void offer_cum_sum(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type type = node.input(0).type();
  const RunSums sums = find_sums(type.data_type);
  if (sums == nullptr) return context.refuse(node.id(), "does not sum 16-bit floating-point types");
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.built_for = std::vector<tessera_built_for>();
  if (candidate.inputs.size() == 2) {
    candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    candidate.outputs[0].in_place_input = 0;
  }
  candidate.optimistic_seconds =
      context.optimistic_seconds(0, 2 * static_cast<double>(type.dense_bytes()));
  Sums wanted;
  wanted.is_exclusive = node.attributes().get_int("exclusive") != 0;
  wanted.is_reverse = node.attributes().get_int("reverse") != 0;
  candidate.build = [=](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [=](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          const int64_t elements = inputs[0].elements();
          if (elements == 0) return;
          const auto rank = static_cast<int64_t>(inputs[0].sizes().size());
          const int64_t axis = Indices(inputs.back()).at(0, rank);
          Sums line = wanted;
          line.length = inputs[0].sizes()[static_cast<size_t>(axis)];
          for (int64_t position = axis + 1; position < rank; ++position) {
            line.stride *= inputs[0].sizes()[static_cast<size_t>(position)];
          }
          sums(run, line, inputs[0], outputs[0], elements);
        });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_cum_sums(ProposeContext& context) {
  context.for_each({"CumSum"}, [&](const Node& node) { offer_cum_sum(context, node); });
}

}  // namespace tessera::native
