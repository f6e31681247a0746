#include "import/onnx/external_data.h"

#include <atomic>
#include <thread>

#include "import/onnx/test_models.h"

namespace tessera::onnx_import {
namespace {

namespace fs = std::filesystem;

void set_entry(onnx::TensorProto& tensor, const std::string& key, const std::string& text) {
  auto& entry = *tensor.add_external_data();
  entry.set_key(key);
  entry.set_value(text);
}

// A model whose weight 'w' of `count` floats is at `offset` of `location`.
onnx::ModelProto external_model(const std::string& location, const std::string& offset,
                                int64_t count = 2) {
  onnx::ModelProto model = relu_model();
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(count);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  set_entry(tensor, "location", location);
  if (!offset.empty()) set_entry(tensor, "offset", offset);
  add_output(*model.mutable_graph(), "w");
  return model;
}

std::string numbers(int count) {
  std::string bytes;
  for (int index = 0; index < count; ++index) {
    const auto number = static_cast<float>(index);
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  return bytes;
}

float first_of(const ImportedModel& model, const std::string& name) {
  return value(model.graph, name).constant.as<float>()[0];
}

TEST(ExternalData, IsMappedWhereItIsAlignedAndCopiedElsewhere) {
  const TemporaryFolder folder;
  folder.write("w.bin", numbers(64));
  onnx::ModelProto model = external_model("w.bin", "64");
  onnx::TensorProto second = model.graph().initializer(0);
  second.set_name("v");
  second.mutable_external_data(1)->set_value("128");
  *model.mutable_graph()->add_initializer() = second;
  second.set_name("u");
  second.mutable_external_data(1)->set_value("68");
  *model.mutable_graph()->add_initializer() = second;
  for (const char* name : {"v", "u"}) add_output(*model.mutable_graph(), name);

  const ImportedModel imported = import(model, folder.path());
  EXPECT_EQ(first_of(imported, "w"), 16);
  EXPECT_EQ(first_of(imported, "v"), 32);
  EXPECT_EQ(first_of(imported, "u"), 17);
  const auto* w = static_cast<const char*>(value(imported.graph, "w").constant.data());
  const auto* v = static_cast<const char*>(value(imported.graph, "v").constant.data());
  const auto* u = static_cast<const char*>(value(imported.graph, "u").constant.data());
  EXPECT_EQ(v - w, 64) << "both in one mapping";
  EXPECT_NE(u - w, 4) << "a copy of its own";
  EXPECT_EQ(reinterpret_cast<uintptr_t>(u) % kTensorAlignmentBytes, 0U);
}

TEST(ExternalData, RefusesFilesItMayNotRead) {
  const TemporaryFolder outside;
  outside.write("secret.bin", numbers(64));
  const TemporaryFolder folder;
  folder.write("w.bin", numbers(4));
  fs::create_directory(folder.path() / "inner");
  fs::create_symlink(outside.path() / "secret.bin", folder.path() / "link.bin");
  fs::create_directory_symlink(outside.path(), folder.path() / "away");
  struct Case {
    const char* location;
    const char* offset;
    const char* part;
  };
  const std::string absolute = outside.path() / "secret.bin";
  const Case cases[] = {
      {"missing.bin", "", "does not exist"},
      {"", "", "no location"},
      {absolute.c_str(), "", "is absolute"},
      {"../secret.bin", "", "has '..'"},
      {"inner/../w.bin", "", "has '..'"},
      {"link.bin", "", "leaves the folder"},
      {"away/secret.bin", "", "leaves the folder"},
      {"inner", "", "a folder"},
      {"w.bin", "12", "found a file of 16 bytes"},
      {"w.bin", "9223372036854775807", "found a file of 16 bytes"},
      {"w.bin", "-1", "expected a number of bytes as offset"},
      {"w.bin", "99999999999999999999", "expected a number of bytes as offset"},
      {"w.bin", "4x", "expected a number of bytes as offset"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(std::string(row.location) + " at " + row.offset);
    expect_error([&] { import(external_model(row.location, row.offset), folder.path()); },
                 ErrorKind::InvalidModel, {"initializer 'w'", row.part});
  }
}

// An attacker with write access to the folder replaces a permitted file by a link.
TEST(ExternalData, IsNotReadThroughALinkThatReplacesTheFile) {
  const TemporaryFolder outside;
  outside.write("secret.bin", std::string(8, '\x7f'));
  const TemporaryFolder folder;
  folder.write("kept.bin", numbers(2));
  std::atomic<bool> is_over = false;
  std::thread stranger([&] {
    const fs::path next = folder.path() / "next";
    while (!is_over) {
      fs::create_hard_link(folder.path() / "kept.bin", next);
      fs::rename(next, folder.path() / "w.bin");
      fs::create_symlink(outside.path() / "secret.bin", next);
      fs::rename(next, folder.path() / "w.bin");
    }
  });
  const onnx::ModelProto model = external_model("w.bin", "");
  int read = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    try {
      const ImportedModel imported = import(model, folder.path());
      EXPECT_EQ(first_of(imported, "w"), 0) << "that of kept.bin";
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
    }
  }
  is_over = true;
  stranger.join();
  EXPECT_GT(read, 0);
}

TEST(ExternalData, LengthMustBeThatOfTheShape) {
  const TemporaryFolder folder;
  folder.write("w.bin", numbers(4));
  onnx::ModelProto model = external_model("w.bin", "0");
  set_entry(*model.mutable_graph()->mutable_initializer(0), "length", "12");
  expect_error([&] { import(model, folder.path()); }, ErrorKind::InvalidModel,
               {"initializer 'w'", "expected 8 bytes", "12"});
}

TEST(ExternalData, ModelMayBeALink) {
  const TemporaryFolder store;
  const TemporaryFolder folder;
  const auto model = store.write("blob", external_model("w.bin", "").SerializeAsString());
  store.write("w.bin", numbers(2));
  fs::create_symlink(model, folder.path() / "model.onnx");
  const ImportedModel imported = import_onnx(folder.path() / "model.onnx", test_registry(), Log());
  EXPECT_EQ(value(imported.graph, "w").constant.elements(), 2);
}

TEST(ExternalData, LinkInsideTheFolderIsFine) {
  const TemporaryFolder folder;
  folder.write("w.bin", numbers(2));
  fs::create_symlink("w.bin", folder.path() / "link.bin");
  EXPECT_NO_THROW(import(external_model("link.bin", ""), folder.path()));
}

TEST(ExternalData, CopyThatDoesNotFitIsRefusedBeforeItIsMade) {
  const TemporaryFolder folder;
  const auto file = folder.write("w.bin", "");
  constexpr int64_t kElements = int64_t{1} << 40;
  std::error_code error;
  fs::resize_file(file, 4 * kElements + 4, error);  // sparse: takes no space
  if (error) GTEST_SKIP() << "the file system has no files of 4 TiB";
  expect_error([&] { import(external_model("w.bin", "4", kElements), folder.path()); },
               ErrorKind::OutOfMemory, {"initializer 'w'", "4398046511104 bytes"});
}

}  // namespace
}  // namespace tessera::onnx_import
