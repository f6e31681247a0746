// SVMClassifier and SVMRegressor. https://onnx.ai/onnx/operators/onnx_aionnxml_SVMClassifier.html
#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads/parallel_slots.h"
#include "ops/ml/classifier.h"
#include "ops/ml/feature_rows.h"
#include "ops/ml/pairwise_coupling.h"
#include "ops/ml/scores.h"
#include "ops/op.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kKernelTypes[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
// Rows of one task.
constexpr int64_t kVectorGrain = 4 * kLanes;

// The attributes that both ops have. Without support vectors, each row of coefficients is a vector
// of weights.
struct Machine {
  std::string_view kernel;
  double gamma = 0;
  double coef0 = 0;
  double degree = 0;
  std::span<const float> vectors;  // `count` rows of features
  std::span<const float> coefficients;
  std::span<const float> rho;
  int64_t count = 0;
};

Machine machine_of(const Node& node, int64_t count) {
  Machine machine;
  machine.kernel = node.attributes.get_string("kernel_type");
  const std::span<const float> parameters = float_list(node, "kernel_params");
  if (parameters.size() == 3) {
    machine.gamma = parameters[0];
    machine.coef0 = parameters[1];
    machine.degree = parameters[2];
  }
  machine.vectors = float_list(node, "support_vectors");
  machine.coefficients = float_list(node, "coefficients");
  machine.rho = float_list(node, "rho");
  machine.count = count;
  return machine;
}

Lanes squared_distances(std::span<const Lanes> lanes, const float* vector) {
  Lanes sums = {};
  for (size_t feature = 0; feature < lanes.size(); ++feature) {
    const double coordinate = vector[feature];
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double difference = lanes[feature][lane] - coordinate;
      sums[lane] += difference * difference;
    }
  }
  return sums;
}

Lanes kernel_values(const Machine& machine, std::span<const Lanes> lanes, const float* vector) {
  if (machine.kernel == "RBF") {
    Lanes values = squared_distances(lanes, vector);
    for (double& value : values) value = std::exp(-machine.gamma * value);
    return values;
  }
  Lanes values = products(lanes, vector);
  if (machine.kernel == "POLY") {
    for (double& value : values) {
      value = std::pow(machine.gamma * value + machine.coef0, machine.degree);
    }
  } else if (machine.kernel == "SIGMOID") {
    for (double& value : values) value = std::tanh(machine.gamma * value + machine.coef0);
  }
  return values;
}

// Calls finish(row, values, scratch) for each row with the kernel's values for all vectors.
// `scratch` has `scratch_count` numbers.
template <class Finish>
void for_each_kernel_row(const Machine& machine, std::span<const float> vectors,
                         const TensorView& input, size_t scratch_count, ThreadPool& pool,
                         std::pmr::memory_resource& memory, const Finish& finish) {
  const FeatureRows rows = feature_rows(input.dims);
  const auto features = static_cast<size_t>(rows.features);
  const auto count = static_cast<size_t>(machine.count);
  const auto slots = static_cast<size_t>(slot_count(pool, rows.rows, kVectorGrain));
  std::pmr::vector<Lanes> all_lanes(slots * features, &memory);
  std::pmr::vector<Lanes> all_values(slots * count, &memory);
  std::pmr::vector<double> all_numbers(slots * (count + scratch_count), &memory);
  const auto run = [&](int64_t slot, int64_t begin, int64_t end) {
    const auto at = static_cast<size_t>(slot);
    const std::span<Lanes> lanes(all_lanes.data() + at * features, features);
    const std::span<Lanes> values(all_values.data() + at * count, count);
    double* const numbers = all_numbers.data() + at * (count + scratch_count);
    for (int64_t first = begin; first < end; first += kLanes) {
      gather_lanes(input, rows, first, lanes);
      for (size_t vector = 0; vector < count; ++vector) {
        values[vector] = kernel_values(machine, lanes, vectors.data() + vector * features);
      }
      for (int64_t row = first; row < std::min(end, first + kLanes); ++row) {
        for (size_t vector = 0; vector < count; ++vector) {
          numbers[vector] = values[vector][static_cast<size_t>(row - first)];
        }
        finish(row, std::span(numbers, count), std::span(numbers + count, scratch_count));
      }
    }
  };
  parallel_for_in_slots(pool, rows.rows, kVectorGrain, run);
}

void check_list_length(const InferContext& context, std::string_view attribute, int64_t found,
                       int64_t expected, const std::string& why) {
  if (found == expected) return;
  context.fail("attribute '" + std::string(attribute) + "': expected " + std::to_string(expected) +
               " " + why + ", found " + std::to_string(found));
}

// The checks that both ops share; `features` of a vector must be whole.
void check_machine(const InferContext& context, int64_t vectors) {
  check_word(context, "kernel_type", kKernelTypes);
  check_post_transform(context);
  const auto parameters = std::ssize(float_list(context.node(), "kernel_params"));
  if (parameters != 0) check_list_length(context, "kernel_params", parameters, 3, "numbers");
  if (vectors == 0) return;
  const auto numbers = std::ssize(float_list(context.node(), "support_vectors"));
  if (numbers % vectors != 0) {
    context.fail("attribute 'support_vectors': expected as many numbers for each of " +
                 std::to_string(vectors) + " vectors, found " + std::to_string(numbers));
  }
  check_feature_count(context, numbers / vectors, "the support vectors have");
}

// --- SVMClassifier -------------------------------------------------------------------------------

constexpr const char* kVectorLabels = "classlabels_ints";

int64_t labelled_classes(const Node& node) { return labels_of(node, kVectorLabels).count(); }

// The number of support vectors; 0 if the model is linear.
int64_t vector_count(const Node& node) {
  const std::span<const int64_t> per_class = int_list(node, "vectors_per_class");
  return std::accumulate(per_class.begin(), per_class.end(), int64_t{0});
}

bool has_probabilities(const Node& node) { return !float_list(node, "prob_a").empty(); }

int64_t pair_count(int64_t classes) { return classes * (classes - 1) / 2; }

int64_t vector_columns(const Node& node) {
  const int64_t classes = labelled_classes(node);
  if (vector_count(node) == 0 || has_probabilities(node) || classes <= 2) return classes;
  return pair_count(classes);
}

void put_scores(const Classification& call, int64_t row, std::span<const double> scores) {
  std::ranges::transform(scores, call.scores.begin() + row * std::ssize(scores),
                         [](double score) { return static_cast<float>(score); });
}

// One score for each class. For two classes, ONNX Runtime gives the second one if any score is
// positive; the standard says nothing.
void classify_by_weights(const Classification& call) {
  Machine machine = machine_of(call.node, labelled_classes(call.node));
  machine.kernel = kKernelTypes[0];
  const PostTransform transform = post_transform_of(call.node);
  const bool is_never_negative =
      std::ranges::all_of(machine.coefficients, [](float value) { return value >= 0; });
  const auto finish = [&](int64_t row, std::span<double> scores, std::span<double>) {
    for (double& score : scores) score += machine.rho[0];
    const auto largest = std::ranges::max_element(scores);
    const bool is_second =
        scores.size() == 2 && (is_never_negative ? *largest >= 0.5 : *largest > 0);
    call.classes[static_cast<size_t>(row)] = is_second ? 1 : largest - scores.begin();
    transform_scores(transform, scores);
    put_scores(call, row, scores);
  };
  for_each_kernel_row(machine, machine.coefficients, call.input, 0, call.pool, call.scratch,
                      finish);
}

// For each pair of classes, a sum over the vectors of both. Row j - 1 of the coefficients has those
// of all vectors of classes before j against j, row i those of classes after i against i.
void compare_pairs(const Machine& machine, std::span<const int64_t> per_class,
                   std::span<const double> values, std::span<double> scores,
                   std::span<double> votes) {
  const auto sum_over = [&](size_t row, int64_t first, int64_t count) {
    const float* const weights =
        machine.coefficients.data() + row * static_cast<size_t>(machine.count) + first;
    double sum = 0;
    for (int64_t index = 0; index < count; ++index) {
      sum += weights[index] * values[static_cast<size_t>(first + index)];
    }
    return sum;
  };
  std::ranges::fill(votes, 0);
  size_t pair = 0;
  int64_t first_of_i = 0;
  for (size_t i = 0; i < per_class.size(); ++i) {
    int64_t first_of_j = first_of_i + per_class[i];
    for (size_t j = i + 1; j < per_class.size(); ++j) {
      const double sum = sum_over(j - 1, first_of_i, per_class[i]) +
                         sum_over(i, first_of_j, per_class[j]) + machine.rho[pair];
      scores[pair++] = sum;
      votes[sum > 0 ? i : j] += 1;
      first_of_j += per_class[j];
    }
    first_of_i += per_class[i];
  }
}

void put_pair_scores(const Classification& call, PostTransform transform, int64_t row,
                     std::span<double> scores) {
  if (scores.size() > 1) {
    transform_scores(transform, scores);
    return put_scores(call, row, scores);
  }
  const OtherScore other =
      transform == PostTransform::None ? OtherScore::Opposite : OtherScore::Complement;
  put_scores(call, row, binary_scores(transform, other, scores[0]));
}

void classify_by_vectors(const Classification& call) {
  const Machine machine = machine_of(call.node, vector_count(call.node));
  const PostTransform transform = post_transform_of(call.node);
  const std::span<const int64_t> per_class = int_list(call.node, "vectors_per_class");
  const std::span<const float> prob_a = float_list(call.node, "prob_a");
  const std::span<const float> prob_b = float_list(call.node, "prob_b");
  const size_t classes = per_class.size();
  const auto pairs = static_cast<size_t>(pair_count(labelled_classes(call.node)));
  const size_t coupling = prob_a.empty() ? 0 : coupling_numbers(classes);
  const auto finish = [&](int64_t row, std::span<const double> values, std::span<double> scratch) {
    const std::span<double> scores = scratch.first(pairs);
    const std::span<double> votes = scratch.subspan(pairs, classes);
    compare_pairs(machine, per_class, values, scores, votes);
    call.classes[static_cast<size_t>(row)] = std::ranges::max_element(votes) - votes.begin();
    if (prob_a.empty()) return put_pair_scores(call, transform, row, scores);
    for (size_t pair = 0; pair < pairs; ++pair) {
      scores[pair] = pair_probability(scores[pair], prob_a[pair], prob_b[pair]);
    }
    const std::span<double> probabilities = votes;
    couple_pairs(scores, probabilities, scratch.subspan(pairs + classes));
    transform_scores(transform, probabilities);
    put_scores(call, row, probabilities);
  };
  for_each_kernel_row(machine, machine.vectors, call.input, pairs + classes + coupling, call.pool,
                      call.scratch, finish);
}

void classify_by_machine(const Classification& call) {
  if (vector_count(call.node) == 0) return classify_by_weights(call);
  classify_by_vectors(call);
}

Classifier vector_classifier() { return {kVectorLabels, vector_columns, classify_by_machine}; }

void check_pairs(const InferContext& context, int64_t classes, int64_t vectors) {
  const Node& node = context.node();
  if (classes < 2) {
    context.fail("expected labels of at least 2 classes with support vectors, found " +
                 std::to_string(classes));
  }
  check_list_length(context, "vectors_per_class", std::ssize(int_list(node, "vectors_per_class")),
                    classes, "numbers, one for each class");
  check_list_length(context, "coefficients", std::ssize(float_list(node, "coefficients")),
                    (classes - 1) * vectors,
                    "numbers, one less than classes for each support vector");
  const int64_t pairs = pair_count(classes);
  check_list_length(context, "rho", std::ssize(float_list(node, "rho")), pairs,
                    "numbers, one for each pair of classes");
  if (!has_probabilities(node) && float_list(node, "prob_b").empty()) return;
  for (const std::string_view name : {"prob_a", "prob_b"}) {
    check_list_length(context, name, std::ssize(float_list(node, name)), pairs,
                      "numbers, one for each pair of classes");
  }
}

void infer_vector_classifier(InferContext& context) {
  const Node& node = context.node();
  check_labels(context, kVectorLabels);
  const auto weights = std::ssize(float_list(node, "coefficients"));
  int64_t left = weights;
  for (const int64_t count : int_list(node, "vectors_per_class")) {
    if (count < 0 || count > left) {
      context.fail("attribute 'vectors_per_class': expected numbers of vectors that have " +
                   std::to_string(weights) + " coefficients, found " + std::to_string(count));
    }
    left -= count;
  }
  const int64_t classes = labelled_classes(node);
  const int64_t vectors = vector_count(node);
  check_machine(context, vectors);
  if (vectors > 0) {
    check_pairs(context, classes, vectors);
  } else {
    if (weights % classes != 0 || float_list(node, "rho").empty()) {
      context.fail("expected coefficients for each of " + std::to_string(classes) +
                   " classes and a number 'rho', found " + std::to_string(weights) +
                   " coefficients and " + std::to_string(float_list(node, "rho").size()) +
                   " numbers 'rho'");
    }
    check_feature_count(context, weights / classes, "the coefficients say");
  }
  set_classes(context, vector_classifier());
}

// --- SVMRegressor --------------------------------------------------------------------------------

void infer_vector_regressor(InferContext& context) {
  const Node& node = context.node();
  const int64_t vectors = node.attributes.get_int("n_supports");
  if (vectors < 0) {
    context.fail("attribute 'n_supports': expected at least 0, found " + std::to_string(vectors));
  }
  check_machine(context, vectors);
  const auto coefficients = std::ssize(float_list(node, "coefficients"));
  if (vectors > 0) {
    check_list_length(context, "coefficients", coefficients, vectors,
                      "numbers, one for each support vector");
  } else {
    check_feature_count(context, coefficients, "the coefficients say");
  }
  if (float_list(node, "rho").empty())
    context.fail("attribute 'rho': expected a number, found none");
  context.set_output(0, DataType::Float32, Shape{row_count(context), Dim(1)});
}

void run_vector_regressor(const KernelCall& call) {
  const int64_t vectors = call.node.attributes.get_int("n_supports");
  Machine machine = machine_of(call.node, std::max<int64_t>(1, vectors));
  if (vectors == 0) machine.kernel = kKernelTypes[0];
  const bool is_one_class = call.node.attributes.get_int("one_class") != 0;
  const PostTransform transform = post_transform_of(call.node);
  float* const output = call.outputs[0].as<float>().data();
  const auto finish = [&](int64_t row, std::span<const double> values, std::span<double>) {
    double score = machine.rho[0];
    for (size_t index = 0; index < values.size(); ++index) {
      score += values[index] * (vectors == 0 ? 1 : machine.coefficients[index]);
    }
    if (is_one_class) {
      score = score > 0 ? 1 : -1;
    } else {
      transform_scores(transform, std::span(&score, 1));
    }
    output[row] = static_cast<float>(score);
  };
  for_each_kernel_row(machine, vectors == 0 ? machine.coefficients : machine.vectors,
                      call.inputs[0], 0, call.pool, call.scratch, finish);
}

int64_t vector_flops(const Node& node, std::span<const Type> inputs, std::span<const Type>) {
  if (inputs.empty() || !inputs[0].is_known_tensor()) return 0;
  const int64_t rows = feature_rows(dims_from(*inputs[0].shape)).rows;
  return 2 * rows *
         (std::ssize(float_list(node, "coefficients")) +
          std::ssize(float_list(node, "support_vectors")));
}

std::vector<AttributeSchema> machine_attributes() {
  return {{"coefficients", AttributeKind::Floats},
          {"kernel_params", AttributeKind::Floats},
          {"kernel_type", AttributeKind::String, std::string("LINEAR")},
          {"post_transform", AttributeKind::String, std::string("NONE")},
          {"rho", AttributeKind::Floats},
          {"support_vectors", AttributeKind::Floats}};
}

}  // namespace

std::vector<Op> support_vector_machine_ops() {
  Op classifier = {.name = "SVMClassifier",
                   .domain = "ai.onnx.ml",
                   .versions = {1},
                   .inputs = {{"X", "T1"}},
                   .outputs = {{"Y", "T2"}, {"Z", "tensor(float)"}},
                   .type_variables = {{"T1", kFeatureTypes}},
                   .attributes = machine_attributes(),
                   .infer = infer_vector_classifier,
                   .flops = vector_flops,
                   .kernel = classifier_kernel(vector_classifier()),
                   .value_kernel = classifier_value_kernel(vector_classifier())};
  classifier.attributes.push_back({kVectorLabels, AttributeKind::Ints});
  classifier.attributes.push_back({"classlabels_strings", AttributeKind::Strings});
  classifier.attributes.push_back({"prob_a", AttributeKind::Floats});
  classifier.attributes.push_back({"prob_b", AttributeKind::Floats});
  classifier.attributes.push_back({"vectors_per_class", AttributeKind::Ints});
  Op regressor = {.name = "SVMRegressor",
                  .domain = "ai.onnx.ml",
                  .versions = {1},
                  .inputs = {{"X", "T"}},
                  .outputs = {{"Y", "tensor(float)"}},
                  .type_variables = {{"T", kFeatureTypes}},
                  .attributes = machine_attributes(),
                  .infer = infer_vector_regressor,
                  .flops = vector_flops,
                  .kernel = run_vector_regressor};
  regressor.attributes.push_back({"n_supports", AttributeKind::Int, int64_t{0}});
  regressor.attributes.push_back({"one_class", AttributeKind::Int, int64_t{0}});
  return {classifier, regressor};
}

}  // namespace tessera::ops
