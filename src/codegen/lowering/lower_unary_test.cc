#include "codegen/lowering/lower_op_test.h"

namespace tessera::codegen {
namespace {

const std::vector<int64_t> kUnaryDims = {40, 100};

TEST(LowerUnary, ComputesWhatTheReferenceDoes) {
  std::vector<LoweringCase> cases;
  for (const char* op : {"Abs", "BitwiseNot", "Ceil", "Cos", "Erf", "Exp", "Floor", "IsNaN", "Log",
                         "Neg", "Not", "Reciprocal", "Round", "Sign", "Sin", "Sqrt"}) {
    cases.push_back({op, 22, {{kUnaryDims}}});
  }
  for (const int64_t detects_negative : {0, 1}) {
    for (const int64_t detects_positive : {0, 1}) {
      cases.push_back({"IsInf",
                       20,
                       {{kUnaryDims}},
                       attributes_of({{"detect_negative", detects_negative},
                                      {"detect_positive", detects_positive}})});
    }
  }
  check_cases(unary_rows(), cases);
}

}  // namespace
}  // namespace tessera::codegen
