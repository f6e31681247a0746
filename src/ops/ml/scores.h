// What the models of ai.onnx.ml make of their scores: the attribute post_transform.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ops/op.h"

namespace tessera::ops {

// Numbered as TreeEnsemble does.
enum class PostTransform : uint8_t { None, Softmax, Logistic, SoftmaxZero, Probit };

// fail()s unless the attribute, a word, is one of them.
void check_post_transform(const InferContext& context);
PostTransform post_transform_of(const Node& node);

// Transforms the scores of one row.
void transform_scores(PostTransform transform, std::span<double> scores);

// How a binary classifier with one score gives two: the other class has what is missing to 1, or
// the opposite score.
enum class OtherScore : uint8_t { Complement, Opposite };

// The scores of both classes, transformed, for the score of the second one. The standard does not
// say what these are. As in ONNX Runtime, LOGISTIC makes probabilities of the score, and the two
// forms of softmax leave both as they are.
std::array<double, 2> binary_scores(PostTransform transform, OtherScore other, double score);

}  // namespace tessera::ops
