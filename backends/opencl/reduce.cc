// Reductions over any axes, and global poolings, which are reductions over the spatial axes.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "grid.h"
#include "offers.h"
#include "tessera/backend_ops.h"

namespace tessera::opencl {

using plugin::Failure;
using plugin::Node;

namespace {

// Definitions: FIRST, the total of no elements; COMBINE(total, x); EACH(x) and LAST(total, count),
// which are applied before and after; IS_SUM, if totals of float32 are added. With IS_WIDE, totals
// are in float64. With IS_GROUPED, a group computes one output together, else each work-item
// computes one.
constexpr const char* kReductionSource = R"(
#ifdef IS_WIDE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double total_type;
#else
typedef float total_type;
#endif

KERNEL void reduce(__global const uchar *x_base, ulong x_at, __global uchar *y_base, ulong y_at,
                   int outputs, int count, SIZES(kept_size), AXES(kept_stride), SIZES(size),
                   AXES(stride)) {
  __global const float *x = AT(const float, x_base, x_at);
  __global float *y = AT(float, y_base, y_at);
#ifdef IS_GROUPED
  __local total_type totals[GROUP];
  const int item = get_local_id(0);
  const int output = get_group_id(0);
  const int step = GROUP;
#else
  const int item = 0;
  const int output = get_global_id(0);
  const int step = 1;
  if (output < outputs)
#endif
  {
    const int base = POSITION(output, kept_size, kept_stride);
#ifdef IS_SUM
    float2 sum = 0;
    for (int index = item; index < count; index += step) {
      const total_type element = x[base + POSITION(index, size, stride)];
      sum = added(sum, EACH(element));
    }
    const total_type total = rounded(sum);
#else
    total_type total = FIRST;
    for (int index = item; index < count; index += step) {
      const total_type element = x[base + POSITION(index, size, stride)];
      total = COMBINE(total, EACH(element));
    }
#endif
#ifdef IS_GROUPED
    totals[item] = total;
    for (int half_group = GROUP / 2; half_group > 0; half_group /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (item < half_group) totals[item] = COMBINE(totals[item], totals[item + half_group]);
    }
    if (item == 0) y[output] = LAST(totals[0], count);
#else
    y[output] = LAST(total, count);
#endif
  }
}
)";

constexpr const char* kAdd = "((total) + (x))";

struct Reduction {
  const char* first = "0.0f";
  const char* combine = kAdd;
  const char* each = "(x)";
  const char* last = "(total)";
  bool is_wide = false;  // in between, results leave the range of float32
};

const std::map<std::string_view, Reduction> kReductions = {
    {"GlobalAveragePool", {.last = "((total) / (float)(count))"}},
    {"GlobalMaxPool", {.first = "-INFINITY", .combine = "LARGER(total, x)"}},
    {"ReduceL1", {.each = "fabs(x)"}},
    {"ReduceL2", {.each = "((x) * (x))", .last = "sqrt(total)", .is_wide = true}},
    {"ReduceLogSum", {.last = "log(total)"}},
    {"ReduceMax", {.first = "-INFINITY", .combine = "LARGER(total, x)"}},
    {"ReduceMean", {.last = "((total) / (float)(count))"}},
    {"ReduceMin", {.first = "INFINITY", .combine = "SMALLER(total, x)"}},
    {"ReduceProd", {.first = "1.0f", .combine = "((total) * (x))", .is_wide = true}},
    {"ReduceSum", {}},
    {"ReduceSumSquare", {.each = "((x) * (x))"}},
};

// Kept and reduced axes, each merged and with the same number of axes.
struct ReducedSpace {
  StridedSpace kept;
  StridedSpace reduced;
  size_t rank = 1;
};

StridedSpace with_rank(StridedSpace space, size_t rank) {
  const size_t added = rank - space.size.size();
  space.size.insert(space.size.begin(), added, 1);
  space.strides[0].insert(space.strides[0].begin(), added, 0);
  return space;
}

ReducedSpace reduced_space(const std::vector<int64_t>& dims, const std::vector<bool>& is_reduced) {
  const std::vector<int64_t> strides = plugin::dense_strides(dims);
  StridedSpace kept{.size = {}, .strides = {{}}};
  StridedSpace reduced{.size = {}, .strides = {{}}};
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    StridedSpace& space = is_reduced[axis] ? reduced : kept;
    space.size.push_back(dims[axis]);
    space.strides[0].push_back(strides[axis]);
  }
  ReducedSpace result{.kept = merged(kept), .reduced = merged(reduced)};
  result.rank = std::max(result.kept.size.size(), result.reduced.size.size());
  result.kept = with_rank(std::move(result.kept), result.rank);
  result.reduced = with_rank(std::move(result.reduced), result.rank);
  return result;
}

int64_t element_count(const StridedSpace& space) {
  int64_t count = 1;
  for (const int64_t size : space.size) count *= size;
  return count;
}

void offer_reduction(const Offers& offers, const Node& node, const std::vector<bool>& is_reduced) {
  require_floats(node.input(0));
  const Reduction& reduction = kReductions.at(node.op());
  if (reduction.is_wide && !offers.facts().has_float64) {
    throw Failure(TESSERA_UNSUPPORTED, "needs float64, which the device does not have");
  }
  const ReducedSpace space = reduced_space(node.input(0).type().dims, is_reduced);
  const int64_t outputs = element_count(space.kept);
  const int64_t count = element_count(space.reduced);
  // Neighbours in the memory are read by neighbours in a group: either elements of one output, or
  // those of neighbouring outputs.
  const bool is_inner_kept = space.kept.strides[0].back() == 1 && outputs >= kGroupItems;
  const bool is_grouped = count >= kGroupItems && !is_inner_kept;
  Offer offer(offers, node);
  const Place from = offer.read(node.input(0));
  const Place to = offer.write(node.output(0));
  offer.launch(
      {.definitions =
           axes_definitions(space.rank) + (is_grouped ? define("IS_GROUPED", 1) : "") +
           (reduction.is_wide           ? define("IS_WIDE", 1)
            : reduction.combine == kAdd ? define("IS_SUM", 1)
                                        : std::string()) +
           define("FIRST", reduction.first) + define("COMBINE(total, x)", reduction.combine) +
           define("EACH(x)", reduction.each) + define("LAST(total, count)", reduction.last),
       .source = kReductionSource,
       .name = "reduce",
       .arguments = {from, to, narrow(outputs), narrow(count), divisors(space.kept.size),
                     narrow(space.kept.strides[0]), divisors(space.reduced.size),
                     narrow(space.reduced.strides[0])},
       .groups = is_grouped ? outputs : groups_for(outputs, kGroupItems),
       .group_items = kGroupItems});
  offer.add(static_cast<double>(node.flops()), bytes_of(node));
}

void offer_reduce(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  offer_reduction(offers, node, plugin::reduced_axes(node, node.input(0).type().dims.size()));
}

void offer_global_pool(const Offers& offers, const Node& node) {
  require_floats(node.input(0));
  std::vector<bool> is_reduced(node.input(0).type().dims.size(), true);
  std::fill_n(is_reduced.begin(), std::min<size_t>(2, is_reduced.size()), false);
  offer_reduction(offers, node, is_reduced);
}

}  // namespace

void propose_reductions(const Offers& offers) {
  offers.context().for_each({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceMax", "ReduceMean",
                             "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"},
                            [&](const Node& node) { offer_reduce(offers, node); });
  offers.context().for_each({"GlobalAveragePool", "GlobalMaxPool"},
                            [&](const Node& node) { offer_global_pool(offers, node); });
}

}  // namespace tessera::opencl
