#include <map>

#include "ops/op_test.h"

namespace tessera::ops {
namespace {

struct ActivationCase {
  const char* op;
  int opset;
  std::map<std::string, float> attributes;
  std::vector<float> expected;  // for -2, -0.5, 0, 1, 4; from numpy, in float64 and rounded
};

const ActivationCase kActivationCases[] = {
    {"Celu", 12, {{"alpha", 2.0F}}, {-1.26424110F, -0.442398429F, 0, 1, 4}},
    {"Elu", 6, {}, {-0.864664733F, -0.393469334F, 0, 1, 4}},
    {"Elu", 6, {{"alpha", 2.0F}}, {-1.72932947F, -0.786938667F, 0, 1, 4}},
    {"Gelu", 20, {}, {-0.0455002636F, -0.154268771F, 0, 0.841344714F, 3.99987340F}},
    {"HardSigmoid", 6, {}, {0.100000001F, 0.400000006F, 0.5F, 0.700000003F, 1}},
    {"HardSwish", 14, {}, {-0.333333343F, -0.208333328F, 0, 0.666666687F, 4}},
    {"LeakyRelu", 6, {}, {-0.0199999996F, -0.00499999989F, 0, 1, 4}},
    {"LeakyRelu", 16, {{"alpha", 0.5F}}, {-1, -0.25F, 0, 1, 4}},
    {"Mish", 18, {}, {-0.252501494F, -0.220743775F, 0, 0.865098357F, 3.99741292F}},
    {"Relu", 6, {}, {0, 0, 0, 1, 4}},
    {"Selu", 6, {}, {-1.52016652F, -0.691758156F, 0, 1.05070102F, 4.20280409F}},
    {"Shrink", 9, {{"bias", 0.25F}, {"lambd", 1.0F}}, {-1.75F, 0, 0, 0, 3.75F}},
    {"Sigmoid", 6, {}, {0.119202919F, 0.377540678F, 0.5F, 0.731058598F, 0.982013762F}},
    {"Softplus", 6, {}, {0.126928017F, 0.474076986F, 0.693147182F, 1.31326163F, 4.01814985F}},
    {"Softsign", 6, {}, {-0.666666687F, -0.333333343F, 0, 0.5F, 0.800000012F}},
    {"Swish", 24, {}, {-0.238405839F, -0.188770339F, 0, 0.731058598F, 3.92805505F}},
    {"Tanh", 6, {}, {-0.964027584F, -0.462117165F, 0, 0.761594176F, 0.999329329F}},
    {"ThresholdedRelu", 10, {}, {0, 0, 0, 0, 4}},
};

TEST(Activation, Floats) {
  for (const ActivationCase& test : kActivationCases) {
    Attributes attributes;
    for (const auto& [name, value] : test.attributes) attributes.set(name, value);
    const Tensor input = floats({5}, {-2, -0.5F, 0, 1, 4});
    const Tensor output = run_op(test.op, test.opset, attributes, {input})[0];
    EXPECT_THAT(values(output), Pointwise(testing::FloatEq(), test.expected)) << test.op;
  }
}

TEST(Activation, NanStays) {
  for (const char* op : {"Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Softplus", "Softsign",
                         "Sigmoid", "HardSigmoid", "HardSwish", "Swish", "Mish", "Tanh", "Gelu"}) {
    EXPECT_THAT(values(run_op(op, 24, {}, {floats({1}, {kNan})})[0]), ElementsAre(testing::IsNan()))
        << op;
  }
}

TEST(Activation, CeluOfNoAlphaIsWhatItsFormulaSays) {
  EXPECT_THAT(
      values(run_op("Celu", 24, attributes_of({{"alpha", 0.0F}}), {floats({3}, {-1, 0, 1})})[0]),
      ElementsAre(0, testing::IsNan(), testing::IsNan()));
}

TEST(Activation, LargeInputsDoNotOverflow) {
  const Tensor input = floats({2}, {-1000, 1000});
  EXPECT_THAT(values(run_op("Softplus", 6, {}, {input})[0]), ElementsAre(0, 1000));
  EXPECT_THAT(values(run_op("Sigmoid", 6, {}, {input})[0]), ElementsAre(0, 1));
  EXPECT_THAT(values(run_op("Mish", 18, {}, {input})[0]), ElementsAre(0, 1000));
}

TEST(Activation, GeluByTanh) {
  Attributes attributes = attributes_of({{"approximate", "tanh"}});
  const Tensor output = run_op("Gelu", 20, attributes, {floats({2}, {-0.5F, 1})})[0];
  EXPECT_THAT(values(output),
              ElementsAre(testing::FloatEq(-0.154285997F), testing::FloatEq(0.841191995F)));
  attributes.set("approximate", std::string("quick"));
  EXPECT_EQ(error_of([&] { run_op("Gelu", 20, attributes, {floats({1}, {1})}); }),
            "InvalidModel: node 'node' (Gelu): attribute 'approximate': expected 'none' or 'tanh', "
            "found 'quick'");
}

TEST(Activation, IntegersAreExact) {
  const Tensor input = ints({2}, {-3, 9007199254740993});
  EXPECT_THAT(integers(run_op("Relu", 14, {}, {input})[0]), ElementsAre(0, 9007199254740993));
}

TEST(Activation, ShrinkOfIntegersIsTruncated) {
  // As in ONNX Runtime.
  EXPECT_THAT(integers(run_op("Shrink", 9, attributes_of({{"lambd", 1.5F}, {"bias", 1.5F}}),
                              {ints({3}, {-3, 0, 3})})[0]),
              ElementsAre(-1, 0, 1));
}

}  // namespace
}  // namespace tessera::ops
