#include "elementwise/broadcast_axes.h"

#include <string>

#include "base/divide_up.h"
#include "tessera/backend.h"

namespace tessera::native {

namespace {

constexpr size_t kChannelAxis = 1;

// What an axis of storage counts: a dimension, the blocks of channels, or the channels in a block.
enum class Unit : uint8_t { Element, Block, Lane };
struct LoopAxis {
  size_t dim = 0;
  Unit unit = Unit::Element;
};

int64_t size_of(const BroadcastOperand& operand, std::span<const int64_t> dims, size_t axis) {
  return operand.is_repeated(axis) ? 1 : dims[axis];
}

// The distance of neighbours along a dimension of a row-major operand.
int64_t row_major_distance(const StorageOrder& order, std::span<const int64_t> dims,
                           const BroadcastOperand& operand, size_t dim) {
  int64_t distance = 1;
  for (size_t inner = dim + 1; inner < dims.size(); ++inner) {
    int64_t size = size_of(operand, dims, inner);
    if (inner == kChannelAxis && operand.is_padded) {
      size = divide_up(size, order.block) * order.block;
    }
    distance *= size;
  }
  return distance;
}

// The same for an operand in the layout of the result; along the channels, that of whole blocks.
int64_t stored_distance(const StorageOrder& order, std::span<const int64_t> dims,
                        const BroadcastOperand& operand, size_t dim) {
  if (order.has_channels_last && dim == kChannelAxis) return 1;
  int64_t distance = order.has_channels_last ? size_of(operand, dims, kChannelAxis) : order.block;
  for (size_t inner = dim + 1; inner < dims.size(); ++inner) {
    if (inner != kChannelAxis) {
      distance *= size_of(operand, dims, inner);
    } else if (!order.has_channels_last) {
      distance *= divide_up(size_of(operand, dims, inner), order.block);
    }
  }
  return distance;
}

int64_t stride_of(const StorageOrder& order, std::span<const int64_t> dims,
                  const BroadcastOperand& operand, const LoopAxis& axis) {
  // A single channel of an operand in the layout of the result has lanes too, all but the first of
  // which are padding; they are repeated only if the result has more channels.
  const bool is_repeated =
      operand.is_repeated(axis.dim) && (operand.is_row_major || dims[axis.dim] != 1);
  if (is_repeated) return 0;
  if (operand.is_row_major) {
    const int64_t distance = row_major_distance(order, dims, operand, axis.dim);
    return axis.unit == Unit::Block ? distance * order.block : distance;
  }
  return axis.unit == Unit::Lane ? 1 : stored_distance(order, dims, operand, axis.dim);
}

int64_t size_of(const StorageOrder& order, std::span<const int64_t> dims, const LoopAxis& axis) {
  if (axis.unit == Unit::Lane) return order.block;
  return axis.unit == Unit::Block ? divide_up(dims[axis.dim], order.block) : dims[axis.dim];
}

// Adds the next outer axis.
void add_axis(LoopAxes& axes, int64_t size, const std::array<int64_t, kMaxOperands>& strides,
              size_t operands) {
  if (size == 1) return;
  bool is_merged = axes.count > 0;
  for (size_t operand = 0; is_merged && operand < operands; ++operand) {
    const size_t last = axes.count - 1;
    is_merged = strides[operand] == axes.strides[operand][last] * axes.sizes[last];
  }
  if (is_merged) {
    axes.sizes[axes.count - 1] *= size;
    return;
  }
  if (axes.count == kMaxLoopAxes) {
    throw plugin::Failure(
        TESSERA_UNSUPPORTED,
        "broadcasts along up to " + std::to_string(kMaxLoopAxes) + " separate axes only");
  }
  axes.sizes[axes.count] = size;
  for (size_t operand = 0; operand < operands; ++operand) {
    axes.strides[operand][axes.count] = strides[operand];
  }
  ++axes.count;
}

}  // namespace

LoopAxes loop_axes(const StorageOrder& order, std::span<const int64_t> dims,
                   std::span<const BroadcastOperand> operands) {
  LoopAxes axes;
  const auto add = [&](const LoopAxis& axis) {
    std::array<int64_t, kMaxOperands> strides = {};
    for (size_t operand = 0; operand < operands.size(); ++operand) {
      strides[operand] = stride_of(order, dims, operands[operand], axis);
    }
    add_axis(axes, size_of(order, dims, axis), strides, operands.size());
  };
  const bool has_blocks = order.block > 1;
  if (has_blocks) add({kChannelAxis, Unit::Lane});
  if (order.has_channels_last) add({kChannelAxis});
  for (size_t dim = dims.size(); dim-- > 0;) {
    const bool is_channels = dim == kChannelAxis;
    if (is_channels && order.has_channels_last) continue;
    add({dim, is_channels && has_blocks ? Unit::Block : Unit::Element});
  }
  if (axes.count > 0) return axes;
  axes.count = 1;
  axes.sizes[0] = 1;
  for (size_t operand = 0; operand < operands.size(); ++operand) axes.strides[operand][0] = 1;
  return axes;
}

int64_t checked_elements(const StorageOrder& order, std::span<const int64_t> dims,
                         const BroadcastOperand& operand) {
  const bool is_whole = order.block == 1 || !operand.is_row_major || operand.is_padded ||
                        operand.is_repeated(kChannelAxis) || dims[kChannelAxis] % order.block == 0;
  if (is_whole) return 0;
  int64_t elements = 1;
  for (size_t axis = 0; axis < dims.size(); ++axis) elements *= size_of(operand, dims, axis);
  return elements;
}

}  // namespace tessera::native
