// TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor.
// https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/convert_element.h"
#include "ops/ml/classifier.h"
#include "ops/ml/feature_rows.h"
#include "ops/ml/scores.h"
#include "ops/ml/tree_model.h"
#include "ops/ml/tree_source.h"
#include "ops/op.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

constexpr int kFirstTensorAttributes = 3;
constexpr const char* kTreeLabels = "classlabels_int64s";
constexpr std::string_view kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
constexpr int64_t kMaxTargets = int64_t{1} << 20;

std::vector<double> base_values_of(const Node& node) {
  if (const Tensor* const tensor = node.attributes.find_tensor("base_values_as_tensor")) {
    std::vector<double> values;
    if (!is_floating(tensor->type())) return values;
    visit_floating(tensor->type(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (const T value : tensor->as<T>()) values.push_back(to_double(value));
    });
    return values;
  }
  const std::span<const float> list = float_list(node, "base_values");
  return {list.begin(), list.end()};
}

void check_base_values(const InferContext& context, int64_t scores, const std::string& of) {
  const auto count = std::ssize(base_values_of(context.node()));
  if (count == 0 || count == scores) return;
  context.fail("attribute 'base_values': expected " + std::to_string(scores) +
               " numbers, one for each of the " + of + ", found " + std::to_string(count));
}

void check_tree_features(const InferContext& context) {
  const std::optional<int64_t> features = feature_count(context);
  const int64_t needed = largest_feature(context.node()) + 1;
  if (!features || *features >= needed) return;
  context.fail_input(0, "expected rows of at least " + std::to_string(needed) +
                            " features, as the nodes of the trees compare, found " +
                            std::to_string(*features));
}

void check_targets(const InferContext& context, int64_t targets) {
  if (targets >= 1 && targets <= kMaxTargets) return;
  context.fail("attribute 'n_targets': expected a number from 1 to " + std::to_string(kMaxTargets) +
               ", found " + std::to_string(targets));
}

int64_t target_count(const Node& node) {
  const int64_t* const given = node.attributes.find_int("n_targets");
  return given == nullptr ? 1 : *given;
}

// `make` takes the node and the element type of its input.
template <class Make>
ReferenceKernel prepared_kernel(const Make& make, ReferenceKernel run) {
  const PrepareRule prepare =
      [make](const Node& node, std::span<const DataType> inputs) -> std::shared_ptr<const void> {
    return make(node, inputs.front());
  };
  return PreparedKernel{prepare, std::move(run)};
}

// Writes the scores of targets.
void put_targets(const KernelCall& call, const TreeModel& model, PostTransform transform) {
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const output = call.outputs[0].as<T>().data();
    const auto finish = [&](int64_t row, std::span<double> scores) {
      transform_scores(transform, scores);
      std::ranges::transform(scores, output + row * std::ssize(scores),
                             [](double score) { return from_double<T>(score); });
    };
    model.evaluate(call.inputs[0], call.pool, call.scratch, finish);
  });
}

const TreeModel& model_of(const KernelCall& call) {
  return *static_cast<const TreeModel*>(call.prepared);
}

// --- TreeEnsembleClassifier ----------------------------------------------------------------------

int64_t tree_columns(const Node& node) { return labels_of(node, kTreeLabels).count(); }

// Whether all leaves vote for the same one of two classes: then there is one score, that of the
// second class. The standard does not say so; exporters rely on it.
bool has_binary_score(const Node& node) {
  const std::span<const int64_t> ids = int_list(node, "class_ids");
  if (tree_columns(node) != 2 || ids.empty() || base_values_of(node).size() == 2) return false;
  return std::ranges::all_of(ids, [&](int64_t id) { return id == ids.front(); });
}

struct TreeClassifier {
  explicit TreeClassifier(TreeModel trees) : model(std::move(trees)) {}

  TreeModel model;
  int64_t voted_class = 0;  // if the score is binary
  bool is_binary = false;
  bool is_never_negative = true;  // no weight is
  PostTransform transform = PostTransform::None;
};

std::shared_ptr<const TreeClassifier> tree_classifier_of(const Node& node, DataType input) {
  const bool is_binary = has_binary_score(node);
  const int64_t classes = tree_columns(node);
  TreeSource source = read_listed_trees(node, {"class_", "a class"}, classes);
  if (is_binary) {
    for (Vote& vote : source.votes) vote.target = 0;
  }
  const bool is_never_negative =
      std::ranges::all_of(source.votes, [](const Vote& vote) { return vote.weight >= 0; });
  const auto classifier = std::make_shared<TreeClassifier>(
      TreeModel(node, std::move(source), input == DataType::Float64, is_binary ? 1 : classes,
                TreeAggregate::Sum, base_values_of(node)));
  classifier->is_binary = is_binary;
  classifier->voted_class = is_binary ? int_list(node, "class_ids").front() : 0;
  classifier->is_never_negative = is_never_negative;
  classifier->transform = post_transform_of(node);
  return classifier;
}

// Which class a binary score chooses, and the scores of both: as in ONNX Runtime, probabilities if
// no weight is negative.
int64_t choose_binary(const TreeClassifier& classifier, double score, std::span<float> scores) {
  const bool is_probability = classifier.is_never_negative;
  std::array<double, 2> both = {0, score};
  if (classifier.voted_class == 1) {
    transform_scores(classifier.transform, both);
  } else {
    both = binary_scores(classifier.transform,
                         is_probability ? OtherScore::Complement : OtherScore::Opposite, score);
  }
  scores[0] = static_cast<float>(both[0]);
  scores[1] = static_cast<float>(both[1]);
  // The score as it is given, so that both agree.
  return static_cast<float>(score) > (is_probability ? 0.5F : 0.0F) ? 1 : 0;
}

void classify_by_trees(const Classification& call) {
  std::shared_ptr<const TreeClassifier> own;
  const auto* classifier = static_cast<const TreeClassifier*>(call.prepared);
  if (classifier == nullptr) {
    own = tree_classifier_of(call.node, call.input.type);
    classifier = own.get();
  }
  const auto columns = static_cast<size_t>(tree_columns(call.node));
  const auto finish = [&](int64_t row, std::span<double> sums) {
    const auto at = static_cast<size_t>(row);
    const std::span<float> scores = call.scores.subspan(at * columns, columns);
    if (classifier->is_binary) {
      call.classes[at] = choose_binary(*classifier, sums[0], scores);
      return;
    }
    call.classes[at] =
        columns == 1 ? lonely_class(sums[0]) : std::ranges::max_element(sums) - sums.begin();
    transform_scores(classifier->transform, sums);
    std::ranges::transform(sums, scores.begin(),
                           [](double sum) { return static_cast<float>(sum); });
  };
  classifier->model.evaluate(call.input, call.pool, call.scratch, finish);
}

Classifier tree_classifier() { return {kTreeLabels, tree_columns, classify_by_trees}; }

void infer_tree_classifier(InferContext& context) {
  check_labels(context, kTreeLabels);
  check_post_transform(context);
  const int64_t classes = tree_columns(context.node());
  if (!has_binary_score(context.node()) || base_values_of(context.node()).size() > 1) {
    check_base_values(context, classes, "classes");
  }
  check_tree_features(context);
  set_classes(context, tree_classifier());
}

// --- TreeEnsembleRegressor -----------------------------------------------------------------------

std::shared_ptr<const TreeModel> tree_regressor_of(const Node& node, DataType input) {
  const int64_t targets = target_count(node);
  const std::string_view word = node.attributes.get_string("aggregate_function");
  const auto aggregate =
      static_cast<TreeAggregate>(std::ranges::find(kAggregates, word) - kAggregates);
  return std::make_shared<TreeModel>(
      node, read_listed_trees(node, {"target_", "a target"}, targets), input == DataType::Float64,
      targets, aggregate, base_values_of(node));
}

void infer_tree_regressor(InferContext& context) {
  check_post_transform(context);
  check_word(context, "aggregate_function", kAggregates);
  const int64_t targets = target_count(context.node());
  check_targets(context, targets);
  check_base_values(context, targets, "targets");
  check_tree_features(context);
  context.set_output(0, DataType::Float32, Shape{row_count(context), Dim(targets)});
}

void run_tree_regressor(const KernelCall& call) {
  put_targets(call, model_of(call), post_transform_of(call.node));
}

// --- TreeEnsemble --------------------------------------------------------------------------------

std::shared_ptr<const TreeModel> tree_ensemble_of(const Node& node, DataType input) {
  const int64_t targets = target_count(node);
  const auto aggregate = static_cast<TreeAggregate>(node.attributes.get_int("aggregate_function"));
  return std::make_shared<TreeModel>(node, read_tree_ensemble(node, targets),
                                     input == DataType::Float64, targets, aggregate,
                                     std::vector<double>());
}

void check_choice(const InferContext& context, const std::string& attribute, int64_t last) {
  const int64_t found = context.node().attributes.get_int(attribute);
  if (found >= 0 && found <= last) return;
  context.fail("attribute '" + attribute + "': expected a number from 0 to " +
               std::to_string(last) + ", found " + std::to_string(found));
}

void infer_tree_ensemble(InferContext& context) {
  check_choice(context, "aggregate_function", static_cast<int64_t>(TreeAggregate::Max));
  check_choice(context, "post_transform", static_cast<int64_t>(PostTransform::Probit));
  const int64_t targets = target_count(context.node());
  check_targets(context, targets);
  check_tree_features(context);
  context.set_output(0, context.element(0), Shape{row_count(context), Dim(targets)});
}

void run_tree_ensemble(const KernelCall& call) {
  put_targets(call, model_of(call),
              static_cast<PostTransform>(call.node.attributes.get_int("post_transform")));
}

// --- The ops -------------------------------------------------------------------------------------

// The attributes of both older ops. `votes` is "class_" or "target_".
std::vector<AttributeSchema> tree_attributes(const std::string& votes) {
  std::vector<AttributeSchema> attributes = {
      {"nodes_modes", AttributeKind::Strings},
      {"post_transform", AttributeKind::String, std::string("NONE")}};
  for (const std::string list :
       {"nodes_falsenodeids", "nodes_featureids", "nodes_missing_value_tracks_true",
        "nodes_nodeids", "nodes_treeids", "nodes_truenodeids"}) {
    attributes.push_back({list, AttributeKind::Ints});
  }
  for (const std::string list : {"ids", "nodeids", "treeids"}) {
    attributes.push_back({votes + list, AttributeKind::Ints});
  }
  for (const std::string& list : {std::string("base_values"), std::string("nodes_hitrates"),
                                  std::string("nodes_values"), votes + "weights"}) {
    attributes.push_back({list, AttributeKind::Floats});
    attributes.push_back(
        {list + "_as_tensor", AttributeKind::Tensor, std::nullopt, kFirstTensorAttributes});
  }
  return attributes;
}

Op tree_classifier_op() {
  Op op = {.name = "TreeEnsembleClassifier",
           .domain = "ai.onnx.ml",
           .versions = {1, kFirstTensorAttributes},
           .inputs = {{"X", "T1"}},
           .outputs = {{"Y", "T2"}, {"Z", "tensor(float)"}},
           .type_variables = {{"T1", kFeatureTypes}},
           .attributes = tree_attributes("class_"),
           .infer = infer_tree_classifier,
           .kernel = prepared_kernel(tree_classifier_of, classifier_kernel(tree_classifier())),
           .value_kernel = classifier_value_kernel(tree_classifier()),
           .last_version = 4};
  op.attributes.push_back({kTreeLabels, AttributeKind::Ints});
  op.attributes.push_back({"classlabels_strings", AttributeKind::Strings});
  return op;
}

Op tree_regressor_op() {
  Op op = {.name = "TreeEnsembleRegressor",
           .domain = "ai.onnx.ml",
           .versions = {1, kFirstTensorAttributes},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "tensor(float)"}},
           .type_variables = {{"T", kFeatureTypes}},
           .attributes = tree_attributes("target_"),
           .infer = infer_tree_regressor,
           .kernel = prepared_kernel(tree_regressor_of, run_tree_regressor),
           .last_version = 4};
  op.attributes.push_back({"aggregate_function", AttributeKind::String, std::string("SUM")});
  op.attributes.push_back({"n_targets", AttributeKind::Int});
  return op;
}

Op tree_ensemble_op() {
  Op op = {.name = "TreeEnsemble",
           .domain = "ai.onnx.ml",
           .versions = {5},
           .inputs = {{"X", "T"}},
           .outputs = {{"Y", "T"}},
           .type_variables = {{"T", {DataType::Float16, DataType::Float32, DataType::Float64}}},
           .attributes = {{"aggregate_function", AttributeKind::Int, int64_t{1}},
                          {"membership_values", AttributeKind::Tensor},
                          {"n_targets", AttributeKind::Int},
                          {"nodes_hitrates", AttributeKind::Tensor},
                          {"nodes_missing_value_tracks_true", AttributeKind::Ints},
                          {"post_transform", AttributeKind::Int, int64_t{0}}},
           .infer = infer_tree_ensemble,
           .kernel = prepared_kernel(tree_ensemble_of, run_tree_ensemble)};
  for (const std::string list :
       {"leaf_targetids", "nodes_falseleafs", "nodes_falsenodeids", "nodes_featureids",
        "nodes_trueleafs", "nodes_truenodeids", "tree_roots"}) {
    op.attributes.push_back({.name = list, .kind = AttributeKind::Ints, .is_required = true});
  }
  for (const std::string list : {"leaf_weights", "nodes_modes", "nodes_splits"}) {
    op.attributes.push_back({.name = list, .kind = AttributeKind::Tensor, .is_required = true});
  }
  return op;
}

}  // namespace

std::vector<Op> tree_ensemble_ops() {
  return {tree_ensemble_op(), tree_classifier_op(), tree_regressor_op()};
}

}  // namespace tessera::ops
