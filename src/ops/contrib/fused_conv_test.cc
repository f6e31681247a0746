#include "ops/contrib/contrib_test.h"

namespace tessera::ops {
namespace {

const Tensor kPicture = floats({1, 1, 2, 2}, {1, 2, 3, 4});
const Tensor kFilter = floats({1, 1, 1, 2}, {1, -1});  // the left minus the right neighbour: -1

TEST(FusedConv, AddsThenActivates) {
  const auto run = [](const Attributes& given) {
    return values(run_contrib(
        "FusedConv", given, {kPicture, kFilter, floats({0.5F}), floats({1, 1, 2, 1}, {2, -2})})[0]);
  };
  // -1 + 0.5 + 2 and -1 + 0.5 - 2.
  EXPECT_THAT(run({}), ElementsAre(1.5F, -2.5F));
  EXPECT_THAT(run(attributes_of({{"activation", "Relu"}})), ElementsAre(1.5F, 0));
  const auto with = [](const char* name, std::vector<float> parameters) {
    Attributes given = attributes_of({{"activation", name}});
    given.set("activation_params", std::move(parameters));
    return given;
  };
  EXPECT_THAT(run(with("LeakyRelu", {0.5F})), ElementsAre(1.5F, -1.25F));
  EXPECT_THAT(run(with("Clip", {-1, 1})), ElementsAre(1, -1));
  EXPECT_THAT(run(with("HardSigmoid", {0.5F, 0})), ElementsAre(0.75F, 0));
}

TEST(FusedConv, TakesChannelsAsTheLastAxis) {
  // Two channels, of which a filter of one element takes the second one.
  const Tensor picture = floats({1, 2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40});
  const Tensor filters = floats({2, 2, 1, 1}, {0, 1, 1, 1});
  const auto plain = run_contrib("NhwcConv", {}, {picture, filters});
  EXPECT_THAT(plain[0].dims(), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(values(plain[0]), ElementsAre(10, 11, 20, 22, 30, 33, 40, 44));
  const Tensor addend = floats({1, 2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, -100});
  const auto fused = run_contrib("NhwcFusedConv", attributes_of({{"activation", "Relu"}}),
                                 {picture, filters, floats({1, 2}), addend});
  EXPECT_THAT(values(fused[0]), ElementsAre(11, 13, 21, 24, 31, 35, 41, 0));
}

TEST(FusedConv, RefusesWrongActivationsAndShapes) {
  const auto refusal_of = [](const Attributes& given, const std::vector<Tensor>& inputs) {
    return contrib_refusal("FusedConv", given, inputs);
  };
  EXPECT_THAT(refusal_of(attributes_of({{"activation", "Frob"}}), {kPicture, kFilter}),
              AllOf(HasSubstr("expected one of Celu, Clip"), HasSubstr("found 'Frob'")));
  Attributes given = attributes_of({{"activation", "Clip"}});
  given.set("activation_params", std::vector<float>{1});
  EXPECT_THAT(refusal_of(given, {kPicture, kFilter}), HasSubstr("expected 2 numbers for Clip"));
  EXPECT_THAT(refusal_of({}, {kPicture, kFilter, floats({0}), kPicture}),
              HasSubstr("expected shape [1x1x2x1]"));
  EXPECT_THAT(contrib_refusal("NhwcConv", {}, {kPicture, kFilter}),
              HasSubstr("expected weights over 2 / 1 channels"));
}

TEST(FusedConv, KeepsUnknownSizes) {
  const Dim n = Dim::symbol("n");
  EXPECT_EQ(contrib_type("NhwcConv", {},
                         {typed(DataType::Float32, Shape{n, 5, 6, 3}),
                          typed(DataType::Float32, Shape{4, 3, 2, 3})}),
            "float32 nx4x4x4");
  EXPECT_EQ(contrib_type("FusedConv", {},
                         {typed(DataType::Float32, std::nullopt),
                          typed(DataType::Float32, Shape{4, 3, 2, 3})}),
            "float32 ?");
}

}  // namespace
}  // namespace tessera::ops
