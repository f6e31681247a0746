// Tests explain_illegal_op() of plugin_ops.h with illegal ops.

#include <functional>
#include <string>
#include <utility>

#include "backend/plugin_ops/plugin_ops.h"
#include "backend/plugin_ops/scale_op_test.h"
#include "base/matchers_test.h"

namespace tessera {
namespace {

// The result of explain_illegal_op() without the op's name.
std::string reason_of(const tessera_op& op) {
  const std::string reason = explain_illegal_op(op);
  const std::string location = op.name == nullptr || *op.name == '\0'
                                   ? std::string("an op: ")
                                   : "op '" + std::string(op.name) + "': ";
  EXPECT_TRUE(reason.empty() || reason.starts_with(location)) << reason;
  return reason.substr(reason.empty() ? 0 : location.size());
}

TEST(ExplainIllegalOp, NamesWhatIsWrong) {
  using Change = std::function<void(plugin::Op&)>;
  const std::pair<Change, const char*> cases[] = {
      {[](plugin::Op&) {}, ""},
      {[](plugin::Op& op) { op.name = ""; }, "it has no name"},
      {[](plugin::Op& op) { op.domain = ""; },
       "it has no domain: ops of ONNX's own cannot be added"},
      {[](plugin::Op& op) { op.domain = "ai.onnx"; }, "its domain 'ai.onnx' is ONNX's own"},
      {[](plugin::Op& op) { op.domain = "ai.onnx.ml"; }, "its domain 'ai.onnx.ml' is ONNX's own"},
      {[](plugin::Op& op) { op.domain = "ai.onnxruntime"; }, ""},
      {[](plugin::Op& op) { op.version = 0; }, "expected a version from 1 to 1000, found 0"},
      {[](plugin::Op& op) { op.inputs[0].name = ""; }, "input 0 has no name"},
      {[](plugin::Op& op) { op.inputs[1].name = "X"; }, "input 'X' is listed twice"},
      {[](plugin::Op& op) { op.inputs[0].type_variable = ""; }, "input 'X' has no type variable"},
      {[](plugin::Op& op) { op.inputs[0].data_types = {}; },
       "input 'X': expected a set of data types, found the bits 0"},
      {[](plugin::Op& op) { op.inputs[0].data_types = {TESSERA_UNDEFINED}; },
       "input 'X': expected a set of data types, found the bits 1"},
      {[](plugin::Op& op) { op.inputs[0].data_types = {20}; },
       "input 'X': expected a set of data types, found the bits 1048576"},
      {[](plugin::Op& op) { op.inputs[0].arity = 3; },
       "input 'X': expected an arity of TESSERA_ARITY_, found 3"},
      {[](plugin::Op& op) { op.inputs[0].arity = TESSERA_ARITY_VARIADIC; },
       "input 'X' is variadic, but not the last one"},
      {[](plugin::Op& op) { op.inputs[1].arity = TESSERA_ARITY_VARIADIC; }, ""},
      {[](plugin::Op& op) { op.outputs[0].data_types = {TESSERA_INT8}; },
       "output 'Y' has type variable 'T', which stands for other data types elsewhere in the op"},
      {[](plugin::Op& op) { op.outputs.clear(); }, "it has no outputs"},
      {[](plugin::Op& op) { op.inputs.clear(); }, ""},
      {[](plugin::Op& op) { op.attributes[0].name = ""; }, "attribute 0 has no name"},
      {[](plugin::Op& op) { op.attributes.push_back(op.attributes[0]); },
       "attribute 'factor' is listed twice"},
      {[](plugin::Op& op) { op.attributes[0].kind = 0; },
       "attribute 'factor' has no kind of TESSERA_ATTRIBUTE_, but 0"},
      {[](plugin::Op& op) { op.attributes[0].is_required = true; },
       "attribute 'factor' is required, but has a default"},
  };
  for (const auto& [change, expected] : cases) {
    plugin::Op op = scale_op();
    change(op);
    const Opened opened(op);
    EXPECT_EQ(reason_of(opened.abi.ops[0]), expected);
  }
}

TEST(ExplainIllegalOp, BelievesNoPointer) {
  using Change = std::function<void(tessera_op&)>;
  const std::pair<Change, const char*> cases[] = {
      {[](tessera_op& op) { op.struct_size = 8; }, "its struct_size is 8, less than the"},
      {[](tessera_op& op) { op.name = nullptr; }, "it has no name"},
      {[](tessera_op& op) { op.domain = nullptr; }, "it has no domain"},
      {[](tessera_op& op) { op.inputs = nullptr; }, "the pointer to them is null"},
      {[](tessera_op& op) { op.outputs = nullptr; }, "the pointer to them is null"},
      {[](tessera_op& op) { op.attributes = nullptr; }, "the pointer to them is null"},
      {[](tessera_op& op) { op.input_count = -1; }, "expected from 0 to 1000 inputs, found -1"},
      {[](tessera_op& op) { op.output_count = 2000000; },
       "expected from 0 to 1000 outputs, found 2000000"},
      {[](tessera_op& op) { op.infer = nullptr; }, "it has no type rule (infer is null)"},
  };
  for (const auto& [change, expected] : cases) {
    const Opened opened(scale_op());
    tessera_op op = opened.abi.ops[0];
    change(op);
    EXPECT_THAT(explain_illegal_op(op), HasSubstr(expected));
  }
}

TEST(ExplainIllegalOp, DefaultsMustBeWhole) {
  const Opened opened(scale_op());
  tessera_op op = opened.abi.ops[0];
  tessera_attribute value = {};
  tessera_attribute_schema schema = {"a", TESSERA_ATTRIBUTE_STRINGS, 0, &value};
  op.attributes = &schema;
  const auto explain = [&](int32_t kind) {
    schema.kind = kind;
    value.kind = kind;
    return reason_of(op);
  };
  EXPECT_EQ(explain(TESSERA_ATTRIBUTE_STRING), "attribute 'a' has a default without its text");
  EXPECT_EQ(explain(TESSERA_ATTRIBUTE_TENSOR),
            "attribute 'a' has a tensor as its default, which is not supported");
  EXPECT_EQ(explain(TESSERA_ATTRIBUTE_INTS), "");
  value.count = 2;
  EXPECT_EQ(explain(TESSERA_ATTRIBUTE_INTS), "attribute 'a' has a default without its elements");
  EXPECT_EQ(explain(TESSERA_ATTRIBUTE_FLOATS), "attribute 'a' has a default without its elements");
  const char* texts[] = {"one", nullptr};
  value.strings = texts;
  EXPECT_EQ(explain(TESSERA_ATTRIBUTE_STRINGS), "attribute 'a' has a default without its texts");
  texts[1] = "two";
  EXPECT_EQ(explain(TESSERA_ATTRIBUTE_STRINGS), "");
  schema.kind = TESSERA_ATTRIBUTE_INT;
  EXPECT_EQ(reason_of(op), "attribute 'a' has a default of another kind");
}

}  // namespace
}  // namespace tessera
