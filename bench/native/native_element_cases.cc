// Elementwise functions of one operand and more, with and without broadcasting, and several in one
// pass.
#include <utility>

#include "native_case.h"

namespace tessera::bench {
namespace {

BandwidthCase function(const std::string& op, double low = -3, double high = 3) {
  return {.name = op, .make = [=](CaseGraph& graph, int64_t bytes) {
            graph.input("x", kFloat, dims_of(bytes, 4), low, high);
            graph.node(op, {"x"}, {"y"}).output("y");
          }};
}

// Both operands with the sizes `left` and `right`, whose first size is chosen by the number of
// bytes.
BandwidthCase pair(const std::string& name, const std::string& op, std::vector<int64_t> inner,
                   std::vector<int64_t> right, const std::string& layout = "row_major",
                   DataType type = kFloat) {
  return {.name = name,
          .make =
              [=](CaseGraph& graph, int64_t bytes) {
                const std::vector<int64_t> dims = dims_of(bytes, element_bytes(type), inner);
                std::vector<int64_t> other = right;
                for (size_t axis = 0; axis < other.size(); ++axis) {
                  if (other[axis] < 0) other[axis] = dims[dims.size() - other.size() + axis];
                }
                graph.input("x", type, dims, 1, 9).input("y", type, other, 1, 9);
                graph.node(op, {"x", "y"}, {"z"}).output("z");
              },
          .layout = layout};
}

BandwidthCase cast(const std::string& name, DataType from, int64_t to) {
  return {.name = name, .make = [=](CaseGraph& graph, int64_t bytes) {
            graph.input("x", from, dims_of(bytes, element_bytes(from)), 0, 100);
            Attributes attributes;
            attributes.set("to", to);
            graph.node("Cast", {"x"}, {"y"}, attributes).output("y");
          }};
}

BandwidthCase where(const std::string& name, std::vector<int64_t> inner,
                    std::vector<int64_t> condition) {
  return {.name = name, .make = [=](CaseGraph& graph, int64_t bytes) {
            const std::vector<int64_t> dims = dims_of(bytes, 4, inner);
            const std::vector<int64_t> mask = condition.empty() ? dims : condition;
            graph.input("c", DataType::Bool, mask, 0, 1.9);
            graph.input("x", kFloat, dims).input("y", kFloat, {});
            graph.node("Where", {"c", "x", "y"}, {"z"}).output("z");
          }};
}

BandwidthCase in_place(BandwidthCase given) {
  given.name += " in place";
  given.is_in_place = true;
  return given;
}

// x * clip(x + 3, 0, 6) / 6, as old exporters decompose HardSwish.
void hard_swish(CaseGraph& graph, int64_t bytes) {
  const auto number = [&](const std::string& name, float value) {
    graph.constant(name, Tensor::from<float>(kFloat, {}, std::span(&value, 1)));
  };
  number("three", 3);
  number("zero", 0);
  number("six", 6);
  graph.input("x", kFloat, dims_of(bytes, 4), -5, 5).node("Add", {"x", "three"}, {"a"});
  graph.node("Clip", {"a", "zero", "six"}, {"b"}).node("Mul", {"x", "b"}, {"c"});
  graph.node("Div", {"c", "six"}, {"d"}).output("d");
}

void swish(CaseGraph& graph, int64_t bytes) {
  graph.input("x", kFloat, dims_of(bytes, 4), -5, 5).node("Sigmoid", {"x"}, {"s"});
  graph.node("Mul", {"x", "s"}, {"y"}).output("y");
}

void add_relu(CaseGraph& graph, int64_t bytes) {
  const std::vector<int64_t> dims = dims_of(bytes, 4);
  graph.input("x", kFloat, dims, -5, 5).input("y", kFloat, dims, -5, 5);
  graph.node("Add", {"x", "y"}, {"s"}).node("Relu", {"s"}, {"z"}).output("z");
}

void add_broadcasts(std::vector<BandwidthCase>& cases) {
  cases.push_back(pair("Mul by one number", "Mul", {}, {}));
  cases.push_back(pair("Add to each row [R,768]+[768]", "Add", {768}, {768}));
  cases.push_back(pair("Add to each row [R,3]+[3]", "Add", {3}, {3}));
  cases.push_back(pair("Mul of each row [R,768]*[R,1]", "Mul", {768}, {-1, 1}));
  cases.push_back(pair("Mul of each row [R,7]*[R,1]", "Mul", {7}, {-1, 1}));
  for (const char* layout : {"row_major", "nhwc", "nchw16c"}) {
    cases.push_back(pair(std::string("Mul by channels [N,64,28,28] ") + layout, "Mul", {64, 28, 28},
                         {-1, 64, 1, 1}, layout));
  }
  cases.push_back(
      pair("Mul by pixels [N,64,28,28] nhwc", "Mul", {64, 28, 28}, {-1, 1, 28, 28}, "nhwc"));
}

void add_casts(std::vector<BandwidthCase>& cases) {
  cases.push_back(cast("Cast float32 to float16", kFloat, 10));
  cases.push_back(cast("Cast float16 to float32", DataType::Float16, 1));
  cases.push_back(cast("Cast float32 to bfloat16", kFloat, 16));
  cases.push_back(cast("Cast float32 to int32", kFloat, 6));
  cases.push_back(cast("Cast float32 to int64", kFloat, 7));
  cases.push_back(cast("Cast int64 to float32", DataType::Int64, 1));
  cases.push_back(cast("Cast int64 to int32", DataType::Int64, 6));
  cases.push_back(cast("Cast uint8 to float32", DataType::UInt8, 1));
  cases.push_back(cast("Cast bool to float32", DataType::Bool, 1));
}

}  // namespace

std::vector<BandwidthCase> element_cases() {
  std::vector<BandwidthCase> cases;
  for (const char* op :
       {"Relu",      "Abs",      "Neg",      "Reciprocal", "Sqrt",    "Floor", "HardSwish",
        "LeakyRelu", "Softsign", "Exp",      "Tanh",       "Sigmoid", "Erf",   "Gelu",
        "Elu",       "Selu",     "Softplus", "Mish",       "Sin",     "Cos",   "Tan",
        "Atan",      "Asin",     "Sinh",     "Identity"}) {
    cases.push_back(function(op));
  }
  cases.push_back(function("Log", 0.1, 10));
  cases.push_back(in_place(function("Relu")));
  cases.push_back(in_place(function("Sigmoid")));
  const auto same = [](const std::string& op, DataType type = kFloat) {
    return pair(op + " " + std::string(name(type)), op, {}, {-1}, "row_major", type);
  };
  for (const char* op : {"Add", "Mul", "Div", "Max", "Less", "Equal", "Pow"}) {
    cases.push_back(same(op));
  }
  cases.push_back(in_place(same("Add")));
  cases.push_back(same("Add", DataType::Int64));
  cases.push_back(same("Add", DataType::Int32));
  cases.push_back(same("Mul", DataType::Int64));
  cases.push_back(same("Equal", DataType::Int64));
  cases.push_back(same("Div", DataType::Int64));
  add_broadcasts(cases);
  cases.push_back(where("Where(mask, x, number)", {}, {}));
  cases.push_back(where("Where([S,S], [H,S,S], number)", {256, 256}, {256, 256}));
  add_casts(cases);
  cases.push_back({.name = "Add, Relu in one pass", .make = add_relu});
  cases.push_back({.name = "Sigmoid, Mul in one pass", .make = swish});
  cases.push_back({.name = "Add, Clip, Mul, Div in one pass", .make = hard_swish});
  return cases;
}

}  // namespace tessera::bench
