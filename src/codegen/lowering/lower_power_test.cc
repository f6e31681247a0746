#include "codegen/lowering/lower_op_test.h"

namespace tessera::codegen {
namespace {

const std::vector<int64_t> kPowerDims = {40, 100};

Tensor scalar(DataType type, double number) {
  Tensor tensor(type, {});
  ops::convert_elements(DataType::Float64, &number, type, tensor.mutable_data(), 1);
  return tensor;
}

TEST(LowerPower, ComputesWhatTheReferenceDoes) {
  const DataType int32 = DataType::Int32;
  std::vector<LoweringCase> cases = {
      {"Pow",
       6,
       {{{4, 3, 5}, Values::Any, DataType::Float16}, {{3, 5}, Values::Any, DataType::Float16}},
       attributes_of({{"broadcast", 1}})},
  };
  for (const DataType type : kTestedTypes) {
    if (is_floating(type)) {
      cases.push_back(
          {"Pow", 13, {{kPowerDims, Values::Any, type}, {{100}, Values::Moderate, type}}});
      cases.push_back({"Pow", 13, {{kPowerDims, Values::Any, type}, {{100}, Values::Any, type}}});
      cases.push_back(
          {"Pow", 13, {{kPowerDims, Values::Any, type}, {{100}, Values::Counts, int32}}});
      cases.push_back(
          {"Pow", 1, {{kPowerDims, Values::Any, type}, {kPowerDims, Values::Moderate, type}}});
      for (const double exponent : {1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 2.5, 0.0, -3.0}) {
        const CaseInput constant = {{}, Values::Any, type, scalar(type, exponent)};
        cases.push_back({"Pow", 13, {{kPowerDims, Values::Any, type}, constant}});
        cases.push_back({"Pow",
                         6,
                         {{kPowerDims, Values::Any, type}, constant},
                         attributes_of({{"broadcast", 1}})});
      }
    }
    if (!ops::kIndexTypes.contains(type)) continue;
    for (const double exponent : {1.0, 2.0, 3.0, 5.0, 31.0, 64.0}) {
      const CaseInput constant = {{}, Values::Any, int32, scalar(int32, exponent)};
      cases.push_back({"Pow", 13, {{kPowerDims, Values::Any, type}, constant}});
      cases.push_back({"Pow",
                       6,
                       {{kPowerDims, Values::Any, type}, constant},
                       attributes_of({{"broadcast", 1}})});
    }
  }
  check_cases(power_rows(), cases);
}

}  // namespace
}  // namespace tessera::codegen
