#include "ops/ml/classifier.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "ops/ml/feature_rows.h"
#include "tessera/error.h"

namespace tessera::ops {
namespace {

int64_t integer_label(const ClassLabels& labels, int64_t index) {
  return labels.count() == 1 ? index : labels.integers[static_cast<size_t>(index)];
}

std::string string_label(const ClassLabels& labels, int64_t index) {
  return labels.count() == 1 ? std::to_string(index) : labels.strings[static_cast<size_t>(index)];
}

void run_with_integers(const Classifier& classifier, const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const auto rows = static_cast<size_t>(feature_rows(input.dims).rows);
  const size_t count = rows * static_cast<size_t>(classifier.columns(call.node));
  const bool has_labels = call.has_output(0);
  const bool has_scores = call.has_output(1);
  std::pmr::vector<int64_t> unread_classes(has_labels ? 0 : rows, 0, &call.scratch);
  std::pmr::vector<float> unread_scores(has_scores ? 0 : count, 0, &call.scratch);
  const std::span<int64_t> classes =
      has_labels ? call.outputs[0].as<int64_t>() : std::span<int64_t>(unread_classes);
  const std::span<float> scores =
      has_scores ? call.outputs[1].as<float>() : std::span<float>(unread_scores);
  classifier.classify({call.node, input, classes, scores, call.pool, call.scratch, call.prepared});
  const ClassLabels labels = labels_of(call.node, classifier.integers);
  for (int64_t& index : classes) index = integer_label(labels, index);
}

void run_with_strings(const Classifier& classifier, const ValueCall& call) {
  const Tensor& input = call.inputs[0];
  const int64_t rows = feature_rows(input.dims()).rows;
  Tensor classes(DataType::Int64, {rows});
  Tensor scores(DataType::Float32, {rows, classifier.columns(call.node)});
  const TensorView view = {input.type(), input.dims(), input.data(), input.elements()};
  ThreadPool serial(1);
  classifier.classify({call.node, view, classes.mutable_as<int64_t>(), scores.mutable_as<float>(),
                       call.pool == nullptr ? serial : *call.pool,
                       *std::pmr::get_default_resource(),
                       call.kept == nullptr ? nullptr : call.kept->get()});
  const ClassLabels labels = labels_of(call.node, classifier.integers);
  TESSERA_CHECK(labels.are_strings(), "a node with other labels has no value that is no number");
  Tensor names(DataType::String, {rows});
  std::ranges::transform(classes.as<int64_t>(), names.mutable_as<std::string>().begin(),
                         [&](int64_t index) { return string_label(labels, index); });
  call.outputs[0] = std::move(names);
  if (call.outputs.size() > 1) call.outputs[1] = std::move(scores);
}

}  // namespace

void Classification::fail(const std::string& message) const {
  throw Error(ErrorKind::InvalidArgument, location_of(node), message);
}

ClassLabels labels_of(const Node& node, const std::string& integers) {
  ClassLabels labels;
  labels.integers = int_list(node, integers);
  if (const auto* strings = node.attributes.find_strings("classlabels_strings")) {
    labels.strings = *strings;
  }
  return labels;
}

void check_labels(const InferContext& context, const std::string& integers) {
  const ClassLabels labels = labels_of(context.node(), integers);
  if (labels.integers.empty() == labels.strings.empty()) {
    context.fail("expected labels of classes in one of the attributes '" + integers +
                 "' and 'classlabels_strings', found " +
                 (labels.strings.empty() ? "none" : "both"));
  }
}

void set_classes(InferContext& context, const Classifier& classifier) {
  const Dim rows = row_count(context);
  const ClassLabels labels = labels_of(context.node(), classifier.integers);
  context.set_output(0, labels.are_strings() ? DataType::String : DataType::Int64, Shape{rows});
  context.set_output(1, DataType::Float32, Shape{rows, Dim(classifier.columns(context.node()))});
}

ReferenceKernel classifier_kernel(const Classifier& classifier) {
  return [classifier](const KernelCall& call) { run_with_integers(classifier, call); };
}

ValueKernel classifier_value_kernel(const Classifier& classifier) {
  return [classifier](const ValueCall& call) { run_with_strings(classifier, call); };
}

}  // namespace tessera::ops
