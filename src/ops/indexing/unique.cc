// Unique: the different elements, or the different slices along an axis. Their number is known only
// at run time. com.microsoft has an older form, without sorting.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
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

// Equal for equal elements.
template <class T>
uint64_t hash_of(T element) {
  const auto number = static_cast<compute_t<T>>(element);
  uint64_t bits = 0;
  if constexpr (std::is_integral_v<T>) {
    bits = static_cast<uint64_t>(number);
  } else if (number != number) {
    bits = ~uint64_t{0};
  } else if (number != 0) {  // zeros of both signs are equal
    std::memcpy(&bits, &number, sizeof(number));
  }
  // Knuth, The Art of Computer Programming 3, 6.4: multiplicative hashing by the golden ratio.
  return bits * 0x9E3779B97F4A7C15U;
}

// Slices of one element: groups in the order of their first slices, by a hash table of these with
// open addressing, of which at least half is free.
template <class T>
void group_elements(const T* data, UniqueGroups& groups) {
  const size_t count = groups.first_of_slice.size();
  const int bits = static_cast<int>(std::bit_width(count)) + 1;
  std::pmr::vector<int64_t> table(size_t{1} << bits, -1, groups.firsts.get_allocator());
  for (size_t slice = 0; slice < count; ++slice) {
    size_t place = static_cast<size_t>(hash_of(data[slice]) >> (64 - bits));
    while (table[place] >= 0 && compare_elements(data[table[place]], data[slice]) != 0) {
      place = (place + 1) & (table.size() - 1);
    }
    if (table[place] < 0) {
      table[place] = static_cast<int64_t>(slice);
      groups.firsts.push_back(table[place]);
    }
    groups.first_of_slice[slice] = table[place];
  }
}

// Sorts groups together with their elements, which avoids a cache miss for each comparison.
template <class T>
void sort_groups(const T* data, UniqueGroups& groups) {
  struct Element {
    T value;
    int64_t slice;
  };
  std::pmr::vector<Element> order(groups.firsts.size(), groups.firsts.get_allocator().resource());
  for (size_t group = 0; group < order.size(); ++group) {
    order[group] = {data[groups.firsts[group]], groups.firsts[group]};
  }
  std::sort(order.begin(), order.end(), [](const Element& left, const Element& right) {
    return compare_elements(left.value, right.value) < 0;
  });
  std::ranges::transform(order, groups.firsts.begin(), &Element::slice);
}

// Groups in ascending order.
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
    if (groups.firsts.empty() || compare_slices(data, slices, groups.firsts.back(), slice) != 0) {
      groups.firsts.push_back(slice);
    }
    groups.first_of_slice[static_cast<size_t>(slice)] = groups.firsts.back();
  }
}

// Groups in ascending order of their elements, or in the order of their first slices.
UniqueGroups unique_groups(DataType type, const void* data, const UniqueSlices& slices,
                           bool is_sorted, std::pmr::memory_resource* memory) {
  UniqueGroups groups = {std::pmr::vector<int64_t>(memory),
                         std::pmr::vector<int64_t>(static_cast<size_t>(slices.count), 0, memory)};
  const auto group = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* elements = static_cast<const T*>(data);
    if (slices.outer_count == 1 && slices.inner_count == 1) {
      group_elements(elements, groups);
      if (is_sorted) sort_groups(elements, groups);
    } else {
      group_slices(elements, slices, groups);
      if (!is_sorted) std::ranges::sort(groups.firsts);
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
                                              false, std::pmr::get_default_resource());
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
  const int64_t* sorted = call.node.attributes.find_int("sorted");
  const bool is_sorted = sorted != nullptr && *sorted != 0;
  const UniqueGroups groups =
      unique_groups(input.type, input.data, slices, is_sorted, &call.scratch);
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
