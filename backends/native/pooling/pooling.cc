// MaxPool and AveragePool, in the layout of their input. Global poolings are reductions.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

struct Problem {
  Window window;
  bool is_max = false;
  bool counts_padding = false;
};

// For each output along an axis, one over the number of taps that count; 0 if none does.
std::vector<float> inverse_counts(const Problem& problem, const WindowAxis& axis) {
  std::vector<float> inverses;
  for (int64_t output = 0; output < axis.output; ++output) {
    const int64_t count = problem.counts_padding ? plugin::taps_inside_padding(axis, output)
                                                 : plugin::taps_inside(axis, output).count();
    inverses.push_back(count == 0 ? 0 : static_cast<float>(1 / static_cast<double>(count)));
  }
  return inverses;
}

bool has_window_of_padding(const Window& window) {
  return std::any_of(window.begin(), window.end(), [](const WindowAxis& axis) {
    for (int64_t output = 0; output < axis.output; ++output) {
      if (plugin::taps_inside(axis, output).count() == 0) return true;
    }
    return false;
  });
}

class PoolKernel : public plugin::Kernel {
 public:
  // `map` describes the output.
  PoolKernel(const Problem& problem, const FeatureMap& map) : problem_(problem), map_(map) {
    const PoolLoops loops = find_pool_loops(problem.is_max);
    loop_ = map.lanes == 1 ? loops.single : loops.wide;
    const auto& [planes, rows, columns] = problem_.window;
    input_block_ = planes.input * rows.input * columns.input * map.lanes;
    // A window without inputs gives -infinity also in padding lanes, which must be zero.
    is_to_clear_ = problem.is_max && map.is_padded() && has_window_of_padding(problem.window);
    if (problem.is_max) return;
    for (size_t axis = 0; axis < factors_.size(); ++axis) {
      factors_[axis] = inverse_counts(problem, problem.window[axis]);
    }
  }

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const auto& [planes, rows, columns] = problem_.window;
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    const int64_t lines = map_.images * map_.blocks * planes.output * rows.output;
    const int64_t work = planes.kernel * rows.kernel * columns.output * columns.kernel;
    context.parallel_for(lines, kGrain / (work * map_.lanes) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) run_line(from, to, line);
    });
    if (is_to_clear_) clear_padding(context, padding_of(map_), to, sizeof(float));
  }

 private:
  void run_line(const float* from, float* to, int64_t line) const {
    const auto& [planes, rows, columns] = problem_.window;
    const int64_t row = line % rows.output;
    const int64_t plane = line / rows.output % planes.output;
    const int64_t block = line / rows.output / planes.output;
    const TapRange plane_taps = plugin::taps_inside(planes, plane);
    const TapRange row_taps = plugin::taps_inside(rows, row);
    const int64_t width = columns.input * map_.lanes;
    PoolRow pool = {.planes = plane_taps.count(),
                    .plane_step = planes.dilation * rows.input * width,
                    .rows = row_taps.count(),
                    .row_step = rows.dilation * width,
                    .lanes = map_.lanes,
                    .columns = columns.input,
                    .outputs = columns.output,
                    .kernel = columns.kernel,
                    .stride = columns.stride,
                    .dilation = columns.dilation,
                    .pad_begin = columns.pad_begin};
    pool.from = from + block * input_block_;
    if (pool.planes > 0 && pool.rows > 0) {
      const int64_t first_plane =
          plane * planes.stride + plane_taps.begin * planes.dilation - planes.pad_begin;
      const int64_t first_row = row * rows.stride + row_taps.begin * rows.dilation - rows.pad_begin;
      pool.from += (first_plane * rows.input + first_row) * width;
    }
    if (!problem_.is_max) {
      pool.factors = factors_[2].data();
      pool.factor = factors_[0][static_cast<size_t>(plane)] * factors_[1][static_cast<size_t>(row)];
    }
    loop_(pool, to + line * columns.output * map_.lanes);
  }

  Problem problem_;
  FeatureMap map_;
  PoolLoop loop_ = nullptr;
  int64_t input_block_ = 0;
  bool is_to_clear_ = false;
  std::array<std::vector<float>, 3> factors_;
};

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
  const Problem problem = {
      .window = window_of(attributes, attributes.get_ints("kernel_shape"), from, to),
      .is_max = node.op() == "MaxPool",
      .counts_padding = attributes.get_int("count_include_pad") != 0};
  const auto add = [&](const FeatureMap& map, const char* source, const char* target) {
    Candidate candidate = plugin::candidate_for(node);
    candidate.inputs[0].layout = source;
    candidate.outputs[0].layout = target;
    candidate.algorithm = map.lanes == 1 ? "rows" : "pixels";
    const auto bytes = static_cast<double>(node.input(0).type().dense_bytes() +
                                           node.output(0).type().dense_bytes());
    candidate.optimistic_seconds =
        context.optimistic_seconds(static_cast<double>(map.elements()), bytes);
    candidate.build = [problem, map](const plugin::BuildOptions&) {
      return std::make_unique<PoolKernel>(problem, map);
    };
    context.add(std::move(candidate));
  };
  for (const ChannelLayout layout : kChannelLayouts) {
    if (!differs_from_row_major(layout, from)) continue;
    const bool is_distinct = differs_from_row_major(layout, to);
    add(feature_map_of(layout, to), layout_name(layout),
        is_distinct ? layout_name(layout) : TESSERA_LAYOUT_DEFAULT);
  }
  add(row_major_feature_map(to), TESSERA_LAYOUT_DEFAULT, TESSERA_LAYOUT_DEFAULT);
}

}  // namespace

void propose_poolings(ProposeContext& context) {
  context.for_each({"AveragePool", "MaxPool"}, [&](const Node& node) { offer(context, node); });
}

}  // namespace tessera::native
