// Unique: the different elements, or the different slices along an axis. Their number is known only
// at run time. com.microsoft has an older form, without sorting.
#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "ops/domains.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

// What is compared: `count` slices. Element (outer, inner) of a slice is the input's element
// number (outer * count + slice) * inner_count + inner. Without an axis, each element is a slice.
struct UniqueSlices {
  int64_t count = 0;
  int64_t outer_count = 1;
  int64_t inner_count = 1;
};

UniqueSlices unique_slices(const Node& node, std::span<const int64_t> dims) {
  const int64_t* given = node.attributes.find_int("axis");
  if (given == nullptr) return {.count = element_count(dims)};
  const auto rank = static_cast<int64_t>(dims.size());
  const auto axis = static_cast<size_t>(*given < 0 ? *given + rank : *given);
  return {.count = dims[axis],
          .outer_count = element_count(dims.first(axis)),
          .inner_count = element_count(dims.subspan(axis + 1))};
}

// -1, 0 or 1. All NaNs are equal and larger than numbers, as in NumPy.
template <class T>
int compare_elements(T left, T right) {
  const auto first = static_cast<compute_t<T>>(left);
  const auto second = static_cast<compute_t<T>>(right);
  if constexpr (!std::is_integral_v<T>) {
    if (std::isnan(first) || std::isnan(second)) {
      return (std::isnan(first) ? 1 : 0) - (std::isnan(second) ? 1 : 0);
    }
  }
  return (first > second ? 1 : 0) - (first < second ? 1 : 0);
}

// Compares two slices by their first different element.
template <class T>
int compare_slices(const T* data, const UniqueSlices& slices, int64_t left, int64_t right) {
  for (int64_t outer = 0; outer < slices.outer_count; ++outer) {
    const T* row = data + outer * slices.count * slices.inner_count;
    for (int64_t inner = 0; inner < slices.inner_count; ++inner) {
      const int order = compare_elements(row[left * slices.inner_count + inner],
                                         row[right * slices.inner_count + inner]);
      if (order != 0) return order;
    }
  }
  return 0;
}

struct UniqueGroups {
  std::pmr::vector<int64_t> firsts;          // of each group, the first slice
  std::pmr::vector<int64_t> first_of_slice;  // of each slice, the first slice of its group
};

// Puts the next slice in ascending order into its group.
template <class IsEqual>
void add_to_groups(UniqueGroups& groups, int64_t slice, const IsEqual& is_equal) {
  if (groups.firsts.empty() || !is_equal(groups.firsts.back(), slice)) {
    groups.firsts.push_back(slice);
  }
  groups.first_of_slice[static_cast<size_t>(slice)] = groups.firsts.back();
}

// Slices of one element: sorted together with their elements, which avoids a cache miss for each
// comparison.
template <class T>
void group_elements(const T* data, UniqueGroups& groups) {
  struct Element {
    T value;
    int64_t slice;
  };
  std::pmr::vector<Element> order(groups.first_of_slice.size(),
                                  groups.first_of_slice.get_allocator().resource());
  for (size_t slice = 0; slice < order.size(); ++slice) {
    order[slice] = {data[slice], static_cast<int64_t>(slice)};
  }
  std::sort(order.begin(), order.end(), [](const Element& left, const Element& right) {
    const int compared = compare_elements(left.value, right.value);
    return compared != 0 ? compared < 0 : left.slice < right.slice;
  });
  for (const Element& element : order) {
    add_to_groups(groups, element.slice, [&](int64_t left, int64_t right) {
      return compare_elements(data[left], data[right]) == 0;
    });
  }
}

template <class T>
void group_slices(const T* data, const UniqueSlices& slices, UniqueGroups& groups) {
  std::pmr::vector<int64_t> order(groups.first_of_slice.size(), 0,
                                  groups.first_of_slice.get_allocator());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t left, int64_t right) {
    const int compared = compare_slices(data, slices, left, right);
    return compared != 0 ? compared < 0 : left < right;
  });
  for (const int64_t slice : order) {
    add_to_groups(groups, slice, [&](int64_t left, int64_t right) {
      return compare_slices(data, slices, left, right) == 0;
    });
  }
}

// Groups in ascending order of their elements.
UniqueGroups unique_groups(DataType type, const void* data, const UniqueSlices& slices,
                           std::pmr::memory_resource* memory) {
  UniqueGroups groups = {std::pmr::vector<int64_t>(memory),
                         std::pmr::vector<int64_t>(static_cast<size_t>(slices.count), 0, memory)};
  const auto group = [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (slices.outer_count == 1 && slices.inner_count == 1) {
      group_elements(static_cast<const T*>(data), groups);
    } else {
      group_slices(static_cast<const T*>(data), slices, groups);
    }
  };
  if (type == DataType::Bool) {
    group(TypeTag<uint8_t>{});
  } else {
    visit_numeric(type, group);
  }
  return groups;
}

// The positions of the outputs in the node.
struct UniqueOutputs {
  std::optional<size_t> indices;
  size_t inverse = 0;
  size_t counts = 0;
};

constexpr UniqueOutputs kOnnxOutputs = {.indices = 1, .inverse = 2, .counts = 3};
constexpr UniqueOutputs kContributedOutputs = {.indices = std::nullopt, .inverse = 1, .counts = 2};

template <const UniqueOutputs& kOutputs>
void infer_unique(InferContext& context) {
  const Shape* input = context.shape(0);
  const int64_t* given = context.node().attributes.find_int("axis");
  std::optional<Shape> output;
  Dim slices = unknown_dim(context, 0, 1);
  size_t axis = 0;
  if (input != nullptr && given != nullptr) {
    output = *input;
    axis =
        static_cast<size_t>(context.normalized_axis(*given, static_cast<int64_t>(input->size())));
    slices = (*input)[axis];
  } else if (given == nullptr) {
    output = Shape{1};
    if (input != nullptr) slices = product(*input);
  }
  Dim found = unknown_dim(context, 0, axis);
  if (const Tensor* constant = context.constant(0)) {
    const UniqueGroups groups = unique_groups(constant->type(), constant->data(),
                                              unique_slices(context.node(), constant->dims()),
                                              std::pmr::get_default_resource());
    found = static_cast<int64_t>(groups.firsts.size());
  }
  if (output) (*output)[axis] = found;
  context.set_output(0, context.element(0), output);
  if (kOutputs.indices) context.set_output(*kOutputs.indices, DataType::Int64, Shape{found});
  context.set_output(kOutputs.inverse, DataType::Int64, Shape{slices});
  context.set_output(kOutputs.counts, DataType::Int64, Shape{found});
}

void infer_contributed_unique(InferContext& context) {
  check_one_dimension(context, 0);
  infer_unique<kContributedOutputs>(context);
}

// Copies the slices `firsts` of the input to the output.
void copy_slices(const KernelCall& call, const UniqueSlices& slices,
                 std::span<const int64_t> firsts) {
  visit_size(call.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = call.inputs[0].as<T>().data();
    T* target = call.outputs[0].as<T>().data();
    for (int64_t outer = 0; outer < slices.outer_count; ++outer) {
      const T* row = source + outer * slices.count * slices.inner_count;
      for (const int64_t first : firsts) {
        target = std::copy_n(row + first * slices.inner_count, slices.inner_count, target);
      }
    }
  });
}

template <const UniqueOutputs& kOutputs>
void run_unique(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const UniqueSlices slices = unique_slices(call.node, input.dims);
  UniqueGroups groups = unique_groups(input.type, input.data, slices, &call.scratch);
  const int64_t* sorted = call.node.attributes.find_int("sorted");
  if (sorted == nullptr || *sorted == 0) std::ranges::sort(groups.firsts);
  if (call.has_output(0)) copy_slices(call, slices, groups.firsts);
  // By slice: the number of its group, if it is the first of one.
  std::pmr::vector<int64_t> numbers(groups.first_of_slice.size(), 0, &call.scratch);
  for (size_t group = 0; group < groups.firsts.size(); ++group) {
    numbers[static_cast<size_t>(groups.firsts[group])] = static_cast<int64_t>(group);
  }
  const auto output = [&](std::optional<size_t> index) {
    return index && call.has_output(*index) ? call.outputs[*index].as<int64_t>()
                                            : std::span<int64_t>();
  };
  const std::span<int64_t> indices = output(kOutputs.indices);
  const std::span<int64_t> inverse = output(kOutputs.inverse);
  const std::span<int64_t> counts = output(kOutputs.counts);
  if (!indices.empty()) std::ranges::copy(groups.firsts, indices.begin());
  std::ranges::fill(counts, int64_t{0});
  for (size_t slice = 0; slice < numbers.size(); ++slice) {
    const int64_t number = numbers[static_cast<size_t>(groups.first_of_slice[slice])];
    if (!inverse.empty()) inverse[slice] = number;
    if (!counts.empty()) ++counts[static_cast<size_t>(number)];
  }
}

}  // namespace

std::vector<Op> unique_ops() {
  return {{.name = "Unique",
           .versions = {11, 28},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"},
                       {"indices", "tensor(int64)", Arity::Optional},
                       {"inverse_indices", "tensor(int64)", Arity::Optional},
                       {"counts", "tensor(int64)", Arity::Optional}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
           // Without an axis, the input is flattened.
           .attributes = {{"axis", AttributeKind::Int, std::nullopt},
                          {"sorted", AttributeKind::Int, int64_t{1}}},
           .traits = kSizedByData,
           .infer = infer_unique<kOnnxOutputs>,
           .flops = no_flops,
           .kernel = run_unique<kOnnxOutputs>},
          {.name = "Unique",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"x", "T"}},
           .outputs = {{"y", "T"}, {"idx", "tensor(int64)"}, {"counts", "tensor(int64)"}},
           .type_variables = {{"T", kAllTypesAndStrings}, {"tensor(int64)", kInt64Type}},
           .traits = kSizedByData,
           .infer = infer_contributed_unique,
           .flops = no_flops,
           .kernel = run_unique<kContributedOutputs>}};
}

}  // namespace tessera::ops
