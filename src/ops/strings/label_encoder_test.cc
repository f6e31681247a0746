#include "ops/strings_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TextOp encoder(int version) { return {"LabelEncoder", version, kMlDomain}; }

TEST(LabelEncoder, NumbersClassesInVersion1) {
  Attributes attributes;
  attributes.set("classes_strings", std::vector<std::string>{"a", "b"});
  EXPECT_THAT(run_text(encoder(1), attributes, {words({"b", "x", "a"})})[0].as<int64_t>(),
              ElementsAre(1, -1, 0));
  EXPECT_THAT(texts(run_text(encoder(1), attributes, {ints({3}, {1, 2, 0})})[0]),
              ElementsAre("b", "_Unused", "a"));
}

TEST(LabelEncoder, MapsKeysToValues) {
  Attributes attributes;
  attributes.set("keys_strings", std::vector<std::string>{"a", "b", "a"});
  attributes.set("values_floats", std::vector<float>{0.5F, 2, 9});
  attributes.set("default_float", 7.0F);
  EXPECT_THAT(values(run_text(encoder(2), attributes, {words({"b", "x", "a"})})[0]),
              ElementsAre(2, 7, 0.5F));
}

TEST(LabelEncoder, TakesAllNansAsOneKeyAndBothZeros) {
  Attributes attributes;
  attributes.set("keys_floats", std::vector<float>{0.0F, kNan});
  attributes.set("values_strings", std::vector<std::string>{"zero", "none"});
  EXPECT_THAT(texts(run_text(encoder(2), attributes, {floats({0.0F, -0.0F, -kNan, 1})})[0]),
              ElementsAre("zero", "zero", "none", "_Unused"));
}

TEST(LabelEncoder, TakesTensorsSinceVersion4) {
  Attributes attributes;
  attributes.set("keys_tensor", words({"a", "b"}));
  attributes.set("values_tensor",
                 Tensor::from<int16_t>(DataType::Int16, {2}, std::array<int16_t, 2>{4, 5}));
  attributes.set("default_tensor",
                 Tensor::from<int16_t>(DataType::Int16, {1}, std::array<int16_t, 1>{42}));
  const Tensor labels = run_text(encoder(4), attributes, {words({"b", "x"})})[0];
  EXPECT_THAT(labels.as<int16_t>(), ElementsAre(5, 42));
  attributes.erase("default_tensor");
  EXPECT_THAT(run_text(encoder(4), attributes, {words({"x"})})[0].as<int16_t>(), ElementsAre(-1));
}

TEST(LabelEncoder, RefusesListsThatDoNotFit) {
  const std::vector<InferInput> text = {typed(DataType::String, Shape{1})};
  Attributes attributes;
  EXPECT_THAT(text_error(encoder(2), attributes, text), HasSubstr("one list of keys, found 0"));
  attributes.set("keys_strings", std::vector<std::string>{"a"});
  attributes.set("values_int64s", std::vector<int64_t>{1, 2});
  EXPECT_THAT(text_error(encoder(2), attributes, text), HasSubstr("found 1 and 2"));
  attributes.set("values_int64s", std::vector<int64_t>{1});
  EXPECT_THAT(text_error(encoder(2), attributes, {typed(DataType::Int64, Shape{1})}),
              HasSubstr("expected string, as the keys are, found int64"));
  attributes.set("keys_floats", std::vector<float>{1});
  EXPECT_THAT(text_error(encoder(2), attributes, text), HasSubstr("one list of keys, found 2"));
  attributes.erase("keys_floats");
  attributes.set("default_tensor", words({"a"}));
  EXPECT_THAT(text_error(encoder(4), attributes, text), HasSubstr("'default_tensor'"));
}

}  // namespace
}  // namespace tessera::ops
