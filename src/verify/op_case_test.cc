#include "verify/op_case.h"

#include <gmock/gmock.h>

#include "base/errors/error_test.h"
#include "graph/verify.h"
#include "ops/all_ops_test.h"

namespace tessera::verification {
namespace {

OpCase read(const std::string& text, uint64_t seed = 1) {
  return read_op_case(text, all_ops(), seed);
}

std::string output_type(const OpCase& op_case) {
  return text(op_case.graph[op_case.graph.outputs.at(0)].type);
}

TEST(OpCase, ReadsNodesInputsAndAttributes) {
  const OpCase op_case = read("Conv(1x3x9x7, #4x3x3x3, _) pads=1,1,1,1; Relu(@)");
  EXPECT_EQ(op_case.op, "Conv+Relu");
  EXPECT_EQ(output_type(op_case), "float32 1x4x9x7");
  EXPECT_EQ(op_case.graph.inputs.size(), 1U);
  EXPECT_TRUE(op_case.graph[op_case.graph.nodes[0].inputs[1]].is_constant());
  EXPECT_TRUE(op_case.graph.nodes[0].inputs[2].is_none());
  EXPECT_EQ(op_case.graph.nodes[0].attributes.get_ints("pads"), (std::vector<int64_t>{1, 1, 1, 1}));
}

TEST(OpCase, ReadsLiteralsTypesAndRepeats) {
  EXPECT_EQ(output_type(read("Reshape(2x3x4, {4,-1})")), "float32 4x6");
  EXPECT_EQ(output_type(read("Clip(3, s{0.0}, s{6.0})")), "float32 3");
  EXPECT_EQ(output_type(read("Add(int64:3x5, =0)")), "int64 3x5");
  EXPECT_EQ(read("Add(3x5, =0)").graph.inputs.size(), 1U);
  EXPECT_EQ(read("Sigmoid(3); Mul(=0, @0)").graph.outputs.size(), 1U);
  EXPECT_EQ(read("LSTM/3(5x2x3, #1x16x3, #1x16x4) hidden_size=4").graph.outputs.size(), 3U);
}

TEST(OpCase, DrawsTheSameForTheSameSeed) {
  const auto first = read("Relu(7)", 3).inputs[0].as<float>()[4];
  EXPECT_EQ(first, read("Relu(7)", 3).inputs[0].as<float>()[4]);
  EXPECT_NE(first, read("Relu(7)", 4).inputs[0].as<float>()[4]);
  const OpCase positive = read("Log(+64)");
  for (const float element : positive.inputs[0].as<float>()) EXPECT_GE(element, 0.5F);
}

TEST(OpCase, RefusesWhatItCannotRead) {
  for (const char* text : {"Relu", "Relu(3x)", "Relu(float17:3)", "Nothing(3)", "Relu(@)",
                           "Relu(3) slope=1", "Relu(3) slope"}) {
    EXPECT_THROW(read(text), Error) << text;
  }
}

TEST(CaseTable, IsLegalAndKnowsEverySize) {
  for (const char* text : case_table()) {
    SCOPED_TRACE(text);
    OpCase op_case;
    ASSERT_NO_THROW(op_case = read(text));
    EXPECT_EQ(explain_illegal(op_case.graph), "") << text;
    for (const ValueId output : op_case.graph.outputs) {
      EXPECT_TRUE(op_case.graph[output].type.is_known_tensor()) << text;
    }
  }
}

}  // namespace
}  // namespace tessera::verification
