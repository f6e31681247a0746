// Shared by the classifiers of ai.onnx.ml: their labels, and how they run with labels that are
// strings.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>

#include "ops/op.h"

namespace tessera::ops {

// The labels of the classes: of one of two attributes.
struct ClassLabels {
  std::span<const int64_t> integers;
  std::span<const std::string> strings;

  int64_t count() const { return std::ssize(integers) + std::ssize(strings); }
  bool are_strings() const { return !strings.empty(); }
};

// `integers` is the attribute's name in this op: "classlabels_ints" or "classlabels_int64s". The
// other one is "classlabels_strings".
ClassLabels labels_of(const Node& node, const std::string& integers);
// fail()s unless exactly one of both attributes has labels.
void check_labels(const InferContext& context, const std::string& integers);

// One call of a classifier.
struct Classification {
  const Node& node;
  const TensorView& input;
  std::span<int64_t> classes;  // for each row, the index of its class
  std::span<float> scores;     // for each row, as many as columns() says
  ThreadPool& pool;
  std::pmr::memory_resource& scratch;
  const void* prepared = nullptr;  // by prepare_node()

  [[noreturn]] void fail(const std::string& message) const;
};

// A class of a binary classifier that names only one label: 1 if the score is positive, else 0. The
// label of an index is then the index itself.
inline int64_t lonely_class(double score) { return score > 0 ? 1 : 0; }

struct Classifier {
  std::string integers;             // the attribute
  int64_t (*columns)(const Node&);  // the number of scores of a row
  void (*classify)(const Classification&);
};

// Sets the types of the label and of the scores.
void set_classes(InferContext& context, const Classifier& classifier);

// For labels that are integers, and for those that are strings.
ReferenceKernel classifier_kernel(const Classifier& classifier);
ValueKernel classifier_value_kernel(const Classifier& classifier);

}  // namespace tessera::ops
