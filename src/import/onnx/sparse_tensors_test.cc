// Sparse constants: their formats, and the errors of corrupt ones.
#include "import/onnx/tensors.h"

#include <functional>

#include "base/errors/error_test.h"
#include "import/onnx/test_models.h"

namespace tessera::onnx_import {
namespace {

// values [count] = 1, 2, ..., at `indices` with `tuple` numbers each (0: linear).
onnx::SparseTensorProto sparse_proto(const std::vector<int64_t>& dims,
                                     const std::vector<int64_t>& indices, int64_t tuple = 0) {
  onnx::SparseTensorProto proto;
  for (const int64_t dim : dims) proto.add_dims(dim);
  const int64_t stored = static_cast<int64_t>(indices.size()) / std::max<int64_t>(1, tuple);
  proto.mutable_values()->set_name("w");
  proto.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
  proto.mutable_values()->add_dims(stored);
  for (int64_t at = 0; at < stored; ++at) {
    proto.mutable_values()->add_float_data(static_cast<float>(at + 1));
  }
  proto.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
  proto.mutable_indices()->add_dims(stored);
  if (tuple > 0) proto.mutable_indices()->add_dims(tuple);
  for (const int64_t index : indices) proto.mutable_indices()->add_int64_data(index);
  return proto;
}

onnx::ModelProto model_with(const onnx::SparseTensorProto& proto) {
  onnx::ModelProto model = make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2});
  *graph.add_sparse_initializer() = proto;
  add_node(graph, "Add", {"x", "w"}, {"y"}, "add");
  add_output(graph, "y");
  return model;
}

Value imported(const onnx::SparseTensorProto& proto) {
  const Graph graph = import(model_with(proto)).graph;
  return graph[find_value(graph, "w")];
}

TEST(SparseConstants, OfMatricesAreCsr) {
  for (const bool is_linear : {true, false}) {
    const Value value = imported(is_linear ? sparse_proto({3, 4}, {1, 3, 8})
                                           : sparse_proto({3, 4}, {0, 1, 0, 3, 2, 0}, 2));
    ASSERT_TRUE(value.sparse_constant);
    EXPECT_EQ(value.sparse_constant->format(), SparseFormat::Csr);
    EXPECT_THAT(value.sparse_constant->row_offsets(), ElementsAre(0, 2, 2, 3));
    EXPECT_THAT(value.sparse_constant->columns(), ElementsAre(1, 3, 0));
    EXPECT_EQ(text(value.type), "float32 3x4");
    // A small one has dense elements for passes too.
    EXPECT_THAT(value.constant.as<float>(), ElementsAre(0, 1, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0));
  }
}

TEST(SparseConstants, OfWholeRowsOrOtherRanksAreRowSparse) {
  const Value rows = imported(sparse_proto({4, 2}, {2, 3, 6, 7}));
  EXPECT_EQ(rows.sparse_constant->format(), SparseFormat::RowSparse);
  EXPECT_THAT(rows.sparse_constant->rows(), ElementsAre(1, 3));
  const Value nothing = imported(sparse_proto({4, 2}, {}));
  EXPECT_EQ(nothing.sparse_constant->format(), SparseFormat::RowSparse);
  EXPECT_EQ(nothing.sparse_constant->stored(), 0);
  const Value cube = imported(sparse_proto({2, 2, 2}, {1, 0, 1, 1, 1, 0}, 3));
  EXPECT_EQ(cube.sparse_constant->format(), SparseFormat::RowSparse);
  EXPECT_THAT(cube.constant.as<float>(), ElementsAre(0, 0, 0, 0, 0, 1, 2, 0));
  const Value list = imported(sparse_proto({5}, {1, 4}));
  EXPECT_THAT(list.constant.as<float>(), ElementsAre(0, 1, 0, 0, 2));
}

TEST(SparseConstants, LargeOnesStaySparse) {
  const Value value = imported(sparse_proto({1000, 1000000000}, {5, 999999999999}));
  EXPECT_FALSE(value.constant.has_elements());
  EXPECT_TRUE(value.is_constant());
  EXPECT_EQ(value.sparse_constant->stored(), 2);
  EXPECT_LT(value.sparse_constant->storage().bytes(), 20000);
}

TEST(SparseConstants, OfConstantNodesAreConstantsOfTheGraph) {
  onnx::ModelProto model = make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2});
  auto& attribute = *add_node(graph, "Constant", {}, {"w"}, "constant").add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  *attribute.mutable_sparse_tensor() = sparse_proto({3, 4}, {1});
  add_node(graph, "Add", {"x", "w"}, {"y"}, "add");
  add_output(graph, "y");
  const Graph made = import(model).graph;
  EXPECT_EQ(made.nodes.size(), 1U);
  EXPECT_EQ(made[find_value(made, "w")].sparse_constant->stored(), 1);
  attribute.mutable_sparse_tensor()->mutable_indices()->set_int64_data(0, 12);
  EXPECT_THAT(error_of([&] { import(model); }),
              HasSubstr("InvalidModel: node 'constant' (Constant), attribute 'sparse_value': "
                        "expected indices of 0 to 11, found 12"));
}

TEST(SparseConstants, DamagedOnesSayWhereAndWhat) {
  using Proto = onnx::SparseTensorProto;
  const struct {
    std::function<void(Proto&)> damage;
    const char* says;
  } cases[] = {
      {[](Proto& p) { p.mutable_indices()->set_int64_data(2, 12); },
       "expected indices of 0 to 11, found 12 for stored element 2"},
      {[](Proto& p) { p.mutable_indices()->set_int64_data(0, -1); }, "found -1 for stored"},
      {[](Proto& p) { p.mutable_indices()->set_int64_data(1, 1); },
       "ascending indices without repetition, found 1 after 1"},
      {[](Proto& p) { p.mutable_indices()->set_int64_data(1, 9); }, "found 8 after 9"},
      {[](Proto& p) { p.mutable_indices()->set_dims(0, 2); }, "indices: expected 2 elements"},
      {[](Proto& p) { p.mutable_indices()->add_dims(1); },
       "expected indices of int64 3 or 3x2, found int64 3x1"},
      {[](Proto& p) { p.clear_indices(); }, "indices: expected a data type"},
      {[](Proto& p) { p.mutable_values()->add_dims(1); }, "expected values in one dimension"},
      {[](Proto& p) { p.clear_dims(); }, "expected 1 to 64 dimensions, found 0"},
      {[](Proto& p) { p.set_dims(0, -3); }, "expected dimensions of at least 0"},
      {[](Proto& p) {
         p.set_dims(0, int64_t{1} << 40);
         p.set_dims(1, int64_t{1} << 40);
       },
       "exceeds 64 bits"},
      {[](Proto& p) { p.set_dims(0, int64_t{1} << 50); }, "Unsupported"},
      {[](Proto& p) { p.mutable_values()->set_data_type(onnx::TensorProto::STRING); },
       "expected strings in string_data"},
      {[](Proto& p) {
         onnx::TensorProto& values = *p.mutable_values();
         values.set_data_type(onnx::TensorProto::STRING);
         values.clear_raw_data();
         values.clear_float_data();
         for (int index = 0; index < 3; ++index) values.add_string_data("a");
       },
       "sparse tensors of strings are not supported"},
  };
  for (const auto& [damage, says] : cases) {
    Proto proto = sparse_proto({3, 4}, {1, 3, 8});
    damage(proto);
    const std::string error = error_of([&] { imported(proto); });
    EXPECT_THAT(error, HasSubstr(says));
    EXPECT_THAT(error, HasSubstr("sparse initializer 'w'"));
  }
  Proto tuples = sparse_proto({3, 4}, {0, 1, 0, 4}, 2);
  EXPECT_THAT(error_of([&] { imported(tuples); }),
              HasSubstr("expected indices of 0 to 3 for axis 1, found 4 for stored element 1"));
}

}  // namespace
}  // namespace tessera::onnx_import
