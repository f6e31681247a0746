// Softmax and LogSoftmax, fused with the preceding scaling and mask of attention.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  SoftmaxRows rows;
  bool is_log = false;
  float scale = 1;
  std::optional<SoftmaxMask> mask;  // how the second input is added
};

class SoftmaxKernel : public plugin::Kernel {
 public:
  explicit SoftmaxKernel(SoftmaxProblem problem)
      : problem_(std::move(problem)), loops_(find_softmax_loops(problem_.is_log)) {}

  void run(RunContext& context, std::span<const Buffer> inputs,
           std::span<const Buffer> outputs) override {
    const float* from = inputs[0].as<const float>();
    float* to = outputs[0].as<float>();
    const auto& [outer, length, inner] = problem_.rows;
    if (outer * length * inner == 0) return;
    if (inner > 1) {
      run_columns(context, from, to);
    } else if (problem_.mask) {
      run_masked(context, from, inputs[1].as<const float>(), to);
    } else {
      const int64_t row = length;
      const StagedWriter writer(outer * row, to == from);
      context.parallel_for(outer, kSoftmaxGrain / row + 1, [&](int64_t begin, int64_t end) {
        writer.write(
            to + begin * row, begin, end, row, [&](int64_t first, int64_t last, float* target) {
              loops_.rows(from + first * row, target, last - first, row, {.scale = problem_.scale});
            });
        writer.finish();
      });
    }
  }

 private:
  void run_masked(RunContext& context, const float* from, const float* mask, float* to) const {
    const SoftmaxMask& runs = *problem_.mask;
    const int64_t length = problem_.rows.length;
    const StagedWriter writer(problem_.rows.outer * length, to == from);
    context.parallel_for(
        problem_.rows.outer, kSoftmaxGrain / length + 1, [&](int64_t begin, int64_t end) {
          while (begin < end) {
            const int64_t row = begin % runs.run_rows;
            const int64_t rows = std::min(end - begin, runs.run_rows - row);
            const float* addend = mask + runs.offset(begin / runs.run_rows) + row * runs.row_stride;
            writer.write(to + begin * length, 0, rows, length,
                         [&](int64_t first, int64_t last, float* target) {
                           loops_.rows(
                               from + (begin + first) * length, target, last - first, length,
                               {problem_.scale, addend + first * runs.row_stride, runs.row_stride});
                         });
            begin += rows;
          }
          writer.finish();
        });
  }

  void run_columns(RunContext& context, const float* from, float* to) const {
    const auto& [outer, length, inner] = problem_.rows;
    const int64_t width = std::min(inner, kMaxSoftmaxColumns);
    const int64_t tiles = (inner + width - 1) / width;
    const int64_t grain = kSoftmaxGrain / (length * width) + 1;
    context.parallel_for(outer * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t column = index % tiles * width;
        const int64_t start = index / tiles * problem_.rows.length * problem_.rows.inner + column;
        loops_.columns(from + start, to + start, problem_.rows.length, problem_.rows.inner,
                       std::min(width, problem_.rows.inner - column));
      }
    });
  }

  SoftmaxProblem problem_;
  SoftmaxLoops loops_;
};

void add(ProposeContext& context, const SoftmaxProblem& problem, Candidate candidate) {
  candidate.algorithm = problem.rows.inner > 1 ? "columns" : "rows";
  candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
  candidate.outputs[0].in_place_input = 0;
  const auto elements =
      static_cast<double>(problem.rows.outer * problem.rows.length * problem.rows.inner);
  candidate.optimistic_seconds =
      context.optimistic_seconds(10 * elements, 2 * elements * sizeof(float));
  candidate.build = [problem](const plugin::BuildOptions&) {
    return std::make_unique<SoftmaxKernel>(problem);
  };
  context.add(std::move(candidate));
}

SoftmaxProblem problem_of(const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known()) {
    throw Failure(TESSERA_UNSUPPORTED, "takes float32 tensors of known shape only");
  }
  return {.rows = softmax_rows_of(node, type.dims), .is_log = node.op() == "LogSoftmax"};
}

void offer_alone(ProposeContext& context, const Node& node) {
  const SoftmaxProblem problem = problem_of(node);
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const SoftmaxRows& rows = problem.rows;
  const bool is_over_channels =
      dims.size() > 2 && rows.inner > 1 && rows.length == dims[1] && rows.outer == dims[0];
  if (is_over_channels && differs_from_row_major(ChannelLayout::Nhwc, dims)) {
    SoftmaxProblem over_channels = problem;
    over_channels.rows = {rows.outer * rows.inner, rows.length, 1};
    Candidate candidate = plugin::candidate_for(node);
    candidate.inputs[0].layout = candidate.outputs[0].layout = layout_name(ChannelLayout::Nhwc);
    add(context, over_channels, std::move(candidate));
  }
  add(context, problem, plugin::candidate_for(node));
}

void offer_prepared(ProposeContext& context, const PreparedSoftmax& found) {
  Candidate candidate;
  candidate.nodes = found.nodes;
  candidate.flags = TESSERA_CANDIDATE_ONE_PASS;
  candidate.inputs.push_back({.value = found.x.id()});
  if (found.mask_value) candidate.inputs.push_back({.value = found.mask_value->id()});
  candidate.outputs.push_back({.value = found.result.id()});
  add(context,
      {.rows = found.rows, .is_log = found.is_log, .scale = found.scale, .mask = found.mask},
      std::move(candidate));
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
