// Softmax and LogSoftmax, fused with the preceding scaling and mask of attention.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/families.h"
#include "copy/staging.h"
#include "layout/feature_map.h"
#include "normalization/prepared_softmax.h"
#include "normalization/softmax_kernels.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

// The minimum number of elements for one thread.
constexpr int64_t kSoftmaxGrain = 4 * 1024;

struct SoftmaxProblem {
  SoftmaxAxis along;
  bool has_contiguous_channels = false;  // in layout nhwc, of which the channels are normalized
  bool is_log = false;
  float scale = 1;
  bool has_mask = false;  // the second input

  // The rows of an input that has these dimensions.
  SoftmaxRows rows_of(std::span<const int64_t> dims) const {
    const SoftmaxRows rows = softmax_rows_of(along, dims);
    if (has_contiguous_channels) return {rows.outer * rows.inner, rows.length, 1};
    return rows;
  }
};

class SoftmaxKernel : public plugin::Kernel {
 public:
  explicit SoftmaxKernel(const SoftmaxProblem& problem)
      : problem_(problem), loops_(find_softmax_loops(problem.is_log)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    const SoftmaxRows rows = problem_.rows_of(inputs[0].sizes());
    const int64_t length = rows.length;
    if (rows.outer * length * rows.inner == 0) return;
    if (rows.inner > 1) {
      run_columns(context, rows, from, to);
    } else if (problem_.has_mask) {
      run_masked(context, rows, softmax_mask_of(inputs[1].sizes(), inputs[0].sizes()), from,
                 inputs[1].as<const float>(), to);
    } else {
      const StagedWriter writer(rows.outer * length, to == from);
      context.parallel_for(rows.outer, kSoftmaxGrain / length + 1, [&](int64_t begin, int64_t end) {
        writer.write(to + begin * length, begin, end, length,
                     [&](int64_t first, int64_t last, float* target) {
                       loops_.rows(from + first * length, target, last - first, length,
                                   {.scale = problem_.scale});
                     });
        writer.finish();
      });
    }
  }

 private:
  void run_masked(RunContext& context, const SoftmaxRows& all, const SoftmaxMask& runs,
                  const float* from, const float* mask, float* to) const {
    const int64_t length = all.length;
    const StagedWriter writer(all.outer * length, to == from);
    context.parallel_for(all.outer, kSoftmaxGrain / length + 1, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t row = begin % runs.run_rows;
        const int64_t rows = std::min(end - begin, runs.run_rows - row);
        const float* addend = mask + runs.offset(begin / runs.run_rows) + row * runs.row_stride;
        writer.write(
            to + begin * length, 0, rows, length, [&](int64_t first, int64_t last, float* target) {
              loops_.rows(from + (begin + first) * length, target, last - first, length,
                          {problem_.scale, addend + first * runs.row_stride, runs.row_stride});
            });
        begin += rows;
      }
      writer.finish();
    });
  }

  void run_columns(RunContext& context, const SoftmaxRows& rows, const float* from,
                   float* to) const {
    const int64_t width = std::min(rows.inner, kMaxSoftmaxColumns);
    const int64_t tiles = (rows.inner + width - 1) / width;
    const int64_t grain = kSoftmaxGrain / (rows.length * width) + 1;
    context.parallel_for(rows.outer * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t column = index % tiles * width;
        const int64_t start = index / tiles * rows.length * rows.inner + column;
        loops_.columns(from + start, to + start, rows.length, rows.inner,
                       std::min(width, rows.inner - column));
      }
    });
  }

  SoftmaxProblem problem_;
  SoftmaxLoops loops_;
};

// `dims`: those of the input.
void add(ProposeContext& context, const SoftmaxProblem& problem, const std::vector<int64_t>& dims,
         Candidate candidate) {
  const SoftmaxRows rows = problem.rows_of(dims);
  candidate.algorithm = rows.inner > 1 ? "columns" : "rows";
  candidate.built_for = std::vector<tessera_built_for>();
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
  const auto elements = static_cast<double>(rows.outer * rows.length * rows.inner);
  candidate.optimistic_seconds =
      context.optimistic_seconds(10 * elements, 2 * elements * sizeof(float));
  candidate.build = [problem](const plugin::BuildOptions&) {
    return std::make_unique<SoftmaxKernel>(problem);
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

SoftmaxProblem problem_of(const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known()) {
    throw Failure(TESSERA_UNSUPPORTED, "takes float32 tensors of known shape only");
  }
  return {.along = softmax_axis_of(node, type.dims.size()), .is_log = node.op() == "LogSoftmax"};
}

void offer_alone(ProposeContext& context, const Node& node) {
  const SoftmaxProblem problem = problem_of(node);
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const SoftmaxRows rows = problem.rows_of(dims);
  const bool is_over_channels =
      dims.size() > 2 && rows.inner > 1 && rows.length == dims[1] && rows.outer == dims[0];
  if (is_over_channels && differs_from_row_major(ChannelLayout::Nhwc, dims)) {
    SoftmaxProblem over_channels = problem;
    over_channels.has_contiguous_channels = true;
    Candidate candidate = plugin::candidate_for(node);
    candidate.inputs[0].layout = candidate.outputs[0].layout = layout_name(ChannelLayout::Nhwc);
    add(context, over_channels, dims, std::move(candidate));
  }
  add(context, problem, dims, plugin::candidate_for(node));
}

void offer_prepared(ProposeContext& context, const PreparedSoftmax& found) {
  Candidate candidate;
  candidate.nodes = found.nodes;
  candidate.flags = TESSERA_CANDIDATE_ONE_PASS;
  candidate.inputs.push_back({.value = found.x.id()});
  if (found.mask_value) candidate.inputs.push_back({.value = found.mask_value->id()});
  candidate.outputs.push_back({.value = found.result.id()});
  add(context,
      {.along = found.along,
       .is_log = found.is_log,
       .scale = found.scale,
       .has_mask = found.mask_value.has_value()},
      found.x.type().dims, std::move(candidate));
}

}  // namespace

void propose_softmaxes(ProposeContext& context) {
  for (const PreparedSoftmax& found : find_prepared_softmaxes(context.graph())) {
    offer_prepared(context, found);
  }
  context.for_each({"Softmax", "LogSoftmax"},
                   [&](const Node& node) { offer_alone(context, node); });
}

}  // namespace tessera::native
