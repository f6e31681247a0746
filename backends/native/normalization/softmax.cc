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
#include "normalization/softmax_kernels.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Failure;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;
using plugin::Value;

namespace {

// Before this version, all axes from `axis` on are normalized together.
constexpr int32_t kFirstSingleAxisVersion = 13;

// The minimum number of elements for one thread.
constexpr int64_t kGrain = 4 * 1024;

// A tensor [outer, length, inner] that is normalized over `length`.
struct Rows {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

Rows rows_of(const Node& node, const std::vector<int64_t>& dims) {
  const bool is_single = node.version() >= kFirstSingleAxisVersion;
  int64_t axis = node.attributes().get_int("axis", is_single ? -1 : 1);
  if (axis < 0) axis += std::max<int64_t>(1, static_cast<int64_t>(dims.size()));
  Rows rows;
  for (size_t position = 0; position < dims.size(); ++position) {
    const auto here = static_cast<int64_t>(position);
    (here < axis                  ? rows.outer
     : here == axis || !is_single ? rows.length
                                  : rows.inner) *= dims[position];
  }
  return rows;
}

// The mask in runs of `run_rows` rows, whose addends are at equal distances.
struct Mask {
  int64_t run_rows = 1;
  int64_t row_stride = 0;
  std::vector<int64_t> lengths;  // of the leading axes
  std::vector<int64_t> strides;

  int64_t offset(int64_t run) const {
    int64_t offset = 0;
    for (size_t axis = lengths.size(); axis-- > 0;) {
      offset += run % lengths[axis] * strides[axis];
      run /= lengths[axis];
    }
    return offset;
  }
};

// The mask for rows of `full`; nullopt unless each row adds a whole row of `mask`.
std::optional<Mask> mask_of(const std::vector<int64_t>& mask, const std::vector<int64_t>& full) {
  if (mask.empty() || mask.size() > full.size() || mask.back() != full.back()) return std::nullopt;
  Mask made;
  int64_t stride = mask.back();
  const size_t offset = full.size() - mask.size();
  for (size_t axis = full.size() - 1; axis-- > 0;) {
    const int64_t length = axis < offset ? 1 : mask[axis - offset];
    if (length != 1 && length != full[axis]) return std::nullopt;
    made.lengths.insert(made.lengths.begin(), full[axis]);
    made.strides.insert(made.strides.begin(), length == 1 ? 0 : stride);
    stride *= length;
  }
  if (!made.lengths.empty()) {
    made.run_rows = made.lengths.back();
    made.row_stride = made.strides.back();
    made.lengths.pop_back();
    made.strides.pop_back();
  }
  return made;
}

struct Problem {
  Rows rows;
  bool is_log = false;
  float scale = 1;
  std::optional<Mask> mask;  // added by the second input
};

class SoftmaxKernel : public plugin::Kernel {
 public:
  explicit SoftmaxKernel(Problem problem)
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
      context.parallel_for(outer, kGrain / row + 1, [&](int64_t begin, int64_t end) {
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
    const Mask& runs = *problem_.mask;
    const int64_t length = problem_.rows.length;
    const StagedWriter writer(problem_.rows.outer * length, to == from);
    context.parallel_for(problem_.rows.outer, kGrain / length + 1, [&](int64_t begin, int64_t end) {
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

  void run_columns(RunContext& context, const float* from, float* to) const {
    const auto& [outer, length, inner] = problem_.rows;
    const int64_t width = std::min(inner, kMaxSoftmaxColumns);
    const int64_t tiles = (inner + width - 1) / width;
    const int64_t grain = kGrain / (length * width) + 1;
    context.parallel_for(outer * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t column = index % tiles * width;
        const int64_t start = index / tiles * problem_.rows.length * problem_.rows.inner + column;
        loops_.columns(from + start, to + start, problem_.rows.length, problem_.rows.inner,
                       std::min(width, problem_.rows.inner - column));
      }
    });
  }

  Problem problem_;
  SoftmaxLoops loops_;
};

void add(ProposeContext& context, const Problem& problem, Candidate candidate) {
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

Problem problem_of(const Node& node) {
  const plugin::Type type = node.input(0).type();
  if (type.data_type != TESSERA_FLOAT32 || !type.is_known()) {
    throw Failure(TESSERA_UNSUPPORTED, "takes float32 tensors of known shape only");
  }
  return {.rows = rows_of(node, type.dims), .is_log = node.op() == "LogSoftmax"};
}

void offer_alone(ProposeContext& context, const Node& node) {
  const Problem problem = problem_of(node);
  const std::vector<int64_t> dims = node.input(0).type().dims;
  const Rows channels = rows_of(node, dims);
  const bool is_over_channels = node.version() >= kFirstSingleAxisVersion && dims.size() > 2 &&
                                channels.length == dims[1] && channels.outer == dims[0];
  if (is_over_channels && differs_from_row_major(ChannelLayout::Nhwc, dims)) {
    Problem over_channels = problem;
    over_channels.rows = {channels.outer * channels.inner, channels.length, 1};
    Candidate candidate = plugin::candidate_for(node);
    candidate.inputs[0].layout = candidate.outputs[0].layout = layout_name(ChannelLayout::Nhwc);
    add(context, over_channels, std::move(candidate));
  }
  add(context, problem, plugin::candidate_for(node));
}

// Offers Softmax(x * scale + mask); `scaling` and `addition` are nodes, or -1 if absent.
void offer_prepared(ProposeContext& context, int32_t scaling, int32_t addition, int32_t softmax) {
  const plugin::Graph& graph = context.graph();
  const Node last = graph.node(softmax);
  Problem problem = problem_of(last);
  const plugin::Type type = last.input(0).type();
  const int64_t row = type.dims.empty() ? 0 : type.dims.back();
  if (problem.rows.inner != 1 || problem.rows.length != row) return;
  Value x = last.input(0);
  std::optional<Value> mask;
  Candidate candidate;
  candidate.nodes.push_back(softmax);
  if (addition >= 0) {
    const Node node = graph.node(addition);
    const int32_t scaled = scaling < 0 ? -1 : graph.node(scaling).output(0).id();
    const bool is_second = scaled >= 0
                               ? node.input(1).id() == scaled
                               : node.input(0).type() != type ||
                                     (node.input(0).is_constant() && node.input(1).type() == type);
    x = node.input(is_second ? 1 : 0);
    mask = node.input(is_second ? 0 : 1);
    problem.mask = mask_of(mask->type().dims, type.dims);
    if (!problem.mask || mask->type().data_type != TESSERA_FLOAT32) return;
    candidate.nodes.push_back(addition);
  }
  if (scaling >= 0) {
    const Node node = graph.node(scaling);
    const bool is_second = plugin::constant_number(node.input(0)).has_value();
    const std::optional<double> number = plugin::constant_number(node.input(is_second ? 0 : 1));
    if (!number || (is_second && node.op() == "Div")) return;
    problem.scale = static_cast<float>(node.op() == "Div" ? 1 / *number : *number);
    x = node.input(is_second ? 1 : 0);
    candidate.nodes.push_back(scaling);
  }
  if (x.type() != type || (mask && mask->id() == x.id())) return;
  std::sort(candidate.nodes.begin(), candidate.nodes.end());
  if (candidate.nodes.size() > 1) candidate.flags = TESSERA_CANDIDATE_ONE_PASS;
  candidate.inputs.push_back({.value = x.id()});
  if (mask) candidate.inputs.push_back({.value = mask->id()});
  candidate.outputs.push_back({.value = last.output(0).id()});
  add(context, problem, std::move(candidate));
}

}  // namespace

void propose_softmaxes(ProposeContext& context) {
  const plugin::Graph& graph = context.graph();
  for (const auto& match : graph.match("s = Mul|Div(_, _); a = Add(s, _); Softmax|LogSoftmax(a)")) {
    offer_prepared(context, match[0], match[1], match[2]);
  }
  for (const auto& match : graph.match("a = Add(_, _); Softmax|LogSoftmax(a)")) {
    offer_prepared(context, -1, match[0], match[1]);
  }
  for (const auto& match : graph.match("s = Mul|Div(_, _); Softmax|LogSoftmax(s)")) {
    offer_prepared(context, match[0], -1, match[1]);
  }
  context.for_each({"Softmax", "LogSoftmax"},
                   [&](const Node& node) { offer_alone(context, node); });
}

}  // namespace tessera::native
