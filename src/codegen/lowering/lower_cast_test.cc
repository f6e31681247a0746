#include "codegen/lowering/lower_op_test.h"

namespace tessera::codegen {
namespace {

// The numbers of TensorProto.DataType.
constexpr int64_t kOnnxNumbers[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16};

TEST(LowerCast, ConvertsBetweenAllTypesAsTheReferenceDoes) {
  std::vector<LoweringCase> cases;
  for (const int64_t number : kOnnxNumbers) {
    cases.push_back({"Cast", 13, {{{3000}}}, attributes_of({{"to", number}})});
  }
  for (const DataType type : kTestedTypes) {
    cases.push_back({"CastLike", 19, {{{500}}, {{2, 3}, Values::Any, type}}});
  }
  check_cases(cast_rows(), cases);
}

}  // namespace
}  // namespace tessera::codegen
