#include "import/onnx/wire/foreign_format.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tessera::onnx_import {
namespace {

constexpr size_t kReadBytes = 512;

struct Signature {
  size_t offset;
  std::string_view bytes;
  const char* meaning;
};

constexpr const char* kConvertPyTorch = "export the model with torch.onnx.export";

// A literal as a view, which may contain zero bytes.
template <size_t kCount>
constexpr std::string_view bytes_of(const char (&text)[kCount]) {
  return {text, kCount - 1};
}

constexpr Signature kSignatures[] = {
    {0, "version https://git-lfs.github.com/spec/",
     "a pointer of Git LFS to the model, not the model itself; fetch it with 'git lfs pull'"},
    {0, "GGUF", "a GGUF file of llama.cpp, which has weights without a graph"},
    {0, bytes_of("\x89HDF\r\n\x1A\n"),
     "an HDF5 file, such as a Keras model (.h5); export the model with model.export(format='onnx') "
     "or tf2onnx"},
    {4, "TFL3", "a TensorFlow Lite model; convert it with 'python -m tf2onnx.convert --tflite'"},
    {4, "ORTM",
     "a model in ONNX Runtime's own format (.ort); use the .onnx file that it was made from"},
    {0, bytes_of("\x1F\x8B"), "a file compressed by gzip; unpack it with gunzip"},
    {0, "BZh", "a file compressed by bzip2; unpack it with bunzip2"},
    {0,
     bytes_of("\xFD"
              "7zXZ"),
     "a file compressed by xz; unpack it with unxz"},
    {0, bytes_of("\x28\xB5\x2F\xFD"), "a file compressed by Zstandard; unpack it with unzstd"},
    {0, bytes_of("7z\xBC\xAF"), "a 7-Zip archive; unpack it"},
    {0, bytes_of("\x93NUMPY"), "an array of NumPy (.npy), not a model"},
};

bool is_at(std::string_view text, size_t offset, std::string_view part) {
  return text.size() >= offset + part.size() && text.substr(offset, part.size()) == part;
}

// ZIP archives name their first member after a header of 30 bytes.
std::string explain_archive(std::string_view text) {
  constexpr size_t kHeaderBytes = 30;
  if (!is_at(text, 0, bytes_of("PK\x03\x04"))) return "";
  const std::string_view rest = text.substr(std::min(text.size(), kHeaderBytes));
  // PyTorch's archives contain a folder of the model's name, with these files first.
  if (rest.find("/data.pkl") != rest.npos || rest.find("/byteorder") != rest.npos ||
      rest.find("/version") != rest.npos || rest.find("/.format_version") != rest.npos) {
    return std::string("a file of PyTorch (.pt); ") + kConvertPyTorch;
  }
  if (rest.starts_with("metadata.json") || rest.starts_with("config.json")) {
    return "a Keras model (.keras); export the model with model.export(format='onnx')";
  }
  if (rest.find(".npy") < 100) return "arrays of NumPy (.npz), not a model";
  return "a ZIP archive, such as a model of PyTorch or Keras; export the model to ONNX, or unpack "
         "the archive";
}

// The length of a header as 8 bytes, then the header: JSON.
bool is_safetensors(std::string_view text) {
  constexpr size_t kLengthBytes = 8;
  return text.size() > kLengthBytes + 1 && text[kLengthBytes] == '{' && text[7] == 0 &&
         text[6] == 0 && (text[kLengthBytes + 1] == '"' || text[kLengthBytes + 1] == '}');
}

// A pickle of protocol 2 to 5, as older versions of torch.save() and scikit-learn write it.
bool is_pickle(std::string_view text) {
  if (text.size() < 3 || text[0] != '\x80' || text[1] < 2 || text[1] > 5) return false;
  constexpr std::string_view kFirstOpcodes = "\x8A\x95}c(]X";
  return kFirstOpcodes.find(text[2]) != kFirstOpcodes.npos;
}

std::string explain_text(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const auto* begin = std::ranges::find_if_not(
      text, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  std::string lower(begin, text.end());
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  if (lower.starts_with("<!doctype html") || lower.starts_with("<html")) {
    return "an HTML page, such as a server's error page instead of the model; download it again";
  }
  if (lower.starts_with("<?xml") || lower.starts_with("<net ")) {
    return "XML, such as a model in another format; use the .onnx file that it was made from";
  }
  const bool is_onnx_text = lower.starts_with("<") && lower.find("ir_version") != lower.npos;
  if (is_onnx_text || lower.starts_with("ir_version:")) {
    return "an ONNX model as text; write it as protobuf with onnx.save(onnx.load(...), ...)";
  }
  const auto is_text = [](char c) {
    return std::isprint(static_cast<unsigned char>(c)) != 0 || c == '\n' || c == '\r' || c == '\t';
  };
  if (lower.starts_with("{") && std::ranges::all_of(lower, is_text)) {
    return "JSON, such as a configuration or a server's error message, not a model";
  }
  return "";
}

}  // namespace

std::string explain_foreign_format(const ByteSource& source) {
  char bytes[kReadBytes] = {};
  const auto count = static_cast<size_t>(std::min<int64_t>(source.size(), kReadBytes));
  source.read(0, bytes, count);
  const std::string_view text(bytes, count);
  for (const Signature& signature : kSignatures) {
    if (is_at(text, signature.offset, signature.bytes)) return signature.meaning;
  }
  if (std::string archive = explain_archive(text); !archive.empty()) return archive;
  if (is_safetensors(text)) return "a safetensors file, which has weights without a graph";
  if (is_pickle(text)) {
    return std::string("a pickle of Python, such as a model of PyTorch or scikit-learn; ") +
           kConvertPyTorch + " or skl2onnx";
  }
  return explain_text(text);
}

}  // namespace tessera::onnx_import
