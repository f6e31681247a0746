// The window that a pooling or a convolution slides over the spatial axes, always three of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/backend.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

// Depth, rows, columns. With fewer spatial axes the first ones have length 1.
using Window = std::array<plugin::WindowAxis, 3>;

// The window of a node with the attributes of Conv or of a pooling, between tensors of these sizes;
// `kernel` has the spatial axes only. Throws Failure (TESSERA_UNSUPPORTED) if there are none or
// more than three.
Window window_of(const plugin::Attributes& attributes, const std::vector<int64_t>& kernel,
                 const std::vector<int64_t>& input, const std::vector<int64_t>& output);

// Where the padding of a window comes from: fixed numbers, or auto_pad, which derives it from the
// sizes.
enum class PaddingRule : uint8_t { Fixed, SameUpper, SameLower };

PaddingRule padding_rule_of(const plugin::Attributes& attributes);

// Gives an axis other sizes, and the padding that follows from them.
inline void set_sizes(plugin::WindowAxis& axis, PaddingRule rule, int64_t input, int64_t output) {
  axis.input = input;
  axis.output = output;
  if (rule == PaddingRule::Fixed) return;
  const int64_t total = std::max<int64_t>(0, axis.reach() - input);
  axis.pad_begin = rule == PaddingRule::SameUpper ? total / 2 : total - total / 2;
  axis.pad_end = total - axis.pad_begin;
}

// Whether `window` is between tensors of these sizes, which have images and channels first.
bool has_sizes(const Window& window, std::span<const int64_t> input,
               std::span<const int64_t> output);

// The same window between tensors of other sizes.
Window resized(const Window& window, PaddingRule rule, std::span<const int64_t> input,
               std::span<const int64_t> output);

}  // namespace tessera::native
