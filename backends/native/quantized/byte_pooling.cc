// Poolings of bytes: MaxPool; AveragePool and GlobalAveragePool as regions; QLinearAveragePool and
// QLinearGlobalAveragePool of com.microsoft. Channels are the second axis or, in `nhwc` and if an
// attribute says so, the last one.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/families.h"
#include "base/grain.h"
#include "base/refusal.h"
#include "base/window.h"
#include "quantized/byte_kernels.h"
#include "quantized/byte_tables.h"
#include "quantized/region.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::TapRange;
using plugin::Value;
using plugin::WindowAxis;

namespace {

enum class BytePool : uint8_t { Max, Average, Global };

// A pooling of any sizes.
struct BytePoolRule {
  BytePool kind = BytePool::Max;
  PaddingRule padding = PaddingRule::Fixed;
  bool counts_padding = false;
  bool has_channels_last = false;  // in memory
  bool are_dims_last = false;      // and in the dimensions of the tensors
  int32_t data_type = TESSERA_UINT8;
  // Of averages.
  int32_t from_zero = 0;
  double scale_ratio = 1;    // of the input's scale to the result's
  Rescaling rescaling = {};  // but for its factor
};

// Sizes with the channels as the second axis, as windows need them.
struct PoolDims {
  std::array<int64_t, 5> sizes = {};
  size_t count = 0;

  std::span<const int64_t> all() const { return {sizes.data(), count}; }
};

PoolDims pool_dims(const BytePoolRule& rule, std::span<const int64_t> dims) {
  PoolDims found = {.count = dims.size()};
  std::ranges::copy(dims, found.sizes.begin());
  if (rule.are_dims_last && dims.size() > 2) {
    std::rotate(found.sizes.begin() + 1,
                found.sizes.begin() + static_cast<ptrdiff_t>(dims.size()) - 1,
                found.sizes.begin() + static_cast<ptrdiff_t>(dims.size()));
  }
  return found;
}

// The outputs [begin, end) whose tap reads the input.
std::pair<int64_t, int64_t> outputs_inside(const WindowAxis& axis, int64_t tap) {
  const int64_t offset = tap * axis.dilation - axis.pad_begin;
  const int64_t begin = offset >= 0 ? 0 : (-offset + axis.stride - 1) / axis.stride;
  const int64_t last = axis.input - 1 - offset;
  const int64_t end = last < 0 ? 0 : std::min(axis.output, last / axis.stride + 1);
  return {begin, std::max(begin, end)};
}

// The number of taps that the average of an output divides by.
int64_t divisor_of(const BytePoolRule& rule, const WindowAxis& axis, int64_t output) {
  return rule.counts_padding ? plugin::taps_inside_padding(axis, output)
                             : plugin::taps_inside(axis, output).count();
}

// Results that a thread computes at once, in memory of the stack.
constexpr int64_t kPoolTile = 512;

class BytePoolKernel : public plugin::Kernel {
 public:
  BytePoolKernel(const BytePoolRule& rule, const Window& window)
      : rule_(rule), window_(window), loops_(find_byte_loops(rule.data_type)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const PoolDims input = pool_dims(rule_, inputs[0].sizes());
    const PoolDims output = pool_dims(rule_, outputs[0].sizes());
    if (outputs[0].elements() == 0) return;
    const auto* const from = inputs[0].as<const uint8_t>();
    auto* const to = outputs[0].as<uint8_t>();
    if (rule_.kind == BytePool::Global) return run_global(context, input, from, to);
    const Window window = resized(window_, rule_.padding, input.all(), output.all());
    const auto& [planes, rows, columns] = window;
    const int64_t images = output.sizes[0];
    const int64_t channels = output.sizes[1];
    const int64_t taps = planes.kernel * rows.kernel * columns.kernel;
    const int64_t maps = rule_.has_channels_last ? images : images * channels;
    const int64_t lanes = rule_.has_channels_last ? channels : 1;
    const int64_t lines = maps * planes.output * rows.output;
    const int64_t grain = kGrain / (taps * columns.output * lanes) + 1;
    context.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) run_line(window, lanes, line, from, to);
    });
  }

 private:
  union Tile {
    alignas(64) int32_t sums[kPoolTile];
    alignas(64) uint8_t maxima[kPoolTile];
  };

  // A row of outputs; `map` is an image, or one channel of an image.
  void run_line(const Window& window, int64_t lanes, int64_t line, const uint8_t* from,
                uint8_t* to) const {
    const auto& [planes, rows, columns] = window;
    const int64_t row = line % rows.output;
    const int64_t plane = line / rows.output % planes.output;
    const int64_t map = line / rows.output / planes.output;
    from += map * planes.input * rows.input * columns.input * lanes;
    to += line * columns.output * lanes;
    if (lanes == 1) {
      for (int64_t first = 0; first < columns.output; first += kPoolTile) {
        const int64_t end = std::min(columns.output, first + kPoolTile);
        run_columns(window, plane, row, first, end, from, to);
      }
      return;
    }
    for (int64_t column = 0; column < columns.output; ++column) {
      for (int64_t lane = 0; lane < lanes; lane += kPoolTile) {
        const int64_t count = std::min(lanes - lane, kPoolTile);
        run_pixel(window, {plane, row, column}, lanes, count, from + lane,
                  to + column * lanes + lane);
      }
    }
  }

  // Calls body(input row) for each row of inputs under the window.
  template <class Body>
  static void for_rows(const Window& window, int64_t plane, int64_t row, const Body& body) {
    const auto& [planes, rows, columns] = window;
    const TapRange in_planes = plugin::taps_inside(planes, plane);
    const TapRange in_rows = plugin::taps_inside(rows, row);
    for (int64_t depth = in_planes.begin; depth < in_planes.end; ++depth) {
      const int64_t at = plane * planes.stride + depth * planes.dilation - planes.pad_begin;
      for (int64_t tap = in_rows.begin; tap < in_rows.end; ++tap) {
        const int64_t in_row = row * rows.stride + tap * rows.dilation - rows.pad_begin;
        body(at * rows.input + in_row);
      }
    }
  }

  void begin_tile(Tile& tile, int64_t count) const {
    if (rule_.kind == BytePool::Max) {
      const int lowest = rule_.data_type == TESSERA_INT8 ? INT8_MIN : 0;
      std::fill_n(tile.maxima, count, static_cast<uint8_t>(lowest));
    } else {
      std::fill_n(tile.sums, count, 0);
    }
  }

  void add_tap(Tile& tile, int64_t at, const ByteTap& tap) const {
    if (rule_.kind == BytePool::Max) {
      loops_.max_tap(tap, tile.maxima + at);
    } else {
      loops_.sum_tap(tap, tile.sums + at);
    }
  }

  // Outputs [first, end) of a row of one channel.
  void run_columns(const Window& window, int64_t plane, int64_t row, int64_t first, int64_t end,
                   const uint8_t* from, uint8_t* to) const {
    const auto& [planes, rows, columns] = window;
    Tile tile;
    begin_tile(tile, end - first);
    for_rows(window, plane, row, [&](int64_t in_row) {
      for (int64_t tap = 0; tap < columns.kernel; ++tap) {
        auto [begin, last] = outputs_inside(columns, tap);
        begin = std::max(begin, first);
        last = std::min(last, end);
        if (begin >= last) continue;
        const int64_t column = begin * columns.stride + tap * columns.dilation - columns.pad_begin;
        add_tap(tile, begin - first,
                {from + in_row * columns.input + column, columns.stride, last - begin,
                 rule_.from_zero});
      }
    });
    if (rule_.kind == BytePool::Max) {
      std::copy_n(tile.maxima, end - first, to + first);
      return;
    }
    const int64_t above = divisor_of(rule_, planes, plane) * divisor_of(rule_, rows, row);
    // Outputs that read no padding have the same divisor, and are rounded together.
    const int64_t inner_begin = outputs_inside(columns, 0).first;
    const int64_t inner_end = outputs_inside(columns, columns.kernel - 1).second;
    for (int64_t begin = first; begin < end;) {
      const int64_t divisor = divisor_of(rule_, columns, begin);
      const bool is_inner = begin >= inner_begin && begin < inner_end;
      const int64_t next = is_inner ? std::min(end, inner_end) : begin + 1;
      store_averages(tile.sums + begin - first, above * divisor, to + begin, next - begin);
      begin = next;
    }
  }

  // `count` channels of one output; pixels have `lanes` channels.
  void run_pixel(const Window& window, const std::array<int64_t, 3>& position, int64_t lanes,
                 int64_t count, const uint8_t* from, uint8_t* to) const {
    const auto& [planes, rows, columns] = window;
    const TapRange taps = plugin::taps_inside(columns, position[2]);
    Tile tile;
    begin_tile(tile, count);
    for_rows(window, position[0], position[1], [&](int64_t in_row) {
      for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
        const int64_t column =
            position[2] * columns.stride + tap * columns.dilation - columns.pad_begin;
        add_tap(tile, 0,
                {from + (in_row * columns.input + column) * lanes, 1, count, rule_.from_zero});
      }
    });
    if (rule_.kind == BytePool::Max) {
      std::copy_n(tile.maxima, count, to);
      return;
    }
    const int64_t divisor = divisor_of(rule_, planes, position[0]) *
                            divisor_of(rule_, rows, position[1]) *
                            divisor_of(rule_, columns, position[2]);
    store_averages(tile.sums, divisor, to, count);
  }

  void store_averages(const int32_t* sums, int64_t divisor, uint8_t* to, int64_t count) const {
    Rescaling rescaling = rule_.rescaling;
    // A window of padding alone has the sum 0.
    rescaling.factor =
        static_cast<float>(rule_.scale_ratio / static_cast<double>(std::max<int64_t>(1, divisor)));
    loops_.rescale(sums, rescaling, to, count);
  }

  void run_global(RunContext& context, const PoolDims& input, const uint8_t* from,
                  uint8_t* to) const {
    int64_t length = 1;
    for (const int64_t dim : input.all().subspan(2)) length *= dim;
    const int64_t channels = input.sizes[1];
    const int64_t images = input.sizes[0];
    if (rule_.has_channels_last) {
      const int64_t tiles = (channels + kPoolTile - 1) / kPoolTile;
      context.parallel_for(images * tiles, 1, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) {
          const int64_t lane = index % tiles * kPoolTile;
          const int64_t count = std::min(channels - lane, kPoolTile);
          const int64_t image = index / tiles;
          Tile tile;
          begin_tile(tile, count);
          const uint8_t* pixel = from + image * length * channels + lane;
          for (int64_t at = 0; at < length; ++at, pixel += channels) {
            loops_.sum_tap({pixel, 1, count, rule_.from_zero}, tile.sums);
          }
          store_averages(tile.sums, length, to + image * channels + lane, count);
        }
      });
      return;
    }
    const int64_t grain = kGrain / length + 1;
    context.parallel_for(images * channels, grain, [&](int64_t begin, int64_t end) {
      Tile tile;
      for (int64_t first = begin; first < end; first += kPoolTile) {
        const int64_t count = std::min(end - first, kPoolTile);
        for (int64_t at = 0; at < count; ++at) {
          const int64_t sum =
              loops_.sum({from + (first + at) * length, 1, length, rule_.from_zero});
          tile.sums[at] = static_cast<int32_t>(sum);
        }
        store_averages(tile.sums, length, to + first, count);
      }
    });
  }

  BytePoolRule rule_;
  Window window_;
  ByteLoops loops_;
};

// The most elements whose sum, less their zero points, is an int32.
constexpr int64_t kMaxPooled = INT32_MAX / 255;

// `shape` are the input's dimensions with the channels as the second axis.
void check_pool(const BytePoolRule& rule, const Window& window, std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const WindowAxis& axis : window) count *= axis.kernel;
  if (rule.kind == BytePool::Global) {
    for (const int64_t dim : shape.subspan(2)) count *= dim;
  }
  if (count > kMaxPooled) refuse("sums fewer than 8 million bytes only");
}

// The elements of a row that is worth vectors, and the operations that one of a shorter row is
// worth.
constexpr int64_t kLongRow = 64;
constexpr double kSlowOperations = 64;

struct BytePoolTask {
  std::vector<int32_t> nodes;
  Node node;
  Value input;
  Value result;
  BytePoolRule rule;
};

void offer_pool(ProposeContext& context, const BytePoolTask& task) {
  for (const Value& value : {task.input, task.result}) {
    if (!value.type().is_known()) refuse("takes tensors of known shape only");
    if (value.type().rank < 3 || value.type().rank > 5) refuse("needs one to three spatial axes");
  }
  if (task.result.type().elements() == 0) refuse("there are no elements to pool");
  BytePoolRule rule = task.rule;
  const PoolDims from = pool_dims(rule, task.input.type().dims);
  const PoolDims to = pool_dims(rule, task.result.type().dims);
  Window window;
  const plugin::Attributes attributes = task.node.attributes();
  if (rule.kind != BytePool::Global) {
    window = window_of(attributes, attributes.get_ints("kernel_shape"),
                       {from.all().begin(), from.all().end()}, {to.all().begin(), to.all().end()});
    rule.padding = padding_rule_of(attributes);
    rule.counts_padding = attributes.get_int("count_include_pad") != 0;
  }
  check_pool(rule, window, from.all());
  const auto offer_in = [&](const char* layout) {
    Candidate candidate;
    candidate.nodes = task.nodes;
    candidate.flags = flags_of_region(task.nodes);
    candidate.algorithm = "bytes";
    candidate.inputs.push_back({.value = task.input.id(), .layout = layout});
    candidate.outputs.push_back({.value = task.result.id(), .layout = layout});
    candidate.built_for.emplace();
    const auto bytes = static_cast<double>(task.input.type().elements());
    // Short rows, and those of which not all elements are read, are not read vector by vector.
    const bool is_slow =
        !rule.has_channels_last && (window[2].stride > 1 || window[2].output < kLongRow);
    candidate.optimistic_seconds =
        context.optimistic_seconds(is_slow ? kSlowOperations * bytes : bytes, bytes);
    candidate.build = [rule, window](const plugin::BuildOptions&) {
      return std::make_unique<BytePoolKernel>(rule, window);
    };
    accept_unaligned(candidate);
    context.add(std::move(candidate));
  };
  offer_in(TESSERA_LAYOUT_DEFAULT);
  if (rule.are_dims_last) return;
  rule.has_channels_last = true;
  offer_in("nhwc");
}

BytePoolRule averaging_rule(BytePool kind, const Quantization& from, const Quantization& to,
                            IntegerLimits limits) {
  return {
      .kind = kind,
      .data_type = to.data_type,
      .from_zero = from.zero_point(),
      .scale_ratio = double{from.scale()} / double{to.scale()},
      .rescaling = {.zero = to.zero_point(), .lowest = limits.lowest, .highest = limits.highest}};
}

void offer_max_pool(ProposeContext& context, const Node& node) {
  const int32_t type = node.input(0).type().data_type;
  if (!is_byte_type(type)) return;
  if (node.output(1).is_present()) refuse("does not return the indices of maxima");
  offer_pool(context, {.nodes = {node.id()},
                       .node = node,
                       .input = node.input(0),
                       .result = node.output(0),
                       .rule = {.kind = BytePool::Max, .data_type = type}});
}

void offer_average_region(ProposeContext& context, const Node& node) {
  const QuantizedRegion region = region_around(context.graph(), node);
  if (!region.output.is_quantized() || !region.output.quantization.is_per_tensor()) return;
  const int32_t type = region.output.quantization.data_type;
  if (!is_byte_type(type) || !region.has_inputs_of(type, 1)) return;
  const BytePool kind = node.op() == "AveragePool" ? BytePool::Average : BytePool::Global;
  const std::vector<int32_t> nodes = region.nodes();
  if (!context.is_wanted(nodes)) return;
  offer_pool(context, {.nodes = nodes,
                       .node = node,
                       .input = region.inputs[0].integers,
                       .result = region.output.value,
                       .rule = averaging_rule(kind, region.inputs[0].quantization,
                                              region.output.quantization, region.limits())});
}

void offer_linear_pool(ProposeContext& context, const Node& node) {
  const int32_t type = node.output(0).type().data_type;
  const Quantization from = linear_quantization(node, type, 1, 2);
  const Quantization to = linear_quantization(node, type, 3, 4);
  const BytePool kind = node.op() == "QLinearAveragePool" ? BytePool::Average : BytePool::Global;
  BytePoolRule rule = averaging_rule(kind, from, to, integer_limits(type));
  rule.are_dims_last = node.attributes().get_int("channels_last") != 0;
  rule.has_channels_last = rule.are_dims_last;
  offer_pool(context, {.nodes = {node.id()},
                       .node = node,
                       .input = node.input(0),
                       .result = node.output(0),
                       .rule = rule});
}

}  // namespace

void propose_byte_poolings(ProposeContext& context) {
  context.for_each({"MaxPool"}, [&](const Node& node) { offer_max_pool(context, node); });
  context.for_each({"AveragePool", "GlobalAveragePool"},
                   [&](const Node& node) { offer_average_region(context, node); });
  for_each_of_microsoft(context, {"QLinearAveragePool", "QLinearGlobalAveragePool"},
                        [&](const Node& node) { offer_linear_pool(context, node); });
}

}  // namespace tessera::native
