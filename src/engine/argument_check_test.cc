#include "engine/argument_check.h"

#include "base/tensor/tensors_test.h"
#include "engine/interpreter.h"
#include "infer/infer.h"
#include "ops/graph_test.h"

namespace tessera {
namespace {

Type float_type(std::vector<Dim> dims) {
  return Type::tensor(DataType::Float32, Shape(dims.begin(), dims.end()));
}
Type list_type(int64_t length) { return Type::tensor(DataType::Int64, Shape{length}); }

Tensor ones(std::vector<int64_t> dims) {
  Tensor tensor(DataType::Float32, std::move(dims));
  for (float& element : tensor.mutable_as<float>()) element = 1;
  return tensor;
}

Tensor flags(const std::vector<uint8_t>& values) {
  Tensor tensor(DataType::Bool, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), static_cast<uint8_t*>(tensor.mutable_data()));
  return tensor;
}

Attributes zero_axis() { return attributes_of({{"axis", 0}}); }

class ArgumentChecks : public testing::Test {
 protected:
  Graph typed() const { return infer_types(builder_.graph(), all_ops(), Log()); }

  bool is_checked(const std::string& name) const {
    const Graph graph = typed();
    for (const Node& node : graph.nodes) {
      if (node.name == name) return needs_check(graph, node, all_ops());
    }
    ADD_FAILURE() << "no node " << name;
    return false;
  }

  // `condition` selects rows of `x`, so their number is known only in the run.
  void add_rows(std::vector<Dim> dims) {
    builder_.input("x", float_type(std::move(dims)));
    builder_.input("condition", Type::tensor(DataType::Bool, Shape{4}));
    builder_.node("pick", "Compress", {"x", "condition"}, {"rows"}, zero_axis());
  }

  void expect_refused(std::vector<Tensor> inputs, const std::string& where,
                      const std::string& message) {
    Interpreter interpreter(typed(), all_ops(), 1);
    const auto error = thrown_by([&] { interpreter.run(inputs); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::InvalidArgument);
    EXPECT_EQ(error->where(), where);
    EXPECT_THAT(error->message(), HasSubstr(message));
  }

  GraphBuilder builder_{all_ops()};
};

TEST_F(ArgumentChecks, NodesOfKnownSizesNeedNone) {
  builder_.input("x", float_type({2, 3})).input("y", float_type({3, 4}));
  builder_.input("indices", Type::tensor(DataType::Int64, Shape{2, 5}));
  builder_.input("ids", list_type(3)).constant("axes", ints({0}));
  builder_.node("product", "MatMul", {"x", "y"}, {"a"});
  builder_.node("gather", "Gather", {"x", "indices"}, {"b"});
  builder_.node("add", "Add", {"ids", "ids"}, {"c"});
  builder_.node("copy", "Identity", {"ids"}, {"d"});
  builder_.node("sum", "ReduceSum", {"x", "axes"}, {"e"});
  for (const char* name : {"product", "gather", "add", "copy", "sum"}) {
    EXPECT_FALSE(is_checked(name)) << name;
  }
}

TEST_F(ArgumentChecks, ListsThatDecideSizesNeedOne) {
  builder_.input("x", float_type({2, 3})).input("two", list_type(2));
  builder_.input("one", list_type(1));
  builder_.input("axis", Type::tensor(DataType::Int64, Shape{}));
  // The result is a scalar for any legal axes.
  builder_.node("sum", "ReduceSum", {"x", "two"}, {"a"}, attributes_of({{"keepdims", 0}}));
  builder_.node("reshape", "Reshape", {"x", "two"}, {"b"});
  builder_.node("running", "CumSum", {"x", "axis"}, {"c"});
  builder_.node("top", "TopK", {"x", "one"}, {"d", "e"});
  for (const char* name : {"sum", "reshape", "running", "top"}) {
    EXPECT_TRUE(is_checked(name)) << name;
  }
}

TEST_F(ArgumentChecks, SizesThatOnlyTheModelDeclaresNeedOne) {
  builder_.input("x", float_type({2, 3}));
  builder_.node("places", "NonZero", {"x"}, {"found"});
  builder_.declare("found", Type::tensor(DataType::Int64, Shape{2, 6}));
  builder_.output("found");
  EXPECT_TRUE(is_checked("places"));
  Tensor x = ones({2, 3});
  Interpreter(typed(), all_ops(), 1).run(std::vector<Tensor>{x});
  x.mutable_as<float>()[4] = 0;
  expect_refused({x}, "node 'places' (NonZero), output 'found'", "found int64 2x5");
}

TEST_F(ArgumentChecks, AnAxisFromTheCallerIsHeldAgainstTheRank) {
  builder_.input("x", float_type({2, 3})).input("axes", list_type(2));
  builder_.node("sum", "ReduceSum", {"x", "axes"}, {"y"}, attributes_of({{"keepdims", 0}}));
  builder_.output("y");
  const std::string where = "node 'sum' (ReduceSum)";
  expect_refused({ones({2, 3}), ints({0, int64_t{1} << 33})}, where, "found 8589934592");
  expect_refused({ones({2, 3}), ints({0, 0})}, where, "found axis 0 twice");
  const std::vector<Tensor> good = {ones({2, 3}), ints({0, 1})};
  EXPECT_EQ(Interpreter(typed(), all_ops(), 1).run(good)[0].as<float>()[0], 6);
}

TEST_F(ArgumentChecks, ASizeThatOnlyRunningShowsIsHeldAgainstTheOthers) {
  add_rows({4, 3});
  builder_.input("other", float_type({2, 3}));
  builder_.node("add", "Add", {"rows", "other"}, {"sum"}).output("sum");
  EXPECT_TRUE(is_checked("add"));
  const Tensor x = ones({4, 3});
  expect_refused({x, flags({1, 1, 1, 0}), ones({2, 3})}, "node 'add' (Add), input 'B'",
                 "found 2x3");
  Interpreter interpreter(typed(), all_ops(), 1);
  for (const auto& condition : {flags({1, 1, 0, 0}), flags({0, 0, 0, 1})}) {
    const std::vector<Tensor> inputs = {x, condition, ones({2, 3})};
    EXPECT_EQ(interpreter.run(inputs)[0].dims(), (std::vector<int64_t>{2, 3}));
  }
}

// Buffers without data that refer to `dims`.
std::vector<tessera_buffer> matrices(const std::vector<std::vector<int64_t>>& dims) {
  std::vector<tessera_buffer> buffers(dims.size());
  for (size_t index = 0; index < dims.size(); ++index) {
    buffers[index].data_type = static_cast<int32_t>(DataType::Float32);
    buffers[index].rank = 2;
    buffers[index].dims = dims[index].data();
  }
  return buffers;
}

TEST_F(ArgumentChecks, AGroupIsCheckedNodeByNode) {
  add_rows({4, 3});
  builder_.input("weight", float_type({3, 3})).input("shift", float_type({2, 3}));
  builder_.node("product", "MatMul", {"rows", "weight"}, {"p"});
  builder_.node("add", "Add", {"p", "shift"}, {"y"}).output("y");
  BuiltPlan built;
  built.graph = typed();
  built.registry = &all_ops();
  Candidate group;
  group.nodes = {{2}, {1}};
  const auto value = [&](const std::string& name) {
    for (size_t index = 0; index < built.graph.values.size(); ++index) {
      if (built.graph.values[index].name == name) return ValueId{static_cast<int32_t>(index)};
    }
    return ValueId{};
  };
  ExecutionStep step;
  step.candidate = 0;
  for (const char* name : {"rows", "weight", "shift"}) {
    group.inputs.push_back({value(name), kDefaultLayout});
    step.inputs.push_back(static_cast<int>(built.plan.buffers.size()));
    built.plan.buffers.push_back({.value = value(name), .layout = kDefaultLayout});
  }
  built.offers.candidates.push_back(std::move(group));
  const auto check = ArgumentCheck::of(built, step);
  ASSERT_NE(check, nullptr);
  const auto run_with = [&](int64_t rows) {
    const std::vector<std::vector<int64_t>> dims = {{rows, 3}, {3, 3}, {2, 3}};
    check->run(matrices(dims));
  };
  run_with(2);
  run_with(1);
  const auto error = thrown_by([&] { run_with(3); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::InvalidArgument);
  EXPECT_EQ(error->where(), "node 'add' (Add), input 'B'");
}

}  // namespace
}  // namespace tessera
