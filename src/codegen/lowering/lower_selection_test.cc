#include "codegen/lowering/lower_op_test.h"

namespace tessera::codegen {
namespace {

const std::vector<int64_t> kSelectionMatrix = {50, 40};
const std::vector<int64_t> kSelectionRow = {40};
// The type of an input that is left out.
constexpr DataType kLeftOut = DataType::String;

std::vector<LoweringCase> variadic_cases() {
  std::vector<LoweringCase> cases;
  for (const char* op : {"Max", "Mean", "Min", "Sum"}) {
    cases.push_back({op, 13, {{kSelectionMatrix}}});
    cases.push_back({op, 13, {{kSelectionMatrix}, {kSelectionMatrix}}});
    cases.push_back({op, 13, {{kSelectionRow}, {kSelectionMatrix}, {{50, 1}}}});
    cases.push_back(
        {op, 6, {{kSelectionMatrix}, {kSelectionMatrix}, {kSelectionMatrix}, {kSelectionMatrix}}});
  }
  return cases;
}

CaseInput matrix_shape() {
  const Tensor shape = ints({2}, kSelectionMatrix);
  return {.dims = {2}, .type = DataType::Int64, .constant = shape};
}

Tensor nan_bound() { return floats({}, {std::nanf("")}); }

TEST(LowerSelection, ComputesWhatTheReferenceDoes) {
  std::vector<LoweringCase> cases = variadic_cases();
  const DataType float32 = DataType::Float32;
  const std::vector<LoweringCase> others = {
      {"Where",
       16,
       {{kSelectionMatrix, Values::Any, DataType::Bool}, {kSelectionMatrix}, {kSelectionRow}}},
      {"Where", 9, {{kSelectionRow, Values::Any, DataType::Bool}, {{50, 1}}, {{1}}}},
      {"Expand", 13, {{kSelectionRow}, matrix_shape()}},
      {"Expand", 8, {{{50, 1}}, matrix_shape()}},
      {"PRelu", 16, {{kSelectionMatrix}, {kSelectionRow}}},
      {"PRelu", 9, {{{4, 3, 5}}, {{3, 1}}}},
      {"PRelu", 6, {{{4, 3, 5}}, {{3}}}},
      {"PRelu", 6, {{{4, 3, 5}}, {{1}}}},
      {"Clip", 6, {{kSelectionMatrix}}},
      {"Clip", 6, {{kSelectionMatrix}}, attributes_of({{"min", -1.3F}, {"max", 6.1F}})},
      {"Clip", 6, {{kSelectionMatrix}}, attributes_of({{"min", 2.0F}, {"max", std::nanf("")}})},
      {"Clip", 13, {{kSelectionMatrix}}},
      {"Clip", 13, {{kSelectionMatrix}, {{}}}},
      {"Clip", 13, {{kSelectionMatrix}, {{}}, {{1}}}},
      {"Clip", 13, {{kSelectionMatrix}, {{}, Values::Any, kLeftOut}, {{1}}}},
      {"Clip",
       13,
       {{kSelectionMatrix, Values::Any, float32}, {{}, Values::Any, float32, nan_bound()}}},
  };
  cases.insert(cases.end(), others.begin(), others.end());
  check_cases(selection_rows(), cases);
}

}  // namespace
}  // namespace tessera::codegen
