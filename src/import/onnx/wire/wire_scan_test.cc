#include "import/onnx/wire/wire_scan.h"

#include "import/onnx/test_models.h"

namespace tessera::onnx_import {
namespace {

TEST(WireScan, CutsElementsOutAndSaysWhereTheyAre) {
  onnx::ModelProto model = relu_model();
  add_weight(*model.mutable_graph(), "w", {1000});
  const std::string bytes = model.SerializeAsString();
  const ByteSource source = ByteSource::over(bytes);
  const auto scanned = scan_model(source);
  EXPECT_LT(scanned.message.ByteSizeLong(), 200U);
  const onnx::TensorProto& tensor = scanned.message.graph().initializer(0);
  EXPECT_EQ(tensor.name(), "w");
  ASSERT_EQ(payload_index(tensor), 0);
  ASSERT_EQ(scanned.payloads[0].size(), 1U);
  const Segment& segment = scanned.payloads[0][0];
  EXPECT_EQ(segment.bytes, 4000);
  EXPECT_EQ(bytes.substr(static_cast<size_t>(segment.offset), 4000),
            model.graph().initializer(0).raw_data());
}

TEST(WireScan, KeepsEverythingElse) {
  onnx::ModelProto model = relu_model();
  model.set_producer_name("somebody");
  model.mutable_graph()->mutable_node(0)->add_attribute()->set_name("a");
  const std::string bytes = model.SerializeAsString();
  const ByteSource source = ByteSource::over(bytes);
  EXPECT_EQ(scan_model(source).message.SerializeAsString(), bytes);
}

TEST(WireScan, ReadsAcrossItsWindow) {
  onnx::ModelProto model = relu_model();
  for (int index = 0; index < 5000; ++index) {
    add_node(*model.mutable_graph(), "Relu", {"x"}, {"value_" + std::to_string(index)});
  }
  const std::string bytes = model.SerializeAsString();
  const ByteSource source = ByteSource::over(bytes);
  EXPECT_EQ(scan_model(source).message.SerializeAsString(), bytes);
}

TEST(WireScan, SaysWhereBytesAreWrong) {
  struct Case {
    const char* what;
    std::string bytes;
    const char* part;
  };
  const Case cases[] = {
      {"empty", "", "found no bytes"},
      {"group", "\x0B", "wire type 3"},
      {"field 0", std::string("\x00", 1), "field 0"},
      {"length", "\x3A\x7F", "only 0 are left"},
      {"endless number", std::string("\x08") + std::string(11, '\xFF'), "more than 10 bytes"},
      {"text", "hello, I am no model", "not an ONNX"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.what);
    const ByteSource source = ByteSource::over(row.bytes);
    expect_error([&] { scan_model(source); }, ErrorKind::InvalidModel, {row.part});
  }
}

TEST(WireScan, FileAboveProtobufsLimitSaysSo) {
  const TemporaryFolder folder;
  const auto file = folder.write("big.onnx", "");
  std::filesystem::resize_file(file, (int64_t{1} << 31) + 1);  // sparse: takes no space
  expect_error([&] { import_onnx(file, test_registry(), Log()); }, ErrorKind::InvalidModel,
               {"big.onnx", "2 GiB", "external data"});
}

}  // namespace
}  // namespace tessera::onnx_import
