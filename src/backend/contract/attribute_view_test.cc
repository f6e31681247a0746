#include "backend/contract/attribute_view.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor/tensors_test.h"
#include "graph/attributes_test.h"

namespace tessera {
namespace {

Attributes one_of_each() {
  Attributes attributes = attributes_of(
      {{"int", -3},
       {"float", 0.5F},
       {"string", "SAME_UPPER"},
       {"ints", {1, 2, 3}},
       {"floats", std::vector<float>{0.25F, 4}},
       {"strings", std::vector<std::string>{"Tanh", "a longer one that is on the heap"}}});
  attributes.set("tensor", floats({1, 2}, {7, 8}));
  attributes.set("tensors", std::vector<Tensor>{});
  attributes.set("type", Type::tensor(DataType::Float32));
  return attributes;
}

void expect_one_of_each(const AttributeViews& views) {
  EXPECT_EQ(views.find("int")->kind, TESSERA_ATTRIBUTE_INT);
  EXPECT_EQ(views.find("int")->int_value, -3);
  EXPECT_EQ(views.find("int")->struct_size, sizeof(tessera_attribute));
  EXPECT_EQ(views.find("float")->kind, TESSERA_ATTRIBUTE_FLOAT);
  EXPECT_EQ(views.find("float")->float_value, 0.5F);
  EXPECT_EQ(views.find("string")->kind, TESSERA_ATTRIBUTE_STRING);
  EXPECT_STREQ(views.find("string")->string_value, "SAME_UPPER");

  const tessera_attribute* ints = views.find("ints");
  ASSERT_EQ(ints->kind, TESSERA_ATTRIBUTE_INTS);
  EXPECT_EQ(std::vector<int64_t>(ints->ints, ints->ints + ints->count),
            (std::vector<int64_t>{1, 2, 3}));
  const tessera_attribute* floats = views.find("floats");
  ASSERT_EQ(floats->kind, TESSERA_ATTRIBUTE_FLOATS);
  EXPECT_EQ(std::vector<float>(floats->floats, floats->floats + floats->count),
            (std::vector<float>{0.25F, 4}));
  const tessera_attribute* strings = views.find("strings");
  ASSERT_EQ(strings->kind, TESSERA_ATTRIBUTE_STRINGS);
  ASSERT_EQ(strings->count, 2);
  EXPECT_STREQ(strings->strings[0], "Tanh");
  EXPECT_STREQ(strings->strings[1], "a longer one that is on the heap");

  const tessera_attribute* tensor = views.find("tensor");
  ASSERT_EQ(tensor->kind, TESSERA_ATTRIBUTE_TENSOR);
  EXPECT_EQ(tensor->tensor.data_type, TESSERA_FLOAT32);
  EXPECT_EQ(tensor->tensor.rank, 2);
  EXPECT_EQ(tensor->tensor.dims[1], 2);
  EXPECT_EQ(tensor->tensor.bytes, 8);
  EXPECT_EQ(static_cast<const float*>(tensor->tensor.data)[1], 8);
}

TEST(AttributeViews, ShowEveryKind) { expect_one_of_each(AttributeViews(one_of_each())); }

TEST(AttributeViews, OutliveTheAttributesAndStayWhereTheyAreWhenMoved) {
  std::optional<Attributes> attributes = one_of_each();
  AttributeViews made(*attributes);
  attributes.reset();
  const tessera_attribute* before = made.find("strings");
  std::vector<AttributeViews> kept;
  kept.push_back(std::move(made));
  kept.emplace_back(Attributes());
  EXPECT_EQ(kept[0].find("strings"), before);
  expect_one_of_each(kept[0]);
  EXPECT_EQ(kept[1].find("int"), nullptr);
}

TEST(AttributeViews, DoNotShowWhatIsNotThereOrHasNoKind) {
  const AttributeViews views(one_of_each());
  EXPECT_EQ(views.find("axis"), nullptr);
  EXPECT_EQ(views.find(""), nullptr);
  EXPECT_EQ(views.find(nullptr), nullptr);
  EXPECT_EQ(views.find("tensors"), nullptr);
  EXPECT_EQ(views.find("type"), nullptr);
}

}  // namespace
}  // namespace tessera
