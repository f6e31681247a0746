#include "measure/capture.h"

#include <vector>

#include "base/tensor/tensors_test.h"
#include "price/product_graph_test.h"

namespace tessera::tuning {
namespace {

using Magnitudes = ProductGraphs;

TEST_F(Magnitudes, AreOfWhatWasSummed) {
  Graph graph = product("a", -1);
  ThreadPool pool(1);
  const Tensor input = floats({2, 4}, {1, -1, 1, -1, 2, 2, 2, 2});
  const std::vector<Tensor> magnitudes =
      summed_magnitudes(graph, registry_, std::vector{input}, pool);
  ASSERT_EQ(magnitudes.size(), 1U);
  // The true outputs are 0: the products cancelled, or Relu cut them off.
  EXPECT_EQ(magnitudes[0].as<float>()[0], 4);
  EXPECT_EQ(magnitudes[0].as<float>()[3], 8);
}

TEST_F(Magnitudes, AreToldBehindFewProductsOnly) {
  const Tensor ones = floats({1, 1}, {1});
  const Tensor minus = floats({1, 1}, {-3});
  GraphBuilder builder(registry_);
  builder.input("x", float_type(Shape{1, 1})).constant("w", minus);
  for (const auto& [from, to] : {std::pair("x", "a"), {"a", "b"}, {"b", "c"}, {"c", "d"}}) {
    builder.node(to, "MatMul", {from, "w"}).output(to);
  }
  ThreadPool pool(1);
  const std::vector<Tensor> found =
      summed_magnitudes(builder.graph(), registry_, std::vector{ones}, pool);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].as<float>()[0], 3);
  EXPECT_EQ(found[1].as<float>()[0], 9);
  EXPECT_TRUE(found[2].is_empty());
  EXPECT_TRUE(found[3].is_empty());
}

// Only results that are computed from values from outside of the group are kept for other groups.
TEST_F(Magnitudes, OfTrueValuesAreKeptForTheNextGroup) {
  const Tensor ones = floats({1, 1}, {1});
  const Tensor minus = floats({1, 1}, {-3});
  GraphBuilder builder(registry_);
  builder.input("x", float_type(Shape{1, 1})).constant("w", minus);
  builder.node("first", "MatMul", {"x", "w"}, {"a"}).node("second", "MatMul", {"a", "w"}, {"b"});
  builder.output("a").output("b");
  ThreadPool pool(1);
  KnownProducts known;
  const auto compute = [&] {
    return summed_magnitudes(builder.graph(), registry_, std::vector{ones}, pool, &known);
  };
  EXPECT_EQ(compute()[1].as<float>()[0], 9);
  ASSERT_EQ(known.by_value.size(), 1U);
  EXPECT_EQ(known.by_value.at("a").as<float>()[0], 3);
  // A changed cached value shows that the cache is used.
  known.by_value["a"] = floats({1, 1}, {5});
  EXPECT_EQ(compute()[0].as<float>()[0], 5);
  EXPECT_EQ(compute()[1].as<float>()[0], 15);
}

}  // namespace
}  // namespace tessera::tuning
