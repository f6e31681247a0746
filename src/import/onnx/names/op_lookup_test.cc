#include "import/onnx/names/op_lookup.h"

#include "import/onnx/test_models.h"
#include "ops/all_ops_test.h"

namespace tessera::onnx_import {
namespace {

struct LookupCase {
  const char* domain;
  const char* name;
  int64_t opset;
  const char* expected;
};

// A build that has Relu, Upsample (until version 9) and Gelu (since version 20).
const LookupCase kLookupCases[] = {
    {"", "Relu", 18, ""},
    {"", "DequantizeLinear", 18, "DequantizeLinear of ai.onnx is not in this build"},
    {"", "DequantizeLinear", 9,
     "DequantizeLinear of ai.onnx is not in this build; ONNX has it since version 10, but the "
     "model "
     "imports version 9 of domain 'ai.onnx'"},
    {"", "Scatter", 10, "Scatter of ai.onnx is not in this build"},
    {"", "Scatter", 11,
     "Scatter of ai.onnx is not in this build; ONNX retired it in version 11, but the model "
     "imports version 11 of domain 'ai.onnx'"},
    // Similar to an operator of this build, but ONNX has it.
    {"", "Selu", 18, "Selu of ai.onnx is not in this build"},
    {"", "If", 18, "If of ai.onnx is not in this build"},
    {"", "Upsample", 18,
     "Upsample of ai.onnx was retired after version 9, but the model imports version 18 of domain "
     "'ai.onnx'"},
    {"", "Gelu", 18,
     "Gelu of ai.onnx exists since version 20, but the model imports version 18 of domain "
     "'ai.onnx'"},
    {"", "Reluu", 18,
     "no version of domain 'ai.onnx' has an operator 'Reluu' (the model imports version 18 of "
     "domain 'ai.onnx'); did you mean 'Relu'?"},
    // Suggested, although this build does not have it.
    {"", "DequantizeLiner", 18,
     "no version of domain 'ai.onnx' has an operator 'DequantizeLiner' (the model imports version "
     "18 of domain 'ai.onnx'); did you mean 'DequantizeLinear'?"},
    {"", "Frobnicate", 18,
     "no version of domain 'ai.onnx' has an operator 'Frobnicate' (the model imports version 18 of "
     "domain 'ai.onnx')"},
    {"ai.onnx.preview.training", "Adagrad", 1,
     "Adagrad of ai.onnx.preview.training is not in this build"},
    {"ai.onnx.ml", "Relu", 3,
     "no version of domain 'ai.onnx.ml' has an operator 'Relu' (the model imports version 3 of "
     "domain 'ai.onnx.ml'); domain 'ai.onnx' has one"},
    {"", "Scaler", 18,
     "no version of domain 'ai.onnx' has an operator 'Scaler' (the model imports version 18 of "
     "domain 'ai.onnx'); domain 'ai.onnx.ml' has one"},
    {"", "Affine", 9,
     "Affine of ai.onnx is not in this build; ONNX had it as an experiment, in no operator set"},
    {"", "Affine", 10,
     "Affine of ai.onnx is not in this build; ONNX had it as an experiment until version 9, but "
     "the "
     "model imports version 10 of domain 'ai.onnx'"},
    {"", "Relu", 1, ""},
    {"", "Relu", 0,
     "Relu of ai.onnx exists since version 6, but the model imports version 0 of domain "
     "'ai.onnx'"},
    {"", "Relu", int64_t{1} << 40,
     "Relu of ai.onnx is not in this build in version 1099511627776 of domain 'ai.onnx'"},
    {"com.microsoft", "LongformerAttention", 1,
     "LongformerAttention of com.microsoft is not in this build (the model imports version 1 of "
     "domain "
     "'com.microsoft')"},
    {"com.example", "Relu", 7,
     "Relu of com.example is not in this build (the model imports version 7 of domain "
     "'com.example')"},
};

TEST(OpLookup, SaysWhyAnOperatorIsMissing) {
  ops::Registry registry;
  registry.add({.name = "Relu", .versions = {6, 13}});
  registry.add({.name = "Upsample", .versions = {7, 9}, .last_version = 9});
  registry.add({.name = "Gelu", .versions = {20}});
  for (const LookupCase& row : kLookupCases) {
    const Opsets opsets{{row.domain, row.opset}};
    EXPECT_EQ(explain_missing(registry, {row.domain, row.name}, opsets), row.expected);
  }
}

TEST(OpLookup, DoesNotSayThatADomainIsImportedWhereItIsNot) {
  const ops::Registry registry;
  const Opsets opsets{{"", 18}};
  for (const std::string domain : {"com.microsoft", "com.example"}) {
    EXPECT_EQ(explain_missing(registry, {domain, "LongformerAttention"}, opsets),
              "LongformerAttention of " + domain +
                  " is not in this build (the model does not import its domain)");
  }
}

TEST(OpLookup, KnowsTheOperatorsOfOnnx) {
  ASSERT_NE(find_onnx_operator("", "Abs"), nullptr);
  EXPECT_EQ(find_onnx_operator("", "DequantizeLinear")->first_version, 10);
  EXPECT_EQ(find_onnx_operator("", "Upsample")->end_version, 10);
  ASSERT_NE(find_onnx_operator("ai.onnx.preview.training", "Momentum"), nullptr);
  EXPECT_EQ(find_onnx_operator("", "Scaler"), nullptr);
  EXPECT_EQ(find_onnx_operator("", ""), nullptr);
  EXPECT_EQ(find_onnx_operator("zz", "Abs"), nullptr);
  EXPECT_TRUE(is_onnx_domain("ai.onnx.ml"));
  EXPECT_FALSE(is_onnx_domain("com.microsoft"));
  // The other ops of this build are those of ONNX Runtime, which has one in ONNX's own domain.
  for (const ops::Op* op : all_ops().all()) {
    const bool is_other =
        op->domain == "com.microsoft" || op->name == "SimplifiedLayerNormalization";
    EXPECT_EQ(find_onnx_operator(op->domain, op->name) == nullptr, is_other) << op->name;
  }
}

TEST(OpLookup, AnUnknownDomainMustBeImported) {
  onnx::ModelProto model = relu_model();
  model.mutable_graph()->mutable_node(0)->set_domain("com.example");
  expect_error([&] { import(model); }, ErrorKind::InvalidModel,
               {"node 'relu' (Relu)", "'com.example'", "(ai.onnx 13)", "opset_import"});
}

}  // namespace
}  // namespace tessera::onnx_import
