#include <cmath>

#include "ops/movement_test.h"

namespace tessera::ops {
namespace {

std::vector<float> made_window(const std::string& op, int64_t size, int64_t periodic) {
  return values(run_op(op, 17, attributes_of({{"periodic", periodic}}), {ints({}, {size})})[0]);
}

testing::Matcher<float> near_weight(float value) { return FloatNear(value, 1e-7F); }

TEST(SignalWindows, ArePeriodicOrSymmetric) {
  EXPECT_THAT(made_window("HannWindow", 4, 1),
              ElementsAre(near_weight(0), near_weight(0.5F), near_weight(1), near_weight(0.5F)));
  EXPECT_THAT(made_window("HannWindow", 4, 0),
              ElementsAre(near_weight(0), near_weight(0.75F), near_weight(0.75F), near_weight(0)));
  EXPECT_THAT(made_window("HammingWindow", 4, 1),
              ElementsAre(near_weight(0.08695652F), near_weight(0.54347826F), near_weight(1),
                          near_weight(0.54347826F)));
  EXPECT_THAT(made_window("HammingWindow", 4, 0),
              ElementsAre(near_weight(0.08695652F), near_weight(0.77173913F),
                          near_weight(0.77173913F), near_weight(0.08695652F)));
  EXPECT_THAT(made_window("BlackmanWindow", 4, 1),
              ElementsAre(near_weight(0), near_weight(0.34F), near_weight(1), near_weight(0.34F)));
  EXPECT_THAT(made_window("BlackmanWindow", 4, 0),
              ElementsAre(near_weight(0), near_weight(0.63F), near_weight(0.63F), near_weight(0)));
}

TEST(SignalWindows, MayHaveFewElements) {
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    EXPECT_THAT(made_window(op, 0, 1), IsEmpty());
    EXPECT_EQ(made_window(op, 1, 1).size(), 1U);
    EXPECT_TRUE(std::isnan(made_window(op, 1, 0)[0])) << "0 / 0 in ONNX's function";
    EXPECT_THAT(refusal(op, 17, {}, {ints({}, {-1})}), HasSubstr("at least 0, found -1"));
    EXPECT_THAT(refusal(op, 17, {}, {ints({2}, {1, 1})}), HasSubstr("one element"));
  }
}

TEST(SignalWindows, HaveTheTypeOfTheAttribute) {
  const auto typed_window = [](int64_t type) {
    return run_op("HannWindow", 17, attributes_of({{"output_datatype", type}}), {ints({}, {4})})[0];
  };
  EXPECT_THAT(bytes(typed_window(2)), ElementsAre(0, 0, 1, 0));
  for (const char* op : {"HammingWindow", "BlackmanWindow"}) {
    const auto given = attributes_of({{"output_datatype", 7}});
    EXPECT_THAT(integers(run_op(op, 17, given, {ints({}, {6})})[0]), ElementsAre(0, 0, 0, 1, 0, 0));
  }
  EXPECT_THAT(integers(typed_window(7)), ElementsAre(0, 0, 1, 0));
  EXPECT_EQ(typed_window(10).type(), DataType::Float16);
  EXPECT_NEAR(typed_window(11).as<double>()[1], 0.5, 1e-15);
  EXPECT_THAT(refusal("HannWindow", 17, attributes_of({{"output_datatype", 9}}), {ints({}, {4})}),
              HasSubstr("attribute 'output_datatype'"));
}

TEST(SignalWindows, HaveASizeThatMayBeASymbol) {
  const Dim size = Dim::symbol("size");
  const auto found = infer_op("HannWindow", 17, {}, {with_elements(Shape{}, {size})});
  EXPECT_EQ(found[0].type.shape, Shape{size});
  EXPECT_EQ(infer_op("HannWindow", 17, {}, {unknown_list(1)})[0].type.shape->size(), 1U);
}

}  // namespace
}  // namespace tessera::ops
