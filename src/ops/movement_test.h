// Shared by tests of ops in shape arithmetic, in addition to op_test.h.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "ops/op_test.h"
#include "tessera/error.h"

namespace tessera::ops {

inline std::vector<int64_t> list(std::initializer_list<int64_t> numbers) { return numbers; }

// An int64 list whose elements a rule knows as `elements`.
inline InferInput followed(std::vector<Dim> elements) {
  const Shape shape = {static_cast<int64_t>(elements.size())};
  return with_elements(shape, std::move(elements));
}

inline InferInput known(const Tensor& tensor) { return infer_input(tensor); }

// An int64 list whose elements are unknown.
inline InferInput unknown_list(int64_t length) { return typed(DataType::Int64, Shape{length}); }

// The error message of the op for these inputs; "" if it accepts them.
inline std::string refusal(const std::string& op, int opset, Attributes given,
                           const std::vector<Tensor>& inputs, size_t output_count = 1) {
  const auto error = thrown_by([&] { run_op(op, opset, std::move(given), inputs, output_count); });
  if (!error) return "";
  EXPECT_THAT(error->kind(), AnyOf(ErrorKind::InvalidModel, ErrorKind::InvalidArgument))
      << error->what();
  return error->message();
}

inline std::string shape_text(const std::vector<InferOutput>& outputs, size_t index = 0) {
  return text(outputs[index].type);
}

}  // namespace tessera::ops
