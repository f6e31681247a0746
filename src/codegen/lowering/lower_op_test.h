// Shared by tests of lowering: computes one node by its expression and by the op's reference
// kernel.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor/float16.h"
#include "codegen/expression/evaluate.h"
#include "codegen/lowering/lower_op.h"
#include "ops/convert_elements.h"
#include "ops/op_test.h"

namespace tessera::codegen {

// Which elements an input has.
enum class Values : uint8_t {
  Any,       // all magnitudes, and special values
  Moderate,  // floats in [-8, 8], all integers
  Positive,  // floats in (0, 8]
  Special,   // floats in [-8, 8] with some NaN and infinities
  Counts,    // integers from -2 to 70
};

struct CaseInput {
  std::vector<int64_t> dims;
  Values values = Values::Any;
  DataType type = DataType::Undefined;  // Undefined: the type under test
  Tensor constant = {};                 // instead of the above
};

struct LoweringCase {
  std::string op;
  int version = 0;
  std::vector<CaseInput> inputs;
  Attributes attributes = {};
  double reference_error = 0;  // of a reference that cancels
};

// --- Elements ------------------------------------------------------------------------------------

inline double element_number(DataType type, const void* elements, int64_t index) {
  double number = 0;
  const auto* bytes = static_cast<const std::byte*>(elements) + index * element_bytes(type);
  ops::convert_elements(type, bytes, DataType::Float64, &number, 1);
  return number;
}

inline uint64_t element_bits(const Tensor& tensor, int64_t index) {
  const int64_t bytes = element_bytes(tensor.type());
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(tensor.data()) + index * bytes,
              static_cast<size_t>(bytes));
  return bits;
}

inline int fraction_bits(DataType type) {
  switch (type) {
    case DataType::Float64:
      return 52;
    case DataType::Float32:
      return 23;
    case DataType::BFloat16:
      return 7;
    default:
      return 10;
  }
}

// NaN made quiet: C's functions answer to signalling ones in other ways.
inline uint64_t quiet(DataType type, uint64_t bits) {
  if (!is_floating(type) || !std::isnan(element_number(type, &bits, 0))) return bits;
  return bits | uint64_t{1} << (fraction_bits(type) - 1);
}

// A random element of any magnitude; every fourth one is special.
inline uint64_t any_bits(DataType type, std::mt19937_64& random) {
  const int64_t width = 8 * element_bytes(type);
  const uint64_t mask = std::numeric_limits<uint64_t>::max() >> (64 - width);
  const uint64_t bits = random() & mask;
  if (type == DataType::Bool) return bits & 1;
  if (random() % 4 != 0) return quiet(type, bits);
  const uint64_t sign = (random() & 1) << (width - 1);
  if (is_integer(type)) {
    const uint64_t extremes[] = {0, 1, 2, 7, mask >> 1, mask >> 1 ^ mask, mask, mask - 1};
    return extremes[random() % std::size(extremes)];
  }
  const double numbers[] = {0,
                            1,
                            0.5,
                            2,
                            3,
                            6,
                            0x1p31,
                            255,
                            0x1p63,
                            0x1p127,
                            0x1p-149,
                            0x1p-126,
                            88,
                            std::nan(""),
                            -1,
                            -3,
                            20,
                            100,
                            std::numeric_limits<double>::infinity()};
  const double number = numbers[random() % std::size(numbers)];
  uint64_t element = 0;
  ops::convert_elements(DataType::Float64, &number, type, &element, 1);
  return element | sign;
}

inline uint64_t random_bits(DataType type, Values values, std::mt19937_64& random) {
  // Half of the floats of any magnitude are where functions change.
  const bool is_near = values == Values::Any && random() % 2 == 0;
  if (type == DataType::Bool || (values == Values::Any && !(is_near && is_floating(type)))) {
    return any_bits(type, random);
  }
  if (is_integer(type) && values != Values::Counts) return any_bits(type, random);
  const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
  double number = values == Values::Counts ? std::floor(unit * 73) - 2 : unit * 16 - 8;
  if (is_near) number = std::ldexp(unit * 2 - 1, static_cast<int>(random() % 18) - 8);
  if (values == Values::Positive) number = unit * 8 + 0x1p-10;
  if (values == Values::Special && random() % 64 == 0) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double numbers[] = {std::nan(""), infinity, -infinity};
    number = numbers[random() % std::size(numbers)];
  }
  uint64_t element = 0;
  ops::convert_elements(DataType::Float64, &number, type, &element, 1);
  return element;
}

inline Tensor random_tensor(DataType type, std::vector<int64_t> dims, Values values,
                            std::mt19937_64& random) {
  Tensor tensor(type, std::move(dims));
  const auto bytes = static_cast<size_t>(element_bytes(type));
  auto* target = static_cast<std::byte*>(tensor.mutable_data());
  for (int64_t index = 0; index < tensor.elements(); ++index, target += bytes) {
    const uint64_t bits = random_bits(type, values, random);
    std::memcpy(target, &bits, bytes);
  }
  return tensor;
}

// --- One node ------------------------------------------------------------------------------------

// A graph of one node, its inputs, and the result of the reference.
struct NodeUnderTest {
  Graph graph;
  std::vector<Tensor> inputs;
  Tensor expected;

  const Node& node() const { return graph.nodes[0]; }
};

// Fails if the schema does not admit the types.
inline NodeUnderTest make_node_under_test(const LoweringCase& test, DataType type,
                                          std::mt19937_64& random) {
  NodeUnderTest made;
  std::vector<bool> is_given;
  for (const CaseInput& input : test.inputs) {
    const DataType own = input.type == DataType::Undefined ? type : input.type;
    const bool is_left_out = input.constant.is_empty() && own == DataType::String;
    is_given.push_back(!is_left_out);
    if (is_left_out) {
      made.inputs.emplace_back();
    } else {
      made.inputs.push_back(input.constant.is_empty()
                                ? random_tensor(own, input.dims, input.values, random)
                                : input.constant);
    }
    Value value;
    value.name = "input" + std::to_string(made.inputs.size());
    if (!is_left_out) {
      const Tensor& tensor = made.inputs.back();
      value.type = Type::tensor(tensor.type(), shape_from(tensor.dims()));
      if (!input.constant.is_empty()) value.constant = tensor;
    }
    add_value(made.graph, std::move(value));
  }
  Node node = ops::make_node(all_ops(), test.op, test.version, test.attributes, is_given, 1);
  node.outputs[0] = {static_cast<int32_t>(made.inputs.size())};
  ThreadPool pool(1);
  made.expected = ops::evaluate(all_ops().of(node), node, made.inputs, pool)[0];
  Value output;
  output.name = "output";
  output.type = Type::tensor(made.expected.type(), shape_from(made.expected.dims()));
  add_value(made.graph, std::move(output));
  made.graph.outputs = node.outputs;
  made.graph.nodes.push_back(std::move(node));
  return made;
}

// The points of a space: first the axes that are kept, then those that are reduced.
struct TestPoints {
  std::vector<int64_t> dims;
  std::vector<size_t> axes;  // the outermost first
  int64_t count = 1;
  int64_t row = 1;

  // The element of a tensor of dimensions `broadcast` that a point reads.
  int64_t element(const std::vector<int64_t>& broadcast, int64_t point) const {
    std::vector<int64_t> position(dims.size(), 0);
    for (size_t at = axes.size(); at-- > 0; point /= dims[axes[at]]) {
      position[axes[at]] = point % dims[axes[at]];
    }
    int64_t index = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      index = index * broadcast[axis] + (broadcast[axis] == 1 ? 0 : position[axis]);
    }
    return index;
  }
};

inline TestPoints points_of(std::vector<int64_t> dims, const FusionRole& role) {
  TestPoints points;
  points.dims = padded(std::move(dims), 1);
  for (const bool is_reduced : {false, true}) {
    for (size_t axis = 0; axis < points.dims.size(); ++axis) {
      const bool is_own = !role.reduced_axes.empty() && role.reduced_axes[axis];
      if (is_own != is_reduced) continue;
      points.axes.push_back(axis);
      points.count *= points.dims[axis];
      if (is_reduced) points.row *= points.dims[axis];
    }
  }
  return points;
}

// The elements of an input that is read with `dims`, by point.
inline Column column_of(const Tensor& tensor, const std::vector<int64_t>& dims,
                        const TestPoints& points) {
  Column column;
  for (int64_t point = 0; point < points.count; ++point) {
    column.push_back(element_bits(tensor, points.element(dims, point)));
  }
  return column;
}

// The elements of the output by the node's expression, whose role is `role`.
inline std::vector<uint64_t> compute_expression(const NodeUnderTest& test, const FusionRole& role) {
  const Node& node = test.node();
  const bool is_reduction = role.kind == FusionKind::Reduction;
  const TestPoints points = points_of(!role.space_dims.empty() ? role.space_dims
                                      : is_reduction           ? test.inputs[0].dims()
                                                               : test.expected.dims(),
                                      role);
  ExpressionBuilder builder;
  NodeArguments arguments = {.inputs = {}, .reduced_elements = points.row};
  std::vector<Column> operands;
  std::vector<DataType> types;
  for (size_t index = 0; index < node.inputs.size(); ++index) {
    const std::vector<int64_t>& dims = role.input_dims[index];
    arguments.inputs.push_back(-1);
    if (dims.empty()) continue;
    const Tensor& tensor = test.inputs[index];
    arguments.inputs.back() = builder.operand(static_cast<int32_t>(operands.size()), tensor.type());
    operands.push_back(column_of(tensor, dims, points));
    types.push_back(tensor.type());
  }
  const InstructionId result = lower_node(test.graph, node, arguments, builder);
  EXPECT_EQ(builder.type(result), test.expected.type());
  EXPECT_EQ(explain_violation(builder.instructions(), types), "");
  const std::vector<InstructionId> results = {result};
  const Column column = evaluate(builder.instructions(), results, operands, points.row).front();
  std::vector<uint64_t> elements(
      static_cast<size_t>(points.count / (is_reduction ? points.row : 1)));
  for (size_t index = 0; index < elements.size(); ++index) {
    if (is_reduction) {
      elements[index] = column[index * static_cast<size_t>(points.row)];
    } else {
      const int64_t element = points.element(points.dims, static_cast<int64_t>(index));
      elements[static_cast<size_t>(element)] = column[index];
    }
  }
  return elements;
}

// --- Errors --------------------------------------------------------------------------------------

// The distance of two numbers of this magnitude that follow each other.
inline double ulp_of(DataType type, double magnitude) {
  const int lowest = type == DataType::Float64 ? -1022 : type == DataType::Float16 ? -14 : -126;
  const int highest = type == DataType::Float64 ? 1023 : type == DataType::Float16 ? 15 : 127;
  const int exponent = magnitude == 0 ? lowest : std::ilogb(std::min(magnitude, 0x1p1023));
  return std::ldexp(1.0, std::clamp(exponent, lowest, highest) - fraction_bits(type));
}

inline double finite_or_beyond(DataType type, double number) {
  if (!std::isinf(number) || type == DataType::Float64) return number;
  return std::copysign(type == DataType::Float16 ? 0x1p16 : 0x1p128, number);
}

// 0 for equal bits, and for NaN where NaN is expected; infinity where only one is NaN, or where
// zeros have different signs although the bound is 0.
inline double error_in_ulp(DataType type, uint64_t actual, uint64_t expected, double least,
                           double reference_error) {
  if (actual == expected) return 0;
  const double infinity = std::numeric_limits<double>::infinity();
  if (!is_floating(type)) return infinity;
  const double x = element_number(type, &actual, 0);
  const double y = element_number(type, &expected, 0);
  if (std::isnan(x) && std::isnan(y)) return 0;
  if (std::isnan(x) || std::isnan(y)) return infinity;
  const double distance = std::fabs(finite_or_beyond(type, x) - finite_or_beyond(type, y));
  const double error =
      std::max(0.0, distance - reference_error) / ulp_of(type, std::max(std::fabs(y), least));
  return std::isnan(error) ? infinity : error;
}

inline ErrorBound bound_of(const FusionRow& row, DataType type) {
  if (type == DataType::Float64) return row.float64;
  if (!is_half(type)) return row.float32;
  return {row.float32.ulp == 0 ? 0.0 : 1.0, row.float32.least};
}

inline const FusionRow* find_row_of(std::span<const FusionRow> rows, const Node& node) {
  for (const FusionRow& row : rows) {
    if (row.op == node.op && row.since <= node.version && node.version <= row.until) return &row;
  }
  return nullptr;
}

inline constexpr DataType kTestedTypes[] = {
    DataType::Bool,     DataType::Int8,    DataType::Int16,  DataType::Int32,  DataType::Int64,
    DataType::UInt8,    DataType::UInt16,  DataType::UInt32, DataType::UInt64, DataType::Float16,
    DataType::BFloat16, DataType::Float32, DataType::Float64};

// Whether zeros of different signs are equal: the contract leaves it open for extremes of a
// reduction, and a bound of an absolute error allows it.
inline bool has_any_zero(const Node& node, const ErrorBound& bound) {
  return bound.least >= 0x1p-10 || node.op == "ReduceMax" || node.op == "ReduceMin" ||
         node.op == "GlobalMaxPool";
}

inline void expect_near(const NodeUnderTest& test, const FusionRow& row, double reference_error,
                        const std::vector<uint64_t>& actual, const std::string& where) {
  const DataType type = test.expected.type();
  const ErrorBound bound = bound_of(row, type);
  ASSERT_EQ(actual.size(), static_cast<size_t>(test.expected.elements())) << where;
  double worst = 0;
  size_t worst_index = 0;
  for (size_t index = 0; index < actual.size(); ++index) {
    const uint64_t expected = element_bits(test.expected, static_cast<int64_t>(index));
    double error = error_in_ulp(type, actual[index], expected, bound.least, reference_error);
    const bool is_zero = is_floating(type) && element_number(type, &actual[index], 0) == 0 &&
                         element_number(type, &expected, 0) == 0;
    if (is_zero && actual[index] != expected) {
      error = has_any_zero(test.node(), bound) ? 0 : std::numeric_limits<double>::infinity();
    }
    if (error > worst) {
      worst = error;
      worst_index = index;
    }
  }
  if (worst <= bound.ulp) return;
  const uint64_t expected = element_bits(test.expected, static_cast<int64_t>(worst_index));
  std::string inputs;
  for (const Tensor& input : test.inputs) {
    if (input.is_empty() || input.elements() != test.expected.elements()) continue;
    inputs += " " + std::to_string(element_number(input.type(), input.data(),
                                                  static_cast<int64_t>(worst_index)));
  }
  ADD_FAILURE() << where << ": error of " << worst << " ulp, at most " << bound.ulp
                << " allowed, at element " << worst_index << ": expected "
                << element_number(type, &expected, 0) << ", found "
                << element_number(type, &actual[worst_index], 0) << ", inputs" << inputs;
}

// Runs each case on all types that its row and the op's schema admit. Each row needs a case for
// each of its types.
inline void check_cases(std::span<const FusionRow> rows, std::span<const LoweringCase> cases) {
  std::vector<std::vector<bool>> is_covered(rows.size(), std::vector<bool>(16, false));
  std::mt19937_64 random(20);
  for (const LoweringCase& test : cases) {
    const bool has_fixed_types =
        std::none_of(test.inputs.begin(), test.inputs.end(), [](const CaseInput& input) {
          return input.type == DataType::Undefined && input.constant.is_empty();
        });
    for (const DataType type : kTestedTypes) {
      if (has_fixed_types && type != kTestedTypes[0]) break;
      const std::string where = test.op + " " + std::to_string(test.version) + " (case " +
                                std::to_string(&test - cases.data()) + ") " +
                                std::string(name(type));
      std::optional<NodeUnderTest> made;
      try {
        made = make_node_under_test(test, type, random);
      } catch (const Error&) {
        continue;  // the schema does not admit the type
      }
      const FusionRow* row = find_row_of(rows, made->node());
      ASSERT_NE(row, nullptr) << where;
      const FusionRole role = fusion_role(made->graph, made->node());
      if (!row->types.contains(made->inputs[0].type())) {
        EXPECT_EQ(role.kind, FusionKind::None) << where;
        continue;
      }
      ASSERT_NE(role.kind, FusionKind::None) << where << ": " << role.refusal;
      expect_near(*made, *row, test.reference_error, compute_expression(*made, role), where);
      is_covered[static_cast<size_t>(row - rows.data())]
                [static_cast<size_t>(made->inputs[0].type())] = true;
    }
  }
  for (size_t index = 0; index < rows.size(); ++index) {
    for (const DataType type : kTestedTypes) {
      EXPECT_EQ(is_covered[index][static_cast<size_t>(type)], rows[index].types.contains(type))
          << rows[index].op << " until version " << rows[index].until << " for " << name(type);
    }
  }
}

}  // namespace tessera::codegen
