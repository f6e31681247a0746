// Col2Im: adds up overlapping blocks of an image, which a convolution would read: the transpose of
// unfolding. Images may have any number of axes.
#include <algorithm>
#include <limits>
#include <memory_resource>
#include <string>
#include <type_traits>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/convolution/window.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr size_t kImageShape = 1;
constexpr size_t kBlockShape = 2;
// Larger numbers are useless, and products of two such numbers fit 64 bits.
constexpr int64_t kLongestBlock = 0x7fffffff;

struct FoldAttributes {
  AxisLengths strides;
  AxisLengths dilations;
  AxisLengths pads;  // those at the beginnings, then those at the ends
};

FoldAttributes fold_attributes(const Node& node, size_t axes) {
  return {read_lengths(node, "strides", axes, 1, 1), read_lengths(node, "dilations", axes, 1, 1),
          read_lengths(node, "pads", 2 * axes, 0, 0)};
}

// The elements of a list of sizes, each of [1, most].
std::optional<std::vector<Dim>> fold_sizes(const InferContext& context, size_t index,
                                           int64_t most) {
  auto sizes = dim_list(context, index);
  if (!sizes) return std::nullopt;
  for (const Dim& size : *sizes) {
    if (size.is_known() && (size.value() < 1 || size.value() > most)) {
      context.fail_input(
          index, "expected sizes from 1 to " + std::to_string(most) + ", found " + text(*sizes));
    }
  }
  return sizes;
}

// The number of axes of the image; nullopt if it is unknown. fail()s if inputs differ in it.
std::optional<size_t> fold_axes(const InferContext& context) {
  const std::optional<int64_t> image = list_length(context, kImageShape);
  const std::optional<int64_t> block = list_length(context, kBlockShape);
  const auto axes = image ? image : block;
  if (!axes) return std::nullopt;
  if (*axes < 1) context.fail_input(kImageShape, "expected at least one size, found none");
  if (block && *block != *axes) {
    context.fail_input(kBlockShape, "expected " + std::to_string(*axes) +
                                        " sizes as input 'image_shape' has, found " +
                                        std::to_string(*block));
  }
  return static_cast<size_t>(*axes);
}

// The number of blocks along each axis of an image of known size.
std::vector<int64_t> block_counts(const FoldAttributes& fold, std::span<const Dim> image,
                                  std::span<const Dim> block) {
  std::vector<int64_t> counts;
  for (size_t axis = 0; axis < image.size(); ++axis) {
    const int64_t reach = (block[axis].value() - 1) * fold.dilations[axis] + 1;
    const Dim padded = add(image[axis], fold.pads[axis] + fold.pads[axis + image.size()]);
    const int64_t room = padded.value() - reach;
    counts.push_back(room < 0 ? 0 : room / fold.strides[axis] + 1);
  }
  return counts;
}

// fail()s unless the last axis of the input has as many blocks as the image.
void check_block_count(const InferContext& context, const Shape& input, std::span<const Dim> image,
                       std::span<const Dim> block) {
  const std::vector<int64_t> counts =
      block_counts(fold_attributes(context.node(), image.size()), image, block);
  const Dim expected = product(shape_from(counts));
  if (can_be_equal({input[2]}, {expected})) return;
  context.fail_input(0, "expected " + text(shape_from(counts)) +
                            " blocks along the last axis, found " + text(input));
}

void infer_col2im(InferContext& context) {
  context.set_output(0, context.element(0));
  const Shape* input = context.shape(0);
  if (input != nullptr && input->size() != 3) {
    context.fail_input(0, "expected batch x elements of a block x blocks, found " + text(*input));
  }
  const std::optional<size_t> axes = fold_axes(context);
  if (!axes) return;
  fold_attributes(context.node(), *axes);  // checks them
  const auto image = fold_sizes(context, kImageShape, std::numeric_limits<int64_t>::max());
  const auto block = fold_sizes(context, kBlockShape, kLongestBlock);
  auto output = unknown_shape(context, 0, static_cast<int64_t>(*axes) + 2);
  if (!output) return;
  if (image) std::copy(image->begin(), image->end(), output->begin() + 2);
  if (input != nullptr) {
    (*output)[0] = (*input)[0];
    if (block) {
      const Dim elements = product(*block);
      (*output)[1] = floor_divide((*input)[1], elements);
      if ((*input)[1].is_known() && elements.is_known() &&
          (*input)[1].value() % elements.value() != 0) {
        context.fail_input(0, "expected a multiple of " + text(*block) +
                                  " elements along axis 1, found " + text(*input));
      }
      if (image && is_known(*image) && is_known(*block)) {
        check_block_count(context, *input, *image, *block);
      }
    }
  }
  context.set_output(0, context.element(0), std::move(output));
}

// Sums of floating-point numbers, or of integers modulo 2^64, so that these wrap around. A sum of
// bools is true if one of them is.
template <class T>
using FoldSum = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;

template <class T>
FoldSum<T> fold_term(T element) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(element);
  } else {
    return to_double(element);
  }
}

template <class T>
T folded_element(FoldSum<T> sum) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(sum);
  } else {
    return from_double<T>(sum);
  }
}

// One channel of an image: `input` is the elements of its blocks, [elements, blocks].
template <class T>
class ChannelFold {
 public:
  ChannelFold(std::span<const WindowAxis> axes, int64_t blocks, const T* input, FoldSum<T>* sums)
      : axes_(axes), blocks_(blocks), input_(input), sums_(sums) {}

  void add_all() const { add(0, 0, 0, 0); }

 private:
  // Adds everything that has, along the axes before `axis`, these coordinates: `tap` within a
  // block, `block` among the blocks, `element` in the image, each as a linear index.
  void add(size_t axis, int64_t tap, int64_t block, int64_t element) const {
    const WindowAxis& along = axes_[axis];
    for (int64_t position = 0; position < along.kernel; ++position) {
      const TapRange range = outputs_inside(along, position);
      const int64_t taps = tap * along.kernel + position;
      const int64_t first = element * along.input + position * along.dilation - along.pad_begin;
      if (axis + 1 < axes_.size()) {
        for (int64_t index = range.begin; index < range.end; ++index) {
          add(axis + 1, taps, block * along.output + index, first + index * along.stride);
        }
        continue;
      }
      const T* source = input_ + taps * blocks_ + block * along.output;
      if (along.stride == 1) {  // a loop of its own, because the compiler can vectorise it
        for (int64_t index = range.begin; index < range.end; ++index) {
          sums_[first + index] += fold_term(source[index]);
        }
        continue;
      }
      for (int64_t index = range.begin; index < range.end; ++index) {
        sums_[first + index * along.stride] += fold_term(source[index]);
      }
    }
  }

  std::span<const WindowAxis> axes_;
  int64_t blocks_;
  const T* input_;
  FoldSum<T>* sums_;
};

std::pmr::vector<WindowAxis> fold_window(const KernelCall& call) {
  const std::pmr::vector<int64_t> block = integers_of(call, kBlockShape);
  const auto image = call.outputs[0].dims.subspan(2);
  const FoldAttributes fold = fold_attributes(call.node, image.size());
  std::pmr::vector<WindowAxis> axes(&call.scratch);
  for (size_t axis = 0; axis < image.size(); ++axis) {
    const int64_t reach = (block[axis] - 1) * fold.dilations[axis] + 1;
    const int64_t room = image[axis] + fold.pads[axis] + fold.pads[axis + image.size()] - reach;
    axes.push_back({.input = image[axis],
                    .output = room < 0 ? 0 : room / fold.strides[axis] + 1,
                    .kernel = block[axis],
                    .stride = fold.strides[axis],
                    .dilation = fold.dilations[axis],
                    .pad_begin = fold.pads[axis]});
  }
  return axes;
}

template <class T>
void fold_channels(const KernelCall& call, bool is_bool) {
  const auto input = call.inputs[0].as<T>();
  const auto output = call.outputs[0].as<T>();
  const std::pmr::vector<WindowAxis> axes = fold_window(call);
  const int64_t channels = call.outputs[0].dims[0] * call.outputs[0].dims[1];
  const auto elements = static_cast<size_t>(call.outputs[0].elements / channels);
  const int64_t column = call.inputs[0].elements / channels;
  const auto slots = static_cast<size_t>(slot_count(call.pool, channels, 1));
  std::pmr::vector<FoldSum<T>> memory(slots * elements, &call.scratch);
  parallel_for_in_slots(call.pool, channels, 1, [&](int64_t slot, int64_t begin, int64_t end) {
    const auto sums = std::span(memory).subspan(static_cast<size_t>(slot) * elements, elements);
    for (int64_t channel = begin; channel < end; ++channel) {
      std::ranges::fill(sums, FoldSum<T>{0});
      const T* source = input.data() + channel * column;
      if (column > 0) {
        ChannelFold<T>(axes, call.inputs[0].dims[2], source, sums.data()).add_all();
      }
      const auto target = output.subspan(static_cast<size_t>(channel) * elements, elements);
      for (size_t index = 0; index < elements; ++index) {
        target[index] =
            is_bool ? static_cast<T>(sums[index] != 0 ? 1 : 0) : folded_element<T>(sums[index]);
      }
    }
  });
}

void run_col2im(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const DataType type = call.inputs[0].type;
  if (type == DataType::Bool) return fold_channels<uint8_t>(call, true);
  visit_numeric(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    fold_channels<T>(call, false);
  });
}

}  // namespace

std::vector<Op> col2im_ops() {
  return {{.name = "Col2Im",
           .versions = {18},
           .inputs = {{"input", "T"},
                      {"image_shape", "tensor(int64)"},
                      {"block_shape", "tensor(int64)"}},
           .outputs = {{"output", "T"}},
           .type_variables = {{"T", kAllTypes}, {"tensor(int64)", kInt64Type}},
           .attributes = {{"dilations", AttributeKind::Ints, std::nullopt},
                          {"pads", AttributeKind::Ints, std::nullopt},
                          {"strides", AttributeKind::Ints, std::nullopt}},
           .infer = infer_col2im,
           .flops = flops_per_input,
           .kernel = run_col2im}};
}

}  // namespace tessera::ops
