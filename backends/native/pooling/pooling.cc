// MaxPool and AveragePool, in the layout of their input. Global poolings are reductions.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/window.h"
#include "layout/feature_map.h"
#include "pooling/pooling_kernels.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::TapRange;
using plugin::Value;
using plugin::WindowAxis;

namespace {

// What of a pooling does not depend on the sizes of its tensors.
struct PoolRule {
  PaddingRule padding = PaddingRule::Fixed;
  std::optional<ChannelLayout> layout;  // nullopt: row-major
  bool is_max = false;
  bool counts_padding = false;
};

FeatureMap map_of(const PoolRule& rule, std::span<const int64_t> dims) {
  return rule.layout ? feature_map_of(*rule.layout, dims) : row_major_feature_map(dims);
}

// A pooling between tensors of known sizes.
struct Pooling {
  Window window;
  FeatureMap map;  // of the output
  // A window without inputs gives -infinity also in padding lanes, which must be zero.
  bool is_to_clear = false;

  // The factors of averages, along each of the three axes. With one spatial axis, the others have
  // one output.
  int64_t factor_count() const { return window[0].output + window[1].output + window[2].output; }
};

// Whether all taps of an output read the input.
bool is_inside(const WindowAxis& axis, int64_t output) {
  const int64_t start = output * axis.stride - axis.pad_begin;
  return start >= 0 && start + axis.extent() <= axis.input;
}

bool has_window_of_padding(const Window& window) {
  return std::any_of(window.begin(), window.end(), [](const WindowAxis& axis) {
    for (int64_t output = 0; output < axis.output; ++output) {
      if (!is_inside(axis, output) && plugin::taps_inside(axis, output).count() == 0) return true;
    }
    return false;
  });
}

Pooling pooling_of(const PoolRule& rule, const Window& window, std::span<const int64_t> output) {
  Pooling pooling = {.window = window, .map = map_of(rule, output)};
  pooling.is_to_clear = rule.is_max && pooling.map.is_padded() && has_window_of_padding(window);
  return pooling;
}

// Writes, for each output along the three axes, one over the number of taps that count; 0 if none
// does.
void write_factors(const PoolRule& rule, const Window& window, float* to) {
  for (const WindowAxis& axis : window) {
    for (int64_t output = 0; output < axis.output; ++output) {
      const int64_t count = is_inside(axis, output) ? axis.kernel
                            : rule.counts_padding   ? plugin::taps_inside_padding(axis, output)
                                                    : plugin::taps_inside(axis, output).count();
      *to++ = count == 0 ? 0 : static_cast<float>(1 / static_cast<double>(count));
    }
  }
}

// The bytes of the factors of averages. They depend on the sizes alone, because a kernel that was
// built for other sizes may get this workspace.
int64_t factor_bytes(const PoolRule& rule, std::span<const int64_t> output) {
  if (rule.is_max) return 0;
  auto count = static_cast<int64_t>(std::tuple_size_v<Window> - (output.size() - 2));
  for (const int64_t dim : output.subspan(2)) count += dim;
  return count * static_cast<int64_t>(sizeof(float));
}

// The factors for the sizes of the proposal are kept; those for other sizes are computed in each
// run.
class PoolKernel : public plugin::Kernel {
 public:
  PoolKernel(const PoolRule& rule, const Pooling& proposed) : rule_(rule), proposed_(proposed) {
    const PoolLoops loops = find_pool_loops(rule.is_max);
    loop_ = proposed.map.lanes == 1 ? loops.single : loops.wide;
    if (rule.is_max) return;
    factors_.resize(static_cast<size_t>(proposed.factor_count()));
    write_factors(rule, proposed.window, factors_.data());
  }

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(factors_.size() * sizeof(float));
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    const std::span<const int64_t> input = inputs[0].sizes();
    const std::span<const int64_t> output = outputs[0].sizes();
    const FeatureMap& map = proposed_.map;
    if (map.images == output[0] && map.channels == output[1] &&
        has_sizes(proposed_.window, input, output)) {
      return run_pooling(context, proposed_, factors_.data(), from, to);
    }
    const Pooling other =
        pooling_of(rule_, resized(proposed_.window, rule_.padding, input, output), output);
    auto* factors = static_cast<float*>(context.workspace());
    if (!rule_.is_max) write_factors(rule_, other.window, factors);
    run_pooling(context, other, factors, from, to);
  }

 private:
  void run_pooling(RunContext& context, const Pooling& pooling, const float* factors,
                   const float* from, float* to) const {
    const auto& [planes, rows, columns] = pooling.window;
    const FeatureMap& map = pooling.map;
    const int64_t lines = map.images * map.blocks * planes.output * rows.output;
    const int64_t work = planes.kernel * rows.kernel * columns.output * columns.kernel;
    context.parallel_for(lines, kGrain / (work * map.lanes) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) run_line(pooling, factors, from, to, line);
    });
    if (pooling.is_to_clear) clear_padding(context, padding_of(map), to, sizeof(float));
  }

  void run_line(const Pooling& pooling, const float* factors, const float* from, float* to,
                int64_t line) const {
    const auto& [planes, rows, columns] = pooling.window;
    const int64_t lanes = pooling.map.lanes;
    const int64_t row = line % rows.output;
    const int64_t plane = line / rows.output % planes.output;
    const int64_t block = line / rows.output / planes.output;
    const TapRange plane_taps = plugin::taps_inside(planes, plane);
    const TapRange row_taps = plugin::taps_inside(rows, row);
    const int64_t width = columns.input * lanes;
    PoolRow pool = {.planes = plane_taps.count(),
                    .plane_step = planes.dilation * rows.input * width,
                    .rows = row_taps.count(),
                    .row_step = rows.dilation * width,
                    .lanes = lanes,
                    .columns = columns.input,
                    .outputs = columns.output,
                    .kernel = columns.kernel,
                    .stride = columns.stride,
                    .dilation = columns.dilation,
                    .pad_begin = columns.pad_begin};
    pool.from = from + block * planes.input * rows.input * width;
    if (pool.planes > 0 && pool.rows > 0) {
      const int64_t first_plane =
          plane * planes.stride + plane_taps.begin * planes.dilation - planes.pad_begin;
      const int64_t first_row = row * rows.stride + row_taps.begin * rows.dilation - rows.pad_begin;
      pool.from += (first_plane * rows.input + first_row) * width;
    }
    if (!rule_.is_max) {
      const float* of_rows = factors + planes.output;
      pool.factors = of_rows + rows.output;
      pool.factor = factors[plane] * of_rows[row];
    }
    loop_(pool, to + line * columns.output * lanes);
  }

  PoolRule rule_;
  Pooling proposed_;
  PoolLoop loop_ = nullptr;
  std::vector<float> factors_;
};

void offer_in(ProposeContext& context, const Node& node, const Window& window,
              const PoolRule& rule) {
  const std::vector<int64_t> to = node.output(0).type().dims;
  Candidate candidate = plugin::candidate_for(node);
  if (rule.layout) {
    candidate.inputs[0].layout = layout_name(*rule.layout);
    if (differs_from_row_major(*rule.layout, to)) {
      candidate.outputs[0].layout = layout_name(*rule.layout);
    }
  }
  const Pooling pooling = pooling_of(rule, window, to);
  candidate.algorithm = pooling.map.lanes == 1 ? "rows" : "pixels";
  // The number of channels in the last block decides whether the output has the layout.
  constexpr tessera_built_for kChannels = {0, 1};
  candidate.built_for.emplace();
  if (rule.layout) candidate.built_for->push_back(kChannels);
  candidate.workspace_bytes = factor_bytes(rule, to);
  if (!rule.is_max) {
    candidate.workspace_for = [rule](std::span<const Buffer>, std::span<const Buffer> outputs) {
      return factor_bytes(rule, outputs[0].sizes());
    };
  }
  const auto bytes =
      static_cast<double>(node.input(0).type().dense_bytes() + node.output(0).type().dense_bytes());
  candidate.optimistic_seconds =
      context.optimistic_seconds(static_cast<double>(pooling.map.elements()), bytes);
  candidate.build = [rule, pooling](const plugin::BuildOptions&) {
    return std::make_unique<PoolKernel>(rule, pooling);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

void offer(ProposeContext& context, const Node& node) {
  for (const Value& value : {node.input(0), node.output(0)}) {
    if (value.type().data_type != TESSERA_FLOAT32 || !value.type().is_known()) {
      throw Failure(TESSERA_UNSUPPORTED, "takes float32 tensors of known shape only");
    }
  }
  if (node.output(1).is_present()) {
    throw Failure(TESSERA_UNSUPPORTED, "does not return the indices of maxima");
  }
  const std::vector<int64_t> from = node.input(0).type().dims;
  const std::vector<int64_t> to = node.output(0).type().dims;
  if (node.output(0).type().elements() == 0) {
    throw Failure(TESSERA_UNSUPPORTED, "there are no elements to pool");
  }
  const plugin::Attributes attributes = node.attributes();
  const Window window = window_of(attributes, attributes.get_ints("kernel_shape"), from, to);
  PoolRule rule = {.padding = padding_rule_of(attributes),
                   .is_max = node.op() == "MaxPool",
                   .counts_padding = attributes.get_int("count_include_pad") != 0};
  for (const ChannelLayout layout : kChannelLayouts) {
    if (!differs_from_row_major(layout, from)) continue;
    rule.layout = layout;
    offer_in(context, node, window, rule);
  }
  rule.layout.reset();
  offer_in(context, node, window, rule);
}

}  // namespace

void propose_poolings(ProposeContext& context) {
  context.for_each({"AveragePool", "MaxPool"}, [&](const Node& node) { offer(context, node); });
}

}  // namespace tessera::native
