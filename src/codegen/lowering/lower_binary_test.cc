#include "codegen/lowering/lower_op_test.h"

namespace tessera::codegen {
namespace {

const std::vector<int64_t> kMatrix = {50, 40};
const std::vector<int64_t> kRow = {40};
const std::vector<int64_t> kColumn = {50, 1};

Tensor one(DataType type, double number) {
  Tensor tensor(type, {1});
  ops::convert_elements(DataType::Float64, &number, type, tensor.mutable_data(), 1);
  return tensor;
}

std::vector<LoweringCase> broadcasting_cases() {
  std::vector<LoweringCase> cases;
  for (const char* op : {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "Greater",
                         "GreaterOrEqual", "Less", "LessOrEqual", "Mul", "Or", "Sub", "Xor"}) {
    cases.push_back({op, 19, {{kMatrix}, {kMatrix}}});
    cases.push_back({op, 19, {{kMatrix}, {kRow}}});
    cases.push_back({op, 19, {{kColumn}, {kMatrix}}});
    cases.push_back({op, 19, {{{}}, {kMatrix}}});
    cases.push_back({op, 19, {{{}}, {{}}}});
  }
  return cases;
}

TEST(LowerBinary, ComputesWhatTheReferenceDoes) {
  std::vector<LoweringCase> cases = broadcasting_cases();
  const DataType bool_type = DataType::Bool;
  const std::vector<LoweringCase> others = {
      {"Equal", 13, {{kMatrix, Values::Any, bool_type}, {kMatrix, Values::Any, bool_type}}},
      {"BitShift",
       11,
       {{kMatrix}, {kMatrix, Values::Counts}},
       attributes_of({{"direction", "LEFT"}})},
      {"BitShift",
       28,
       {{kMatrix}, {kRow, Values::Counts}},
       attributes_of({{"direction", "RIGHT"}})},
      {"BitShift", 28, {{kMatrix}, {kRow}}, attributes_of({{"direction", "RIGHT"}})},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  for (const char* op :
       {"Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Sub", "Xor"}) {
    // Before version 7, `axis` aligns the right operand.
    cases.push_back(
        {op, 6, {{{4, 3, 5, 2}}, {{3, 5}}}, attributes_of({{"broadcast", 1}, {"axis", 1}})});
    cases.push_back({op, 6, {{{4, 3, 5, 2}}, {{5, 2}}}, attributes_of({{"broadcast", 1}})});
    cases.push_back({op, 6, {{{4, 3}}, {{4, 3}}}, attributes_of({{"axis", 7}})});
  }
  std::erase_if(cases, [](const LoweringCase& test) { return test.op == "Div"; });
  for (const DataType type :
       {DataType::Float16, DataType::BFloat16, DataType::Float32, DataType::Float64}) {
    cases.push_back({"Div", 14, {{kMatrix, Values::Any, type}, {kColumn, Values::Any, type}}});
    cases.push_back({"Div",
                     6,
                     {{{4, 3, 5, 2}, Values::Any, type}, {{3, 5}, Values::Any, type}},
                     attributes_of({{"broadcast", 1}, {"axis", 1}})});
  }
  for (const DataType type : kTestedTypes) {
    if (!is_integer(type)) continue;
    for (const double divisor : {1.0, 2.0, 3.0, 7.0, 100.0, -1.0, -2.0, -5.0}) {
      if (divisor < 0 && !is_signed_integer(type)) continue;
      const CaseInput right = {{1}, Values::Any, type, one(type, divisor)};
      const CaseInput left = {kMatrix, Values::Any, type};
      cases.push_back({"Div", 14, {left, right}});
      cases.push_back({"Div", 6, {left, right}, attributes_of({{"broadcast", 1}})});
      cases.push_back({"Mod", 13, {left, right}, attributes_of({{"fmod", 0}})});
      cases.push_back({"Mod", 13, {left, right}, attributes_of({{"fmod", 1}})});
    }
  }
  check_cases(binary_rows(), cases);
}

}  // namespace
}  // namespace tessera::codegen
