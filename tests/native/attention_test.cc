#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/tensor/tensors_test.h"
#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

struct Shape {
  Sizes batch;
  int64_t rows = 1;
  int64_t keys = 1;
  int64_t depth = 1;
  int64_t width = 1;
};

Shape random_shape(Dice& dice) {
  Shape shape;
  for (int64_t axes = dice.whole(0, 3); axes > 0; --axes) shape.batch.push_back(dice.whole(1, 3));
  const auto size = [&](int64_t most) {
    return dice.one_in(60) ? 0 : dice.one_in(8) ? 1 : dice.whole(1, most);
  };
  shape.rows = dice.whole(dice.one_in(10) ? 1 : 4, 40);
  shape.keys = dice.one_in(15) ? dice.whole(1000, 2200) : size(140);
  shape.depth = size(70);
  shape.width = dice.one_in(3) ? shape.depth : size(70);
  return shape;
}

Sizes with_matrix(Sizes batch, int64_t rows, int64_t columns) {
  batch.insert(batch.end(), {rows, columns});
  return batch;
}

class AttentionMaker {
 public:
  AttentionMaker(Dice& dice, const ops::Registry& registry)
      : dice_(dice), made_(registry, 17), shape_(random_shape(dice)) {}

  RandomGraph make() {
    made_.builder.node("scores", "MatMul",
                       {factor("q", shape_.rows, shape_.depth, true),
                        factor("k", shape_.depth, shape_.keys, true)},
                       {"s0"});
    std::string last = "s0";
    if (dice_.one_in(2)) last = scaled(last);
    if (dice_.one_in(2)) last = masked(last);
    made_.builder.node("softmax", "Softmax", {last}, {"p"});
    made_.builder.node("product", "MatMul", {"p", factor("v", shape_.keys, shape_.width, false)},
                       {"o"});
    last = "o";
    if (dice_.one_in(2)) {
      made_.builder.node("turn", "Transpose", {last}, {"t"}, order_attribute(random_order(rank())));
      last = "t";
    }
    made_.builder.output(last);
    return std::move(made_);
  }

 private:
  size_t rank() const { return shape_.batch.size() + 2; }

  Sizes random_order(size_t rank) {
    Sizes order(rank);
    for (size_t axis = 0; axis < rank; ++axis) order[axis] = static_cast<int64_t>(axis);
    for (size_t axis = rank; axis-- > 1;) {
      std::swap(order[axis],
                order[static_cast<size_t>(dice_.whole(0, static_cast<int64_t>(axis)))]);
    }
    return order;
  }

  static Attributes order_attribute(const Sizes& order) { return attributes_of({{"perm", order}}); }

  std::string scaled(const std::string& from) {
    const std::string factor = from + "_factor";
    const Sizes dims = dice_.one_in(2) ? Sizes{} : Sizes{1};
    const Tensor number = floats(dims, {dice_.number(0.3F, 2)});
    made_.constant(factor, number);
    const bool is_division = dice_.one_in(2);
    std::vector<std::string> inputs = {from, factor};
    if (!is_division && dice_.one_in(2)) std::swap(inputs[0], inputs[1]);
    made_.builder.node(from + "_scaling", is_division ? "Div" : "Mul", inputs, {from + "_scaled"});
    return from + "_scaled";
  }

  // A mask that hides whole rows and parts of rows.
  std::string masked(const std::string& from) {
    Sizes dims = with_matrix(shape_.batch, shape_.rows, shape_.keys);
    for (size_t axis = 0; axis + 1 < dims.size(); ++axis) {
      if (dice_.one_in(2)) dims[axis] = 1;
    }
    dims.erase(dims.begin(), dims.begin() + dice_.whole(0, static_cast<int64_t>(dims.size()) - 1));
    Tensor mask = dice_.tensor(dims, -2, 2);
    const std::span<float> elements = mask.mutable_as<float>();
    if (dice_.one_in(2) && mask.elements() > 0) {
      const float hidden = dice_.one_in(2) ? -kInfinity : -1e9F;
      const int64_t first = dice_.whole(0, mask.elements() - 1);
      const int64_t count = dice_.whole(1, mask.elements() - first);
      for (int64_t index = 0; index < count; ++index) {
        elements[static_cast<size_t>(first + index)] = hidden;
      }
    }
    made_.operand(dice_, "m", std::move(mask));
    std::vector<std::string> inputs = {from, "m"};
    if (dice_.one_in(2)) std::swap(inputs[0], inputs[1]);
    made_.builder.node("masking", "Add", inputs, {"masked"});
    return "masked";
  }

  // A factor [batch, rows, columns] of a product, perhaps behind Transposes and scalings, or with a
  // batch that broadcasts.
  std::string factor(const std::string& name, int64_t rows, int64_t columns, bool is_scalable) {
    Sizes dims = with_matrix(shape_.batch, rows, columns);
    if (name != "q") {
      for (size_t axis = 0; axis + 2 < dims.size(); ++axis) {
        if (dice_.one_in(5)) dims[axis] = 1;
      }
    }
    std::vector<std::pair<std::string, Sizes>> steps;
    for (int64_t count = dice_.whole(0, 2); count > 0; --count) {
      const Sizes order = random_order(dims.size());
      Sizes before(dims.size());
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        before[static_cast<size_t>(order[axis])] = dims[axis];
      }
      dims = before;
      steps.emplace_back("Transpose", order);
    }
    Tensor elements = dice_.tensor(dims, -1, 1);
    const int64_t special = dice_.whole(1, 40);
    if (special <= 2 && elements.elements() > 0) {
      const int64_t place = dice_.whole(0, elements.elements() - 1);
      elements.mutable_as<float>()[static_cast<size_t>(place)] =
          special == 1 ? kInfinity : std::numeric_limits<float>::quiet_NaN();
    }
    made_.operand(dice_, name, std::move(elements));
    std::string last = name;
    if (is_scalable && dice_.one_in(4)) last = scaled(last);
    while (!steps.empty()) {
      const std::string next = last + "_turned";
      made_.builder.node(next, "Transpose", {last}, order_attribute(steps.back().second));
      steps.pop_back();
      last = next;
    }
    if (is_scalable && dice_.one_in(4)) last = scaled(last);
    return last;
  }

  Dice& dice_;
  RandomGraph made_;
  Shape shape_;
};

RandomGraph attention(Dice& dice, const ops::Registry& registry) {
  return AttentionMaker(dice, registry).make();
}

// Scores are sums of up to 70 products, whose rounding errors are those of exponents.
constexpr Tolerance kTolerance = {.relative = 1e-5, .of_largest = 2e-5};

TEST(NativeAttention, EqualsItsNodes) {
  const Totals totals = check_each_target(211, 600, attention, kTolerance);
  EXPECT_GE(totals.answered, 600);
  // Up to seven Transposes, two products, scale, mask, Softmax.
  EXPECT_GE(totals.largest, 11U);
}

// Scores of the queries as they are would be infinite.
RandomGraph scaled_first(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  made.input("q", dice.tensor({2, 9, 8}, -1e20F, 1e20F));
  made.input("k", dice.tensor({2, 8, 11}, -1e20F, 1e20F));
  made.input("v", dice.tensor({2, 11, 5}));
  made.constant("factor", floats({}, {1e-20F}));
  made.node("scaling", "Mul", {"q", "factor"}, {"scaled"});
  made.node("scores", "MatMul", {"scaled", "k"}, {"s"});
  made.node("softmax", "Softmax", {"s"}, {"p"});
  made.node("product", "MatMul", {"p", "v"}, {"o"});
  return made.ending_in("o");
}

TEST(NativeAttention, QueriesAreScaledWhereTheModelDoes) {
  expect_answers(check_each_target(212, 5, scaled_first), 5, 3);
}

}  // namespace
}  // namespace tessera
