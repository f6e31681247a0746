#include "import/onnx/wire/foreign_format.h"

#include "import/onnx/test_models.h"
#include "import/onnx/wire/wire_scan.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

template <size_t kCount>
std::string bytes_of(const char (&text)[kCount]) {
  return {text, kCount - 1};
}

// The first file in a ZIP archive is named at byte 30.
std::string archive_of(const std::string& first_name) {
  return bytes_of("PK\x03\x04") + std::string(26, '\0') + first_name;
}

TEST(ForeignFormat, IsNamedInsteadOfDamage) {
  struct Case {
    std::string bytes;
    const char* part;
  };
  const std::string zeros(64, '\0');
  const Case cases[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"},
      {"GGUF\x03" + zeros, "GGUF"},
      {bytes_of("\x89HDF\r\n\x1A\n") + zeros, "HDF5"},
      {bytes_of("\x1C\0\0\0TFL3") + zeros, "TensorFlow Lite"},
      {bytes_of("\x08\0\0\0ORTM") + zeros, "ONNX Runtime's own format"},
      {bytes_of("\x58\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\"}}"), "safetensors"},
      {archive_of("archive/data.pkl"), "PyTorch"},
      {archive_of("metadata.json"), "Keras"},
      {archive_of("x.npy"), ".npz"},
      {archive_of("readme.txt"), "ZIP archive"},
      {bytes_of("\x80\x02}q\0") + zeros, "pickle"},
      {bytes_of("\x1F\x8B\x08\0") + zeros, "gunzip"},
      {bytes_of("\x93NUMPY\x01\0") + zeros, ".npy"},
      {"<!DOCTYPE html>\n<html><body>404</body></html>", "HTML page"},
      {"\n <html lang=\"en\">", "HTML page"},
      {R"(<?xml version="1.0"?><net name="a">)", "XML"},
      {"<\n  ir_version: 8,\n  opset_import: [\"\" : 18]\n>\nagraph (float[N] x) => (y) {}",
       "as text"},
      {R"({"message": "Not Found"})", "JSON"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.part);
    const ByteSource source = ByteSource::over(row.bytes);
    try {
      scan_model(source);
      FAIL() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidModel);
      const std::string& text = error.message();
      EXPECT_NE(text.find("expected an ONNX (protobuf) file, found "), std::string::npos) << text;
      EXPECT_NE(text.find(row.part), std::string::npos) << text;
    }
  }
}

TEST(ForeignFormat, AModelIsNone) {
  const std::string bytes = relu_model().SerializeAsString();
  EXPECT_EQ(explain_foreign_format(ByteSource::over(bytes)), "");
  EXPECT_NO_THROW(scan_model(ByteSource::over(bytes)));
}

}  // namespace
}  // namespace tessera::onnx_import
