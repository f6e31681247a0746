// A small model that holds a bit of everything, cut at every byte and with bytes flipped at random.
// Whatever comes of it either loads as a legal graph or is refused with an error that is the file's
// fault.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "graph/verify.h"
#include "import/onnx/import.h"
#include "import/onnx/test_models.h"
#include "tessera/error.h"

namespace tessera {
namespace {

using onnx::TensorProto;
using onnx_import::add_input;
using onnx_import::add_node;
using onnx_import::add_output;
using onnx_import::add_weight;

// The real ops, and stand-ins for those of the models below that are not written or cannot run.
const ops::Registry& registry() {
  static const ops::Registry result = [] {
    ops::Registry merged = ops::make_registry();
    const ops::Registry stand_ins = onnx_import::test_registry();
    for (const ops::Op* op : stand_ins.all()) {
      if (merged.find(op->domain, op->name) == nullptr) merged.add(*op);
    }
    return merged;
  }();
  return result;
}

// What is done with the bytes of one damaged model. Errors that are the model's own fault leave as
// tessera::Error; anything else fails the test.
void exercise(std::string_view bytes) {
  const Log silent([](const std::string&) {});
  const ImportedModel model = import_onnx_bytes(bytes, "/nonexistent", registry(), silent);
  ASSERT_EQ(explain_illegal(model.graph), "");
}

bool is_the_models_fault(ErrorKind kind) {
  return kind == ErrorKind::InvalidModel || kind == ErrorKind::Unsupported ||
         kind == ErrorKind::InvalidArgument || kind == ErrorKind::OutOfMemory;
}

// "" where exercise() was fine or refused `bytes` properly.
std::string explain_failure(std::string_view bytes) {
  try {
    exercise(bytes);
  } catch (const Error& error) {
    if (!is_the_models_fault(error.kind())) return error.what();
  } catch (const std::exception& error) {
    return std::string("not an Error: ") + error.what();
  }
  return {};
}

// One initializer that nothing reads, of `count` elements in the field that `fill` fills.
template <class Fill>
void add_encoded(onnx::GraphProto& graph, int type, int64_t count, const Fill& fill) {
  TensorProto& tensor = *graph.add_initializer();
  tensor.set_name("encoded_" + std::to_string(graph.initializer_size()));
  tensor.set_data_type(type);
  tensor.add_dims(count);
  for (int64_t index = 0; index < count; ++index) fill(tensor, index);
}

void add_encodings(onnx::GraphProto& graph) {
  const auto int32_data = [](TensorProto& t, int64_t i) { t.add_int32_data(static_cast<int>(i)); };
  for (const int type :
       {TensorProto::INT32, TensorProto::INT16, TensorProto::INT8, TensorProto::UINT8,
        TensorProto::UINT16, TensorProto::BOOL, TensorProto::FLOAT16, TensorProto::BFLOAT16}) {
    add_encoded(graph, type, 2, int32_data);
  }
  add_encoded(graph, TensorProto::FLOAT, 2, [](TensorProto& t, int64_t) { t.add_float_data(1); });
  add_encoded(graph, TensorProto::DOUBLE, 2, [](TensorProto& t, int64_t) { t.add_double_data(1); });
  add_encoded(graph, TensorProto::INT64, 2, [](TensorProto& t, int64_t) { t.add_int64_data(-1); });
  add_encoded(graph, TensorProto::UINT64, 2, [](TensorProto& t, int64_t) { t.add_uint64_data(1); });
}

void add_function(onnx::ModelProto& model) {
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("local");
  function.set_name("twice");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("slope");
  function.add_opset_import()->set_version(13);
  add_node(function, "Relu", {"a"}, {"m"});
  auto& attribute = *add_node(function, "Elu", {"m"}, {"b"}).add_attribute();
  attribute.set_name("alpha");
  attribute.set_ref_attr_name("slope");
  attribute.set_type(onnx::AttributeProto::FLOAT);
}

// x -> Conv -> Relu -> Reshape -> a function -> y.
onnx::ModelProto plain_model() {
  onnx::ModelProto model = onnx_import::make_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, 3, 3});
  graph.mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("batch");
  add_weight(graph, "w", {2, 1, 2, 2}, 0.5F);
  auto& pads = *add_node(graph, "Conv", {"x", "w"}, {"c"}, "conv").add_attribute();
  pads.set_name("pads");
  pads.set_type(onnx::AttributeProto::INTS);
  for (int side = 0; side < 4; ++side) pads.add_ints(1);
  add_node(graph, "Relu", {"c"}, {"r"}, "relu");
  add_encoded(graph, TensorProto::INT64, 2,
              [](TensorProto& t, int64_t i) { t.add_int64_data(i == 0 ? 0 : -1); });
  graph.mutable_initializer(graph.initializer_size() - 1)->set_name("shape");
  add_node(graph, "Reshape", {"r", "shape"}, {"f"});
  onnx::NodeProto& call = add_node(graph, "twice", {"f"}, {"y"}, "call");
  call.set_domain("local");
  auto& slope = *call.add_attribute();
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.5F);
  add_output(graph, "y");
  add_function(model);
  add_encodings(graph);
  return model;
}

// The same with an If whose branches read it.
onnx::ModelProto nested_model() {
  onnx::ModelProto model = plain_model();
  onnx::GraphProto& graph = *model.mutable_graph();
  onnx_import::set_type(*graph.add_input(), "c0", {}, TensorProto::BOOL);
  onnx::NodeProto& node = add_node(graph, "If", {"c0"}, {"z"}, "if");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    add_weight(*attribute.mutable_g(), "k", {1});
    add_node(*attribute.mutable_g(), "Add", {"y", "k"}, {"s"});
    add_output(*attribute.mutable_g(), "s");
  }
  add_output(graph, "z");
  return model;
}

class ImportFuzz : public testing::TestWithParam<onnx::ModelProto (*)()> {
 protected:
  const std::string bytes_ = GetParam()().SerializeAsString();
};

TEST_P(ImportFuzz, WholeModelIsUnderstood) {
  try {
    exercise(bytes_);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("control flow is understood"));
  }
}

TEST_P(ImportFuzz, CutAtEveryByte) {
  for (size_t length = 0; length < bytes_.size(); ++length) {
    // A copy of its own, so that a sanitizer sees each read behind the end.
    const std::string cut(bytes_, 0, length);
    ASSERT_EQ(explain_failure(cut), "") << "cut at byte " << length;
  }
}

TEST_P(ImportFuzz, FlippedBytes) {
  constexpr int kAttempts = 10000;
  std::mt19937 random(20240607);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string damaged = bytes_;
    // Mostly one byte; sometimes more, so that two wrongs may make a right.
    const int flips = 1 + (attempt % 4 == 3 ? static_cast<int>(random() % 4) : 0);
    for (int flip = 0; flip < flips; ++flip) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    }
    ASSERT_EQ(explain_failure(damaged), "") << "attempt " << attempt;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ImportFuzz, testing::Values(plain_model, nested_model),
                         [](const auto& model) { return model.index == 0 ? "Plain" : "Nested"; });

}  // namespace
}  // namespace tessera
