#include "ops/ml/ml_test.h"

namespace tessera::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor map_of(Tensor keys, Tensor values) {
  return Tensor::map(std::move(keys), std::move(values));
}

InferInput map_input(DataType key, DataType value) {
  InferInput input;
  input.is_present = true;
  input.type = Type::map(key, Type::tensor(value));
  return input;
}

Tensor run_map(const char* op, Attributes attributes, const Tensor& input) {
  const Node node = text_node({op, 1, kMlDomain}, std::move(attributes), 1, 1);
  std::vector<Tensor> outputs(1);
  const std::vector<Tensor> inputs = {input};
  run_on_values(all_ops().of(node), {node, inputs, outputs});
  return outputs[0];
}

TEST(ZipMap, GivesAMapForEachRow) {
  Attributes attributes;
  attributes.set("classlabels_int64s", std::vector<int64_t>{5, 3});
  const Tensor maps = run_map("ZipMap", attributes, floats({2, 2}, {0.25F, 0.75F, 1, 0}));
  ASSERT_EQ(maps.list().size(), 2U);
  EXPECT_THAT(integers(maps.list()[0].map_keys()), ElementsAre(3, 5));
  EXPECT_THAT(values(maps.list()[0].map_values()), ElementsAre(0.75F, 0.25F));
  EXPECT_THAT(values(maps.list()[1].map_values()), ElementsAre(0, 1));
}

TEST(ZipMap, KeepsTheLastOfEqualKeys) {
  Attributes attributes;
  attributes.set("classlabels_strings", std::vector<std::string>{"a", "b", "a"});
  const Tensor maps = run_map("ZipMap", attributes, floats({1, 2, 3}));
  ASSERT_EQ(maps.list().size(), 1U);
  EXPECT_THAT(texts(maps.list()[0].map_keys()), ElementsAre("a", "b"));
  EXPECT_THAT(values(maps.list()[0].map_values()), ElementsAre(3, 2));
}

TEST(ZipMap, InfersItsType) {
  Attributes attributes;
  attributes.set("classlabels_strings", std::vector<std::string>{"a", "b"});
  EXPECT_EQ(text_type({"ZipMap", 1, kMlDomain}, attributes, rows_of(2)),
            "sequence(map(string, float32 scalar))");
  EXPECT_THAT(ml_error("ZipMap", 1, attributes, rows_of(3)),
              HasSubstr("rows of 2 features, as there are keys, found 3"));
  EXPECT_THAT(ml_error("ZipMap", 1, {}, rows_of(3)), HasSubstr("found none"));
}

TEST(DictVectorizer, LooksUpEachWord) {
  Attributes attributes;
  attributes.set("string_vocabulary", std::vector<std::string>{"a", "c", "b", "z"});
  const Tensor row =
      run_map("DictVectorizer", attributes, map_of(words({"c", "a", "q"}), ints({8, 4, 1})));
  EXPECT_THAT(row.dims(), ElementsAre(1, 4));
  EXPECT_THAT(integers(row), ElementsAre(4, 8, 0, 0));
}

TEST(DictVectorizer, LooksUpIntegersAndGivesStrings) {
  Attributes attributes;
  attributes.set("int64_vocabulary", std::vector<int64_t>{2, 1});
  EXPECT_THAT(texts(run_map("DictVectorizer", attributes, map_of(ints({1}), words({"x"})))),
              ElementsAre("", "x"));
  EXPECT_THAT(
      ml_error("DictVectorizer", 1, attributes, {map_input(DataType::String, DataType::Float32)}),
      HasSubstr("expected a map from int64 to"));
  EXPECT_THAT(ml_error("DictVectorizer", 1, {}, {map_input(DataType::String, DataType::Float32)}),
              HasSubstr("found none"));
  EXPECT_THAT(ml_error("DictVectorizer", 1, attributes, {typed(DataType::Float32, Shape{1})}),
              HasSubstr("found float32 1"));
}

TEST(CastMap, OrdersValuesByKey) {
  const Tensor map = map_of(ints({7, 2}), words({"1.5", "-2"}));
  const Tensor row = run_map("CastMap", {}, map);
  EXPECT_THAT(row.dims(), ElementsAre(1, 2));
  EXPECT_THAT(values(row), ElementsAre(-2, 1.5F));
}

TEST(CastMap, PlacesValuesByKeyIfSparse) {
  const Attributes attributes =
      attributes_of({{"map_form", "SPARSE"}, {"max_map", 4}, {"cast_to", "TO_INT64"}});
  EXPECT_THAT(integers(run_map("CastMap", attributes, map_of(ints({3, 0}), floats({2.5F, -1})))),
              ElementsAre(-1, 0, 0, 2));
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [&] { run_map("CastMap", attributes, map_of(ints({4}), floats({1}))); }),
              HasSubstr("keys in [0, 4), as max_map says, found 4"));
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument,
                       [&] { run_map("CastMap", attributes, map_of(ints({0}), floats({kNan}))); }),
              HasSubstr("a value that int64 holds"));
}

TEST(CastMap, MakesText) {
  EXPECT_THAT(texts(run_map("CastMap", attributes_of({{"cast_to", "TO_STRING"}}),
                            map_of(ints({1}), floats({0.5F})))),
              ElementsAre("0.5"));
}

TEST(CastMap, RefusesWrongAttributes) {
  const std::vector<InferInput> map = {map_input(DataType::Int64, DataType::Float32)};
  EXPECT_THAT(ml_error("CastMap", 1, attributes_of({{"cast_to", "TO_BOOL"}}), map),
              HasSubstr("found 'TO_BOOL'"));
  EXPECT_THAT(ml_error("CastMap", 1, attributes_of({{"map_form", "SPARSE"}, {"max_map", -1}}), map),
              HasSubstr("found -1"));
  EXPECT_THAT(ml_error("CastMap", 1, {}, {map_input(DataType::String, DataType::Float32)}),
              HasSubstr("expected a map from int64"));
}

}  // namespace
}  // namespace tessera::ops
