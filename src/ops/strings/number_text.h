// Numbers as text and back, as Cast converts them.
// https://onnx.ai/onnx/operators/onnx__Cast.html
#pragma once

#include "base/tensor/small_types.h"
#include "ops/op.h"

namespace tessera::ops {

// The elements of `input`, of which it or the result is of strings, as `type`. Numbers become
// plain text that gives the same number again, with no more digits than it takes behind the point
// ("0.1", "-5"; "NaN", "INF", "-INF"), bools "1" and "0". Text may have white space around a
// number; integers are truncated from numbers with a fraction. Fails, naming the element, if a text
// is no number, or one that `type` does not hold. Numbers become small floats as `rounding` says.
Tensor converted_text(const ValueCall& call, const Tensor& input, DataType type,
                      SmallFloatRounding rounding = {});

}  // namespace tessera::ops
