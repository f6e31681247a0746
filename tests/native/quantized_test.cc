// Ops on quantised tensors: alone, as regions between DequantizeLinear and QuantizeLinear, and
// those of com.microsoft.

#include <algorithm>
#include <string>
#include <vector>

#include "base/tensor/tensors_test.h"
#include "each_target.h"
#include "random_elements.h"

namespace tessera {
namespace {

// Fused kernels may decide otherwise where a number is near the middle between two integers.
const Tolerance kOneQuantum = {.quanta = 1};

constexpr int kQuantizedOpset = 21;

Tensor random_bytes(Dice& dice, DataType type, std::vector<int64_t> dims) {
  Tensor made(type, std::move(dims));
  auto* const bytes = static_cast<uint8_t*>(made.mutable_data());
  for (int64_t index = 0; index < made.bytes(); ++index) {
    bytes[index] = static_cast<uint8_t>(dice.whole(0, 255));
  }
  return made;
}

// Often one at which sums are in the middle between two integers.
Tensor random_scales(Dice& dice, std::vector<int64_t> dims) {
  Tensor made(DataType::Float32, std::move(dims));
  for (float& scale : made.mutable_as<float>()) {
    scale = dice.one_in(4) ? 0.25F : dice.number(0.005F, 0.3F);
  }
  return made;
}

// A graph whose values of bytes have scales and zero points, which are constants.
struct BytesGraph {
  BytesGraph(Dice& given, const ops::Registry& registry)
      : dice(given),
        made(registry, kQuantizedOpset),
        type(given.one_in(2) ? DataType::Int8 : DataType::UInt8) {}

  // The names of a new scale and a new zero point.
  std::vector<std::string> scale(std::vector<int64_t> dims = {}) {
    const std::string suffix = std::to_string(++count);
    made.constant("s" + suffix, random_scales(dice, dims));
    made.constant("z" + suffix, random_bytes(dice, type, std::move(dims)));
    return {"s" + suffix, "z" + suffix};
  }
  // A new input of bytes.
  std::string bytes(std::vector<int64_t> dims) {
    const std::string name = "x" + std::to_string(++count);
    made.input(name, random_bytes(dice, type, std::move(dims)));
    return name;
  }
  // A new input of bytes as real numbers.
  std::string real(std::vector<int64_t> dims) { return dequantized(bytes(std::move(dims))); }

  std::string dequantized(const std::string& name) {
    const std::string result = "d" + std::to_string(++count);
    const std::vector<std::string> scales = scale();
    made.node(result, "DequantizeLinear", {name, scales[0], scales[1]});
    return result;
  }
  // `name`, perhaps limited, as bytes, which are the output.
  RandomGraph ending_quantised(std::string name, bool may_be_limited = true) {
    if (may_be_limited && dice.one_in(3)) {
      made.node("limited", "Relu", {name});
      name = "limited";
    } else if (may_be_limited && dice.one_in(4)) {
      made.constant("low", floats({}, {-1}));
      made.constant("high", floats({}, {3}));
      made.node("limited", "Clip", {name, "low", "high"});
      name = "limited";
    }
    const std::vector<std::string> scales = scale();
    made.node("y", "QuantizeLinear", {name, scales[0], scales[1]});
    return made.ending_in("y");
  }

  Dice& dice;
  RandomGraph made;
  DataType type;
  int count = 0;
};

DataType random_integer_type(Dice& dice) {
  const std::vector<DataType> types = {DataType::Int8, DataType::UInt8, DataType::Int16,
                                       DataType::UInt16};
  return dice.pick(types);
}

TEST(NativeQuantized, IntegersOfNumbers) {
  const Totals totals = check_each_target(61, 1500, [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, kQuantizedOpset);
    const std::vector<int64_t> dims = random_dims(dice);
    made.input("x", random_elements(dice, DataType::Float32, dims, {-90, 90, dice.one_in(3)}));
    const bool is_per_axis = !dims.empty() && dice.one_in(2);
    const int64_t axis = dims.empty() ? 0 : dice.whole(0, static_cast<int64_t>(dims.size()) - 1);
    const std::vector<int64_t> scales = is_per_axis
                                            ? std::vector<int64_t>{dims[static_cast<size_t>(axis)]}
                                            : std::vector<int64_t>{};
    made.operand(dice, "scale", random_scales(dice, scales));
    std::vector<std::string> inputs = {"x", "scale"};
    if (dice.one_in(4)) {
      made.node("y", "QuantizeLinear", inputs, attributes_of({{"axis", axis}}));
    } else {
      const DataType type = random_integer_type(dice);
      made.operand(dice, "zero", random_elements(dice, type, scales, {-20, 100, dice.one_in(2)}));
      made.node("y", "QuantizeLinear", {"x", "scale", "zero"}, attributes_of({{"axis", axis}}));
    }
    return made.ending_in("y");
  });
  EXPECT_GE(totals.answered, 1500);
}

TEST(NativeQuantized, NumbersOfIntegers) {
  const Totals totals = check_each_target(
      62, 1500,
      [](Dice& dice, const ops::Registry& registry) {
        RandomGraph made(registry, kQuantizedOpset);
        const std::vector<int64_t> dims = random_dims(dice);
        const DataType type = dice.one_in(5) ? DataType::Int32 : random_integer_type(dice);
        made.input("x", random_elements(dice, type, dims, {-120, 120, true}));
        const bool is_per_axis = !dims.empty() && dice.one_in(2);
        const int64_t axis =
            dims.empty() ? 0 : dice.whole(0, static_cast<int64_t>(dims.size()) - 1);
        const std::vector<int64_t> scales =
            is_per_axis ? std::vector<int64_t>{dims[static_cast<size_t>(axis)]}
                        : std::vector<int64_t>{};
        made.operand(dice, "scale", random_scales(dice, scales));
        std::vector<std::string> inputs = {"x", "scale"};
        if (dice.one_in(2)) {
          made.operand(dice, "zero", random_elements(dice, type, scales, {-20, 100, true}));
          inputs.push_back("zero");
        }
        made.node("y", "DequantizeLinear", inputs, attributes_of({{"axis", axis}}));
        return made.ending_in("y");
      },
      {.relative = 1.2e-7, .of_largest = 0});
  EXPECT_GE(totals.answered, 1500);
}

// So large that results are streamed past the caches.
TEST(NativeQuantized, LargeTensors) {
  const Totals totals = check_each_target(
      63, 12,
      [](Dice& dice, const ops::Registry& registry) {
        BytesGraph graph(dice, registry);
        const std::vector<int64_t> dims = {dice.whole(1500, 1510), dice.whole(1501, 1510)};
        if (dice.one_in(2)) {
          graph.made.node("y", "Neg", {graph.real(dims)});
          return graph.made.ending_in("y");
        }
        graph.made.input("r", random_elements(dice, DataType::Float32, dims, {-9, 9}));
        return graph.ending_quantised("r");
      },
      {.relative = 1.2e-7, .of_largest = 0});
  EXPECT_GE(totals.answered, 12);
}

TEST(NativeQuantized, RangesOfNumbers) {
  const Totals totals = check_each_target(64, 400, [](Dice& dice, const ops::Registry& registry) {
    RandomGraph made(registry, kQuantizedOpset);
    const std::vector<ElementRange> ranges = {{-3, 3}, {1, 9}, {-9, -1}, {0, 0}};
    made.input("x", random_elements(dice, DataType::Float32, random_dims(dice), dice.pick(ranges)));
    made.node("n", "DynamicQuantizeLinear", {"x"}, {"y", "s", "z"});
    made.builder.output("y");
    if (dice.one_in(2)) made.builder.output("s");
    return made.ending_in("z");
  });
  EXPECT_GE(totals.answered, 400);
}

TEST(NativeQuantized, FunctionsBetweenIntegers) {
  const Totals totals = check_each_target(
      65, 1000,
      [](Dice& dice, const ops::Registry& registry) {
        static const std::vector<std::string> kOps = {"Abs",       "Elu",  "Erf",  "HardSwish",
                                                      "LeakyRelu", "Neg",  "Relu", "Sigmoid",
                                                      "Softplus",  "Tanh", "Gelu"};
        BytesGraph graph(dice, registry);
        std::string name = graph.real(random_dims(dice));
        const int64_t count = dice.whole(0, 3);
        for (int64_t number = 0; number < count; ++number) {
          const std::string next = "f" + std::to_string(number);
          graph.made.node(next, dice.pick(kOps), {name});
          name = next;
        }
        return graph.ending_quantised(name);
      },
      kOneQuantum);
  EXPECT_GE(totals.answered, 1000);
  EXPECT_GE(totals.largest, 5U);
}

TEST(NativeQuantized, SumsAndProducts) {
  const Totals totals = check_each_target(
      66, 1500,
      [](Dice& dice, const ops::Registry& registry) {
        BytesGraph graph(dice, registry);
        const std::vector<int64_t> dims = random_dims(dice);
        const std::string left = graph.real(dims);
        const std::string right = dice.one_in(8) ? left : graph.real(broadcastable(dice, dims));
        const bool is_swapped = dice.one_in(2);
        static const std::vector<std::string> kOps = {"Add", "Mul", "Sum"};
        graph.made.node("sum", dice.pick(kOps),
                        {is_swapped ? right : left, is_swapped ? left : right});
        return graph.ending_quantised("sum");
      },
      kOneQuantum);
  EXPECT_GE(totals.answered, 1500);
  EXPECT_GE(totals.largest, 5U);
}

TEST(NativeQuantized, PoolingsOfIntegers) {
  const Totals totals = check_each_target(
      67, 1500,
      [](Dice& dice, const ops::Registry& registry) {
        BytesGraph graph(dice, registry);
        const int64_t rank = dice.whole(1, 3);
        std::vector<int64_t> dims = {dice.whole(1, 2), dice.whole(1, 20)};
        Attributes attributes;
        std::vector<int64_t> kernel;
        std::vector<int64_t> strides;
        std::vector<int64_t> pads(static_cast<size_t>(2 * rank));
        for (int64_t axis = 0; axis < rank; ++axis) {
          kernel.push_back(dice.whole(1, 4));
          strides.push_back(dice.whole(1, 3));
          dims.push_back(kernel.back() + dice.whole(0, rank == 1 ? 600 : 20));
          for (const int64_t end : {axis, rank + axis}) {
            pads[static_cast<size_t>(end)] = dice.whole(0, kernel.back() - 1);
          }
        }
        const bool is_max = dice.one_in(3);
        const bool is_global = !is_max && dice.one_in(3);
        if (!is_global) {
          attributes = attributes_of({{"kernel_shape", kernel}, {"strides", strides}});
          if (dice.one_in(2)) attributes.set("pads", pads);
          if (dice.one_in(3)) attributes.set("ceil_mode", int64_t{1});
          if (!is_max && dice.one_in(2)) attributes.set("count_include_pad", int64_t{1});
        }
        if (is_max) {
          graph.made.node("y", "MaxPool", {graph.bytes(dims)}, attributes);
          return graph.made.ending_in("y");
        }
        graph.made.node("p", is_global ? "GlobalAveragePool" : "AveragePool", {graph.real(dims)},
                        attributes);
        return graph.ending_quantised("p");
      },
      kOneQuantum);
  EXPECT_GE(totals.answered, 1500);
}

TEST(NativeQuantized, RowsOfProbabilities) {
  const Totals totals = check_each_target(
      68, 500,
      [](Dice& dice, const ops::Registry& registry) {
        BytesGraph graph(dice, registry);
        std::vector<int64_t> dims = random_dims(dice);
        if (dims.empty()) dims = {3};
        if (dice.one_in(3)) dims.back() = dice.whole(1, 700);
        graph.made.node("p", "Softmax", {graph.real(dims)});
        return graph.ending_quantised("p");
      },
      kOneQuantum);
  EXPECT_GE(totals.answered, 450);
}

TEST(NativeQuantized, PartsOfSeveralScales) {
  const Totals totals = check_each_target(
      69, 500,
      [](Dice& dice, const ops::Registry& registry) {
        BytesGraph graph(dice, registry);
        std::vector<int64_t> dims = random_dims(dice);
        if (dims.empty()) dims = {3};
        const int64_t axis = dice.whole(0, static_cast<int64_t>(dims.size()) - 1);
        std::vector<std::string> parts;
        const int64_t count = dice.whole(1, 4);
        for (int64_t part = 0; part < count; ++part) {
          dims[static_cast<size_t>(axis)] = dice.whole(0, 40);
          parts.push_back(graph.real(dims));
        }
        graph.made.node("c", "Concat", parts, attributes_of({{"axis", axis}}));
        return graph.ending_quantised("c", false);
      },
      kOneQuantum);
  EXPECT_GE(totals.answered, 500);
}

// An op of com.microsoft on one tensor, with scales and zero points of input and result.
RandomGraph linear_function(Dice& dice, const ops::Registry& registry) {
  BytesGraph graph(dice, registry);
  static const std::vector<std::string> kOps = {"QLinearSigmoid", "QLinearLeakyRelu",
                                                "QLinearSoftmax", "QLinearAveragePool",
                                                "QLinearGlobalAveragePool"};
  const std::string& op = dice.pick(kOps);
  std::vector<int64_t> dims = random_dims(dice);
  Attributes attributes;
  if (op == "QLinearSoftmax") {
    if (dims.empty()) dims = {5};
    attributes = attributes_of({{"opset", dice.one_in(2) ? 12 : 13}});
  } else if (op != "QLinearSigmoid" && op != "QLinearLeakyRelu") {
    dims = {dice.whole(1, 2), dice.whole(2, 20), dice.whole(2, 20), dice.whole(2, 20)};
    if (op == "QLinearAveragePool") attributes = attributes_of({{"kernel_shape", {2, 2}}});
    if (dice.one_in(2)) attributes.set("channels_last", int64_t{1});
  }
  const std::vector<std::string> from = graph.scale();
  const std::vector<std::string> to = graph.scale();
  graph.made.node("y", "com.microsoft." + op, {graph.bytes(dims), from[0], from[1], to[0], to[1]},
                  std::move(attributes));
  return graph.made.ending_in("y");
}

TEST(NativeQuantized, FunctionsOfMicrosoft) {
  const Totals totals = check_each_target(70, 1000, linear_function, kOneQuantum);
  EXPECT_GE(totals.answered, 900);
}

TEST(NativeQuantized, PairsOfMicrosoft) {
  const Totals totals = check_each_target(
      71, 1000,
      [](Dice& dice, const ops::Registry& registry) {
        BytesGraph graph(dice, registry);
        const std::vector<int64_t> dims = random_dims(dice);
        std::vector<std::string> inputs = {graph.bytes(dims)};
        const auto add_scale = [&] {
          for (const std::string& name : graph.scale()) inputs.push_back(name);
        };
        add_scale();
        inputs.push_back(graph.bytes(broadcastable(dice, dims)));
        add_scale();
        if (dice.one_in(3)) {
          graph.made.input("c", random_elements(dice, DataType::Bool, broadcastable(dice, dims)));
          inputs.insert(inputs.begin(), "c");
          add_scale();
          graph.made.node("y", "com.microsoft.QLinearWhere", inputs);
          return graph.made.ending_in("y");
        }
        add_scale();
        graph.made.node(
            "y", dice.one_in(2) ? "com.microsoft.QLinearAdd" : "com.microsoft.QLinearMul", inputs);
        return graph.made.ending_in("y");
      },
      kOneQuantum);
  EXPECT_GE(totals.answered, 1000);
}

TEST(NativeQuantized, ConcatOfMicrosoft) {
  const Totals totals = check_each_target(72, 300, [](Dice& dice, const ops::Registry& registry) {
    BytesGraph graph(dice, registry);
    std::vector<int64_t> dims = random_dims(dice);
    if (dims.empty()) dims = {3};
    const int64_t axis = dice.whole(0, static_cast<int64_t>(dims.size()) - 1);
    std::vector<std::string> inputs = graph.scale();
    const int64_t count = dice.whole(1, 4);
    for (int64_t part = 0; part < count; ++part) {
      dims[static_cast<size_t>(axis)] = dice.whole(0, 40);
      inputs.push_back(graph.bytes(dims));
      for (const std::string& name : graph.scale()) inputs.push_back(name);
    }
    graph.made.node("y", "com.microsoft.QLinearConcat", inputs, attributes_of({{"axis", axis}}));
    return graph.made.ending_in("y");
  });
  EXPECT_GE(totals.answered, 300);
}

}  // namespace
}  // namespace tessera
