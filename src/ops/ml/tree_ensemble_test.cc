#include <algorithm>
#include <array>

#include "base/tensor/float16.h"
#include "ops/ml/ml_test.h"
#include "tessera/float16.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

const float kTiny = std::numeric_limits<float>::denorm_min();

// A test at node 0 of feature 0, with leaf 1 for true and leaf 2 for false.
Attributes stump(const std::string& mode, float threshold, int64_t tracks_true = 0) {
  Attributes attributes;
  const auto set = [&](const char* name, std::vector<int64_t> list) {
    attributes.set(name, std::move(list));
  };
  set("nodes_treeids", {0, 0, 0});
  set("nodes_nodeids", {0, 1, 2});
  set("nodes_featureids", {0, 0, 0});
  set("nodes_truenodeids", {1, 0, 0});
  set("nodes_falsenodeids", {2, 0, 0});
  set("nodes_missing_value_tracks_true", {tracks_true, 0, 0});
  attributes.set("nodes_values", std::vector<float>{threshold, 0, 0});
  attributes.set("nodes_modes", std::vector<std::string>{mode, "LEAF", "LEAF"});
  return attributes;
}

void set_votes(Attributes& attributes, const std::string& prefix, std::vector<int64_t> nodes,
               std::vector<int64_t> targets, std::vector<float> weights) {
  attributes.set(prefix + "treeids", std::vector<int64_t>(nodes.size(), 0));
  attributes.set(prefix + "nodeids", std::move(nodes));
  attributes.set(prefix + "ids", std::move(targets));
  attributes.set(prefix + "weights", std::move(weights));
}

Attributes regression_stump(const std::string& mode, float threshold, int64_t tracks_true = 0) {
  Attributes attributes = stump(mode, threshold, tracks_true);
  set_votes(attributes, "target_", {1, 2}, {0, 0}, {1, 0});
  attributes.set("n_targets", int64_t{1});
  return attributes;
}

std::vector<float> regressed(const Attributes& attributes, const Tensor& rows, int version = 3) {
  return values(run_ml("TreeEnsembleRegressor", version, attributes, {rows})[0]);
}

Tensor column(const std::vector<float>& elements) {
  return floats({static_cast<int64_t>(elements.size()), 1}, elements);
}

// IEEE 754's comparisons decide, and for a NaN the attribute does.
TEST(TreeEnsembleRegressor, ComparesInEachMode) {
  struct Case {
    const char* mode;
    bool (*is_true)(float, float);
  };
  const Case cases[] = {{"BRANCH_LEQ", [](float x, float t) { return x <= t; }},
                        {"BRANCH_LT", [](float x, float t) { return x < t; }},
                        {"BRANCH_GTE", [](float x, float t) { return x >= t; }},
                        {"BRANCH_GT", [](float x, float t) { return x > t; }},
                        {"BRANCH_EQ", [](float x, float t) { return x == t; }},
                        {"BRANCH_NEQ", [](float x, float t) { return x != t; }}};
  const float largest = std::numeric_limits<float>::max();
  const std::vector<float> numbers = {kNan,  -kNan, -kInfinity, -largest, -1,      -kTiny,
                                      -0.0F, 0,     kTiny,      1,        largest, kInfinity};
  for (const Case& each : cases) {
    for (const float threshold : numbers) {
      for (const int64_t tracks_true : {0, 1}) {
        std::vector<float> expected;
        for (const float x : numbers) {
          const bool is_true = each.is_true(x, threshold) || (tracks_true == 1 && x != x);
          expected.push_back(is_true ? 1 : 0);
        }
        EXPECT_EQ(regressed(regression_stump(each.mode, threshold, tracks_true), column(numbers)),
                  expected)
            << each.mode << " " << threshold << " " << tracks_true;
      }
    }
  }
}

TEST(TreeEnsembleRegressor, ComparesDoubles) {
  Attributes attributes = regression_stump("BRANCH_LEQ", 0.1F);
  // 0.1F is larger than 0.1.
  EXPECT_THAT(regressed(attributes, doubles({2, 1}, {0.1, 0.10000001})), ElementsAre(1, 0));
  attributes.erase("nodes_values");
  attributes.set("nodes_values_as_tensor", doubles({3}, {0.1, 0, 0}));
  EXPECT_THAT(regressed(attributes, doubles({2, 1}, {0.1, 0.10000000000000002})),
              ElementsAre(1, 0));
  EXPECT_THAT(regressed(attributes, column({0.1F, 0.05F})), ElementsAre(0, 1));
}

TEST(TreeEnsembleRegressor, ComparesIntegersAsFloat32) {
  EXPECT_THAT(
      regressed(regression_stump("BRANCH_LEQ", 16777216), ints({2, 1}, {16777217, 16777218})),
      ElementsAre(1, 0));
}

TEST(TreeEnsembleRegressor, Aggregates) {
  // Two trees: leaf 1 of the second one has two weights.
  Attributes attributes;
  attributes.set("nodes_treeids", std::vector<int64_t>{0, 3});
  attributes.set("nodes_nodeids", std::vector<int64_t>{0, 1});
  for (const char* list : {"nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids"}) {
    attributes.set(list, std::vector<int64_t>{0, 0});
  }
  attributes.set("nodes_values", std::vector<float>{0, 0});
  attributes.set("nodes_modes", std::vector<std::string>{"LEAF", "LEAF"});
  attributes.set("target_treeids", std::vector<int64_t>{0, 3, 3});
  attributes.set("target_nodeids", std::vector<int64_t>{0, 1, 1});
  attributes.set("target_ids", std::vector<int64_t>{0, 0, 0});
  attributes.set("target_weights", std::vector<float>{3, -1, 8});
  attributes.set("base_values", std::vector<float>{100});
  attributes.set("n_targets", int64_t{1});
  const std::pair<const char*, float> cases[] = {
      {"SUM", 110}, {"AVERAGE", 105}, {"MIN", 99}, {"MAX", 108}};
  for (const auto& [word, expected] : cases) {
    attributes.set("aggregate_function", std::string(word));
    EXPECT_THAT(regressed(attributes, column({1})), ElementsAre(expected)) << word;
  }
}

TEST(TreeEnsembleRegressor, GivesZeroForATargetWithoutVote) {
  Attributes attributes = stump("BRANCH_LEQ", 0);
  set_votes(attributes, "target_", {1, 2}, {0, 1}, {1, 2});
  attributes.set("n_targets", int64_t{2});
  attributes.set("aggregate_function", std::string("MIN"));
  EXPECT_THAT(regressed(attributes, column({-1, 1})), ElementsAre(1, 0, 0, 2));
}

// A tree for each depth: a path of nodes whose feature exceeds 0, 1, 2, ..., with leaves at all
// depths, which weigh as much as they are deep.
Attributes paths(const std::vector<int64_t>& depths) {
  std::vector<int64_t> trees, nodes, features, if_true, if_false, leaf_trees, leaves;
  std::vector<float> thresholds, weights;
  std::vector<std::string> modes;
  for (int64_t tree = 0; tree < std::ssize(depths); ++tree) {
    const int64_t last = depths[static_cast<size_t>(tree)];
    for (int64_t depth = 0; depth <= last; ++depth) {
      for (const bool is_leaf : {false, true}) {
        if (depth == last && !is_leaf) continue;
        trees.push_back(tree);
        features.push_back(0);
        nodes.push_back(2 * depth + (is_leaf ? 1 : 0));
        thresholds.push_back(static_cast<float>(depth));
        modes.emplace_back(is_leaf ? "LEAF" : "BRANCH_GT");
        if_true.push_back(depth + 1 == last ? 2 * last + 1 : 2 * depth + 2);
        if_false.push_back(2 * depth + 1);
        if (!is_leaf) continue;
        leaf_trees.push_back(tree);
        leaves.push_back(nodes.back());
        weights.push_back(static_cast<float>(depth));
      }
    }
  }
  Attributes attributes;
  attributes.set("nodes_treeids", trees);
  attributes.set("nodes_nodeids", nodes);
  attributes.set("nodes_featureids", features);
  attributes.set("nodes_truenodeids", if_true);
  attributes.set("nodes_falsenodeids", if_false);
  attributes.set("nodes_values", thresholds);
  attributes.set("nodes_modes", modes);
  set_votes(attributes, "target_", leaves, std::vector<int64_t>(leaves.size(), 0), weights);
  attributes.set("target_treeids", leaf_trees);
  attributes.set("n_targets", int64_t{1});
  return attributes;
}

// Each row reaches the leaf whose depth is its number, or the last one.
void expect_sums_of_paths(const std::vector<int64_t>& depths, int64_t rows) {
  std::vector<float> numbers, expected;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t number = (row * 7) % 50;
    int64_t sum = 0;
    for (const int64_t depth : depths) sum += std::min(number, depth);
    numbers.push_back(static_cast<float>(number));
    expected.push_back(static_cast<float>(sum));
  }
  EXPECT_EQ(regressed(paths(depths), column(numbers)), expected) << depths.size() << " " << rows;
}

TEST(TreeEnsembleRegressor, DescendsUnevenTrees) {
  for (const int64_t rows : {1, 7, 8, 9, 300, 1000}) expect_sums_of_paths({40}, rows);
}

// Few rows are walked through several trees at once.
TEST(TreeEnsembleRegressor, AddsManyTrees) {
  for (const int64_t trees : {2, 15, 16, 17, 33, 100}) {
    std::vector<int64_t> depths;
    for (int64_t tree = 0; tree < trees; ++tree) depths.push_back((tree * 5) % 13);
    for (const int64_t rows : {1, 3, 7, 8, 20}) {
      expect_sums_of_paths(depths, rows);
      expect_sums_of_paths(std::vector<int64_t>(depths.size(), 1), rows);
    }
  }
}

TEST(TreeEnsembleRegressor, TakesOneRowAndNone) {
  EXPECT_THAT(regressed(regression_stump("BRANCH_LEQ", 0), floats({-1})), ElementsAre(1));
  EXPECT_THAT(regressed(regression_stump("BRANCH_LEQ", 0), floats({0, 1}, {})), ElementsAre());
}

Attributes classification_stump(std::vector<int64_t> labels, std::vector<int64_t> nodes,
                                std::vector<int64_t> ids, std::vector<float> weights) {
  Attributes attributes = stump("BRANCH_LEQ", 0);
  set_votes(attributes, "class_", std::move(nodes), std::move(ids), std::move(weights));
  attributes.set("classlabels_int64s", std::move(labels));
  return attributes;
}

TEST(TreeEnsembleClassifier, ChoosesTheLargestScore) {
  Attributes attributes =
      classification_stump({4, 5, 6}, {1, 1, 2}, {0, 1, 2}, {0.25F, 0.75F, 0.5F});
  const auto outputs =
      run_ml("TreeEnsembleClassifier", 1, attributes, {floats({2, 1}, {-1, 1})}, 2);
  EXPECT_THAT(integers(outputs[0]), ElementsAre(5, 6));
  EXPECT_THAT(values(outputs[1]), ElementsAre(0.25F, 0.75F, 0, 0, 0, 0.5F));
  attributes.set("base_values", std::vector<float>{1, 0, 0});
  EXPECT_THAT(integers(run_ml("TreeEnsembleClassifier", 1, attributes, {floats({-1})}, 2)[0]),
              ElementsAre(4));
}

// As in ONNX Runtime: the standard does not say what the scores are.
TEST(TreeEnsembleClassifier, GivesTwoScoresForVotesOfOneClass) {
  const Tensor rows = floats({2, 1}, {-1, 1});
  const auto scores = [&](std::vector<float> weights, const char* transform) {
    Attributes attributes = classification_stump({7, 9}, {1, 2}, {0, 0}, std::move(weights));
    attributes.set("post_transform", std::string(transform));
    return run_ml("TreeEnsembleClassifier", 3, attributes, {rows}, 2);
  };
  const auto probabilities = scores({0.5F, 0.75F}, "NONE");
  EXPECT_THAT(integers(probabilities[0]), ElementsAre(7, 9));
  EXPECT_THAT(values(probabilities[1]), ElementsAre(0.5F, 0.5F, 0.25F, 0.75F));
  const auto margins = scores({-0.5F, 0.25F}, "NONE");
  EXPECT_THAT(integers(margins[0]), ElementsAre(7, 9));
  EXPECT_THAT(values(margins[1]), ElementsAre(0.5F, -0.5F, -0.25F, 0.25F));
  EXPECT_THAT(values(scores({-1, 1}, "LOGISTIC")[1]),
              ElementsAre(FloatEq(0.73105858F), FloatEq(0.26894142F), FloatEq(0.26894142F),
                          FloatEq(0.73105858F)));
}

TEST(TreeEnsembleClassifier, NamesClasses) {
  Attributes attributes = classification_stump({}, {1, 2}, {0, 1}, {1, 1});
  attributes.erase("classlabels_int64s");
  attributes.set("classlabels_strings", std::vector<std::string>{"low", "high"});
  const auto outputs =
      run_text({"TreeEnsembleClassifier", 3, kMlDomain}, attributes, {floats({2, 1}, {1, -1})}, 2);
  EXPECT_THAT(texts(outputs[0]), ElementsAre("high", "low"));
  EXPECT_THAT(values(outputs[1]), ElementsAre(0, 1, 1, 0));
}

// Node 0 tests feature 0; its children are leaves 0 and 1.
Attributes ensemble_stump(uint8_t mode, DataType type, double split) {
  Attributes attributes;
  const auto set = [&](const char* name, std::vector<int64_t> list) {
    attributes.set(name, std::move(list));
  };
  const auto numbers = [&](std::vector<double> list) {
    const auto count = static_cast<int64_t>(list.size());
    if (type == DataType::Float64) return doubles({count}, list);
    std::vector<float> narrow(list.begin(), list.end());
    if (type == DataType::Float32) return floats({count}, narrow);
    std::vector<Float16> halves(narrow.begin(), narrow.end());
    return Tensor::from<Float16>(type, {count}, halves);
  };
  set("tree_roots", {0});
  set("nodes_featureids", {0});
  set("nodes_truenodeids", {0});
  set("nodes_trueleafs", {1});
  set("nodes_falsenodeids", {1});
  set("nodes_falseleafs", {1});
  set("leaf_targetids", {0, 0});
  attributes.set("nodes_modes",
                 Tensor::from<uint8_t>(DataType::UInt8, {1}, std::array<uint8_t, 1>{mode}));
  attributes.set("nodes_splits", numbers({split}));
  attributes.set("leaf_weights", numbers({1, 0}));
  attributes.set("n_targets", int64_t{1});
  return attributes;
}

TEST(TreeEnsemble, ComparesInEachType) {
  EXPECT_THAT(values(run_ml("TreeEnsemble", 5, ensemble_stump(0, DataType::Float32, 2),
                            {column({2, 3})})[0]),
              ElementsAre(1, 0));
  EXPECT_THAT(run_ml("TreeEnsemble", 5, ensemble_stump(1, DataType::Float64, 0.1),
                     {doubles({2, 1}, {0.1, 0.09999999999999999})})[0]
                  .as<double>(),
              ElementsAre(0, 1));
  const Tensor halves =
      Tensor::from<Float16>(DataType::Float16, {2, 1}, std::array{Float16(2.0F), Float16(3.0F)});
  const Tensor found =
      run_ml("TreeEnsemble", 5, ensemble_stump(3, DataType::Float16, 2), {halves})[0];
  EXPECT_EQ(found.type(), DataType::Float16);
  EXPECT_EQ(static_cast<float>(found.as<Float16>()[0]), 0);
  EXPECT_EQ(static_cast<float>(found.as<Float16>()[1]), 1);
}

TEST(TreeEnsemble, TestsMembership) {
  Attributes attributes = ensemble_stump(6, DataType::Float32, 0);
  const std::vector<float> members = {3, -0.0F, 3, 1, kNan};
  attributes.set("membership_values", floats(members));
  EXPECT_THAT(
      values(run_ml("TreeEnsemble", 5, attributes, {column({0, 1, 2, 3, kTiny, kNan, 4})})[0]),
      ElementsAre(1, 1, 0, 1, 0, 0, 0));
  attributes.set("nodes_missing_value_tracks_true", std::vector<int64_t>{1});
  EXPECT_THAT(values(run_ml("TreeEnsemble", 5, attributes, {column({0, 2, kNan})})[0]),
              ElementsAre(1, 0, 1));
  attributes.set("membership_values", floats({kNan}));
  EXPECT_THAT(values(run_ml("TreeEnsemble", 5, attributes, {column({0, 2, kNan})})[0]),
              ElementsAre(0, 0, 1));
  attributes.set("nodes_missing_value_tracks_true", std::vector<int64_t>{0});
  EXPECT_THAT(values(run_ml("TreeEnsemble", 5, attributes, {column({0, 2, kNan})})[0]),
              ElementsAre(0, 0, 0));
}

TEST(TreeEnsemble, TransformsAndAggregates) {
  Attributes attributes = ensemble_stump(0, DataType::Float32, 2);
  attributes.set("tree_roots", std::vector<int64_t>{0, 0});
  EXPECT_THAT(values(run_ml("TreeEnsemble", 5, attributes, {column({2})})[0]), ElementsAre(2));
  attributes.set("aggregate_function", int64_t{0});
  EXPECT_THAT(values(run_ml("TreeEnsemble", 5, attributes, {column({2})})[0]), ElementsAre(1));
  attributes.set("post_transform", int64_t{2});
  EXPECT_THAT(values(run_ml("TreeEnsemble", 5, attributes, {column({2})})[0]),
              ElementsAre(FloatEq(0.73105858F)));
}

// What only reading the whole ensemble finds is refused when it is made ready to run.
std::string broken(const std::string& op, int version, const Attributes& attributes) {
  return error_of(ErrorKind::InvalidModel, [&] {
    run_ml(op, version, attributes, {column({1})}, op == "TreeEnsembleClassifier" ? 2 : 1);
  });
}

TEST(TreeEnsemble, RefusesBrokenTrees) {
  const auto error = [](const char* name, Attribute value) {
    Attributes attributes = ensemble_stump(0, DataType::Float32, 2);
    attributes.set(name, std::move(value));
    return broken("TreeEnsemble", 5, attributes);
  };
  EXPECT_THAT(
      error("nodes_truenodeids", std::vector<int64_t>{2}),
      HasSubstr("'nodes_truenodeids', element 0: expected an index of a leaf in [0, 2), found 2"));
  EXPECT_THAT(error("nodes_trueleafs", std::vector<int64_t>{0}), HasSubstr("found a cycle"));
  EXPECT_THAT(error("tree_roots", std::vector<int64_t>{1}), HasSubstr("a node in [0, 1), found 1"));
  EXPECT_THAT(error("leaf_targetids", std::vector<int64_t>{0, 1}),
              HasSubstr("a target in [0, 1), found 1"));
  EXPECT_THAT(error("leaf_targetids", std::vector<int64_t>{0}),
              HasSubstr("expected 2 elements, as 'leaf_weights' has, found 1"));
  EXPECT_THAT(error("nodes_featureids", std::vector<int64_t>{-1}), HasSubstr("found -1"));
  EXPECT_THAT(error("nodes_featureids", std::vector<int64_t>{1}),
              HasSubstr("rows of at least 2 features, as the nodes of the trees compare, found 1"));
  EXPECT_THAT(error("nodes_modes", ints({0})), HasSubstr("elements of uint8, found int64"));
  EXPECT_THAT(error("nodes_splits", floats({1, 2})), HasSubstr("found 2"));
  EXPECT_THAT(error("aggregate_function", int64_t{4}), HasSubstr("from 0 to 3, found 4"));
  EXPECT_THAT(error("n_targets", int64_t{0}), HasSubstr("found 0"));
  EXPECT_THAT(broken("TreeEnsemble", 5, ensemble_stump(7, DataType::Float32, 0)),
              HasSubstr("a mode in [0, 7), found 7"));
  EXPECT_THAT(broken("TreeEnsemble", 5, ensemble_stump(6, DataType::Float32, 0)),
              HasSubstr("found 0 lists"));
  EXPECT_THAT(error("membership_values", floats({1, kNan})), HasSubstr("expected 0 lists"));
}

TEST(TreeEnsembleRegressor, RefusesBrokenTrees) {
  const auto error = [](const char* name, Attribute value) {
    Attributes attributes = regression_stump("BRANCH_LEQ", 0);
    attributes.set(name, std::move(value));
    return broken("TreeEnsembleRegressor", 3, attributes);
  };
  EXPECT_THAT(error("nodes_truenodeids", std::vector<int64_t>{3, 0, 0}),
              HasSubstr("'nodes_truenodeids': expected a node of tree 0, found 3"));
  EXPECT_THAT(error("nodes_truenodeids", std::vector<int64_t>{0, 0, 0}),
              HasSubstr("found a cycle"));
  EXPECT_THAT(error("nodes_nodeids", std::vector<int64_t>{0, 1, 1}),
              HasSubstr("found node 1 of tree 0 twice"));
  EXPECT_THAT(error("nodes_values", std::vector<float>{0}),
              HasSubstr("expected 3 elements, as 'nodes_treeids' has, found 1"));
  EXPECT_THAT(error("nodes_modes", std::vector<std::string>{"LEQ", "LEAF", "LEAF"}),
              HasSubstr("found 'LEQ'"));
  EXPECT_THAT(error("target_ids", std::vector<int64_t>{0, 1}),
              HasSubstr("a target in [0, 1), found 1"));
  EXPECT_THAT(error("target_nodeids", std::vector<int64_t>{1, 5}), HasSubstr("found 5"));
  EXPECT_THAT(error("target_weights", std::vector<float>{1}),
              HasSubstr("as 'target_ids' has, found 1"));
  EXPECT_THAT(error("nodes_values_as_tensor", doubles({3}, {0, 0, 0})), HasSubstr("found both"));
  EXPECT_THAT(error("base_values", std::vector<float>{1, 2}),
              HasSubstr("expected 1 numbers, one for each of the targets, found 2"));
  EXPECT_THAT(error("aggregate_function", std::string("MEAN")), HasSubstr("found 'MEAN'"));
}

TEST(TreeEnsembleClassifier, RefusesClassesOutOfRange) {
  EXPECT_THAT(
      broken("TreeEnsembleClassifier", 3, classification_stump({1, 2}, {1, 2}, {0, 2}, {1, 1})),
      HasSubstr("a class in [0, 2), found 2"));
  EXPECT_THAT(broken("TreeEnsembleClassifier", 3, classification_stump({}, {1}, {0}, {1})),
              HasSubstr("found none"));
}

}  // namespace
}  // namespace tessera::ops
