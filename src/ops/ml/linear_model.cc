// LinearClassifier and LinearRegressor.
// https://onnx.ai/onnx/operators/onnx_aionnxml_LinearClassifier.html
#include <algorithm>
#include <memory_resource>
#include <string>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/ml/classifier.h"
#include "ops/ml/feature_rows.h"
#include "ops/ml/scores.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

// Rows of one task.
constexpr int64_t kLinearGrain = 64 * kLanes;

// One row of weights and, if there are any, one intercept for each sum.
struct LinearModel {
  int64_t sums = 0;
  std::span<const float> weights;
  std::span<const float> intercepts;
};

// Calls finish(row, sums) for each row, where `sums` may be changed.
template <class Finish>
void for_each_linear_row(const LinearModel& model, const TensorView& input, ThreadPool& pool,
                         std::pmr::memory_resource& scratch, const Finish& finish) {
  const FeatureRows rows = feature_rows(input.dims);
  const auto features = static_cast<size_t>(rows.features);
  const auto sums = static_cast<size_t>(model.sums);
  const auto slots = static_cast<size_t>(slot_count(pool, rows.rows, kLinearGrain));
  std::pmr::vector<Lanes> all_lanes(slots * features, &scratch);
  std::pmr::vector<Lanes> all_sums(slots * sums, &scratch);
  std::pmr::vector<double> all_scores(slots * sums, &scratch);
  const auto run = [&](int64_t slot, int64_t begin, int64_t end) {
    const auto at = static_cast<size_t>(slot);
    const std::span<Lanes> lanes(all_lanes.data() + at * features, features);
    const std::span<Lanes> lane_sums(all_sums.data() + at * sums, sums);
    const std::span<double> scores(all_scores.data() + at * sums, sums);
    for (int64_t first = begin; first < end; first += kLanes) {
      gather_lanes(input, rows, first, lanes);
      for (size_t sum = 0; sum < sums; ++sum) {
        lane_sums[sum] = products(lanes, model.weights.data() + sum * features);
        const double intercept = model.intercepts.empty() ? 0 : model.intercepts[sum];
        for (double& value : lane_sums[sum]) value += intercept;
      }
      for (int64_t row = first; row < std::min(end, first + kLanes); ++row) {
        for (size_t sum = 0; sum < sums; ++sum) {
          scores[sum] = lane_sums[sum][static_cast<size_t>(row - first)];
        }
        finish(row, scores);
      }
    }
  };
  parallel_for_in_slots(pool, rows.rows, kLinearGrain, run);
}

void check_weights(const InferContext& context, const LinearModel& model, const std::string& of) {
  const auto count = static_cast<int64_t>(model.weights.size());
  if (count % model.sums != 0) {
    context.fail("attribute 'coefficients': expected as many for each of " +
                 std::to_string(model.sums) + " " + of + ", found " + std::to_string(count));
  }
  check_feature_count(context, count / model.sums,
                      std::to_string(count) + " coefficients for " + std::to_string(model.sums) +
                          " " + of + " say");
}

// --- LinearClassifier ----------------------------------------------------------------------------

// One sum for each class, or a single one for two classes.
LinearModel linear_classes(const Node& node) {
  const ClassLabels labels = labels_of(node, "classlabels_ints");
  LinearModel model = {labels.count(), float_list(node, "coefficients"),
                       float_list(node, "intercepts")};
  if (!model.intercepts.empty()) model.sums = std::ssize(model.intercepts);
  return model;
}

int64_t linear_columns(const Node& node) { return labels_of(node, "classlabels_ints").count(); }

void classify_linearly(const Classification& call) {
  const LinearModel model = linear_classes(call.node);
  const PostTransform transform = post_transform_of(call.node);
  const auto columns = static_cast<size_t>(linear_columns(call.node));
  const auto finish = [&](int64_t row, std::span<double> sums) {
    const auto at = static_cast<size_t>(row);
    float* const scores = call.scores.data() + at * columns;
    if (sums.size() > 1) {
      call.classes[at] = std::ranges::max_element(sums) - sums.begin();
      transform_scores(transform, sums);
      std::ranges::transform(sums, scores, [](double sum) { return static_cast<float>(sum); });
      return;
    }
    call.classes[at] = lonely_class(sums[0]);
    if (columns == 1) {
      transform_scores(transform, sums);
      scores[0] = static_cast<float>(sums[0]);
    } else {
      const auto both = binary_scores(transform, OtherScore::Complement, sums[0]);
      scores[0] = static_cast<float>(both[0]);
      scores[1] = static_cast<float>(both[1]);
    }
  };
  for_each_linear_row(model, call.input, call.pool, call.scratch, finish);
}

Classifier linear_classifier() { return {"classlabels_ints", linear_columns, classify_linearly}; }

void infer_linear_classifier(InferContext& context) {
  check_labels(context, "classlabels_ints");
  check_post_transform(context);
  const LinearModel model = linear_classes(context.node());
  const int64_t classes = linear_columns(context.node());
  if (model.sums != classes && (model.sums != 1 || classes != 2)) {
    context.fail("attribute 'intercepts': expected one for each of " + std::to_string(classes) +
                 " classes" + (classes == 2 ? ", or one" : "") + ", found " +
                 std::to_string(model.sums));
  }
  check_weights(context, model, "sums");
  set_classes(context, linear_classifier());
}

// --- LinearRegressor -----------------------------------------------------------------------------

LinearModel linear_targets(const Node& node) {
  return {node.attributes.get_int("targets"), float_list(node, "coefficients"),
          float_list(node, "intercepts")};
}

void infer_linear_regressor(InferContext& context) {
  check_post_transform(context);
  const LinearModel model = linear_targets(context.node());
  if (model.sums < 1) {
    context.fail("attribute 'targets': expected at least 1, found " + std::to_string(model.sums));
  }
  const auto intercepts = std::ssize(model.intercepts);
  if (intercepts != 0 && intercepts != model.sums) {
    context.fail("attribute 'intercepts': expected one for each of " + std::to_string(model.sums) +
                 " targets, found " + std::to_string(intercepts));
  }
  check_weights(context, model, "targets");
  context.set_output(0, DataType::Float32, Shape{row_count(context), Dim(model.sums)});
}

void run_linear_regressor(const KernelCall& call) {
  const LinearModel model = linear_targets(call.node);
  const PostTransform transform = post_transform_of(call.node);
  float* const output = call.outputs[0].as<float>().data();
  for_each_linear_row(model, call.inputs[0], call.pool, call.scratch,
                      [&](int64_t row, std::span<double> sums) {
                        transform_scores(transform, sums);
                        std::ranges::transform(sums, output + row * model.sums,
                                               [](double sum) { return static_cast<float>(sum); });
                      });
}

int64_t linear_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  if (inputs.empty() || !inputs[0].is_known_tensor()) return 0;
  const int64_t rows = feature_rows(dims_from(*inputs[0].shape)).rows;
  return 2 * rows * std::ssize(float_list(node, "coefficients"));
}

}  // namespace

std::vector<Op> linear_model_ops() {
  const AttributeSchema coefficients = {
      .name = "coefficients", .kind = AttributeKind::Floats, .is_required = true};
  const AttributeSchema intercepts = {"intercepts", AttributeKind::Floats};
  const AttributeSchema transform = {"post_transform", AttributeKind::String, std::string("NONE")};
  return {{.name = "LinearClassifier",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T1"}},
           .outputs = {{"Y", "T2"}, {"Z", "tensor(float)"}},
           .type_variables = {{"T1", kFeatureTypes}},
           .attributes = {{"classlabels_ints", AttributeKind::Ints},
                          {"classlabels_strings", AttributeKind::Strings},
                          coefficients,
                          intercepts,
                          {"multi_class", AttributeKind::Int, int64_t{0}},
                          transform},
           .infer = infer_linear_classifier,
           .flops = linear_flops,
           .kernel = classifier_kernel(linear_classifier()),
           .value_kernel = classifier_value_kernel(linear_classifier())},
          {.name = "LinearRegressor",
           .domain = "ai.onnx.ml",
           .versions = {1},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "tensor(float)"}},
           .type_variables = {{"T", kFeatureTypes}},
           .attributes = {{"coefficients", AttributeKind::Floats},
                          intercepts,
                          transform,
                          {"targets", AttributeKind::Int, int64_t{1}}},
           .infer = infer_linear_regressor,
           .flops = linear_flops,
           .kernel = run_linear_regressor}};
}

}  // namespace tessera::ops
