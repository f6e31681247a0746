#include "import/onnx/tensors.h"

#include <cstring>

#include "import/onnx/test_models.h"

namespace tessera::onnx_import {
namespace {

using onnx::TensorProto;

TensorProto tensor_of(int type, const std::vector<int64_t>& dims) {
  TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(type);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  return tensor;
}

Tensor read_bytes(const std::string& bytes) {
  const ByteSource source = ByteSource::over(bytes);
  const Scanned<TensorProto> scanned = scan_tensor(source);
  ExternalData nowhere;
  return TensorReader(source, scanned.payloads, nowhere).read(scanned.message, "tensor 'w'");
}

Tensor read(const TensorProto& tensor) { return read_bytes(tensor.SerializeAsString()); }

template <class T>
std::vector<T> elements(const Tensor& tensor) {
  return {tensor.as<T>().begin(), tensor.as<T>().end()};
}

TEST(Tensors, ReadsRawData) {
  TensorProto proto = tensor_of(TensorProto::FLOAT, {3});
  const float values[] = {1, -2, 0.5F};
  proto.set_raw_data(values, sizeof values);
  const Tensor tensor = read(proto);
  EXPECT_EQ(tensor.type(), DataType::Float32);
  EXPECT_THAT(elements<float>(tensor), testing::ElementsAre(1, -2, 0.5F));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % kTensorAlignmentBytes, 0U);
}

TEST(Tensors, ReadsTypedFields) {
  TensorProto floats = tensor_of(TensorProto::FLOAT, {2});
  floats.add_float_data(1.5F);
  floats.add_float_data(-1);
  EXPECT_THAT(elements<float>(read(floats)), testing::ElementsAre(1.5F, -1));

  TensorProto doubles = tensor_of(TensorProto::DOUBLE, {1});
  doubles.add_double_data(1e300);
  EXPECT_THAT(elements<double>(read(doubles)), testing::ElementsAre(1e300));

  TensorProto longs = tensor_of(TensorProto::INT64, {2});
  longs.add_int64_data(-1);
  longs.add_int64_data(int64_t{1} << 40);
  EXPECT_THAT(elements<int64_t>(read(longs)), testing::ElementsAre(-1, int64_t{1} << 40));

  TensorProto unsigned_ints = tensor_of(TensorProto::UINT32, {1});
  unsigned_ints.add_uint64_data(4000000000U);
  EXPECT_THAT(elements<uint32_t>(read(unsigned_ints)), testing::ElementsAre(4000000000U));
}

TEST(Tensors, ReadsNarrowTypesFromInt32Data) {
  struct Case {
    int type;
    int32_t value;
    std::vector<uint8_t> bytes;
  };
  const Case cases[] = {
      {TensorProto::INT32, -2, {0xFE, 0xFF, 0xFF, 0xFF}},
      {TensorProto::INT16, -2, {0xFE, 0xFF}},
      {TensorProto::INT8, -2, {0xFE}},
      {TensorProto::UINT8, 200, {200}},
      {TensorProto::UINT16, 0xABCD, {0xCD, 0xAB}},
      {TensorProto::BOOL, 1, {1}},
      {TensorProto::FLOAT16, 0x3C00, {0x00, 0x3C}},
      {TensorProto::BFLOAT16, 0xBF80, {0x80, 0xBF}},
  };
  for (const Case& row : cases) {
    TensorProto proto = tensor_of(row.type, {1});
    proto.add_int32_data(row.value);
    const Tensor tensor = read(proto);
    ASSERT_EQ(tensor.bytes(), static_cast<int64_t>(row.bytes.size())) << row.type;
    EXPECT_EQ(std::memcmp(tensor.data(), row.bytes.data(), row.bytes.size()), 0) << row.type;
  }
}

TEST(Tensors, UnpacksSmallElements) {
  struct Case {
    int type;
    std::string bytes;
    std::vector<uint8_t> elements;
  };
  const Case cases[] = {
      {TensorProto::INT4, "\x8f\x01", {0xff, 0xf8, 1}},
      {TensorProto::UINT4, "\x8f\x01", {15, 8, 1}},
      {TensorProto::FLOAT4E2M1, "\x8f\x01", {15, 8, 1}},
      {TensorProto::INT2, "\x1b", {0xff, 0xfe, 1}},
      {TensorProto::UINT2, "\x1b", {3, 2, 1}},
      {TensorProto::FLOAT8E4M3FN, "\x8f\x01\x7f", {0x8f, 1, 0x7f}},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.type);
    TensorProto raw = tensor_of(row.type, {3});
    raw.set_raw_data(row.bytes);
    EXPECT_EQ(elements<uint8_t>(read(raw)), row.elements);
    TensorProto typed = tensor_of(row.type, {3});
    for (const char byte : row.bytes) typed.add_int32_data(static_cast<uint8_t>(byte));
    EXPECT_EQ(elements<uint8_t>(read(typed)), row.elements);
  }
}

TEST(Tensors, ReadsElementsThatAreNotPacked) {
  // Older writers write a tag before each element: field 4 (float_data), fixed32.
  std::string bytes = tensor_of(TensorProto::FLOAT, {2}).SerializeAsString();
  for (const float value : {3.0F, 4.0F}) {
    bytes += static_cast<char>((4 << 3) | 5);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  EXPECT_THAT(elements<float>(read_bytes(bytes)), testing::ElementsAre(3, 4));
}

TEST(Tensors, PackedElementsMustBeWhole) {
  // Field 4 (float_data), packed: five bytes.
  const std::string bytes =
      tensor_of(TensorProto::FLOAT, {1}).SerializeAsString() + "\x22\x05" + "abcde";
  expect_error([&] { read_bytes(bytes); }, ErrorKind::InvalidModel, {"whole elements", "5 bytes"});
}

TEST(Tensors, AcceptsEmptyOnesAndScalars) {
  EXPECT_EQ(read(tensor_of(TensorProto::FLOAT, {0, 3})).elements(), 0);
  TensorProto scalar = tensor_of(TensorProto::INT64, {});
  scalar.add_int64_data(7);
  EXPECT_THAT(elements<int64_t>(read(scalar)), testing::ElementsAre(7));
}

TEST(Tensors, RefusesWhatContradictsItself) {
  struct Case {
    const char* what;
    TensorProto tensor;
    ErrorKind kind;
    const char* part;
  };
  std::vector<Case> cases;
  const auto add = [&](const char* what, TensorProto tensor, ErrorKind kind, const char* part) {
    cases.push_back({what, std::move(tensor), kind, part});
    return &cases.back().tensor;
  };
  cases.reserve(32);
  constexpr ErrorKind kInvalid = ErrorKind::InvalidModel;
  constexpr ErrorKind kUnsupported = ErrorKind::Unsupported;
  add("no type", tensor_of(0, {}), kInvalid, "expected a data type");
  add("unknown type", tensor_of(99, {}), kUnsupported, "data type 99");
  add("float6", tensor_of(TensorProto::FLOAT6E2M3, {}), kUnsupported, "float6e2m3");
  add("int4", tensor_of(TensorProto::INT4, {3}), kInvalid, "expected 2 bytes of int4")
      ->set_raw_data("a");
  add("int4 in a field", tensor_of(TensorProto::INT4, {3}), kInvalid, "2 bytes of packed elements")
      ->add_int32_data(1);
  add("complex", tensor_of(TensorProto::COMPLEX64, {}), kUnsupported, "complex64");
  add("too few strings", tensor_of(TensorProto::STRING, {2}), kInvalid, "expected 2 elements")
      ->add_string_data("a");
  add("raw strings", tensor_of(TensorProto::STRING, {1}), kInvalid, "in string_data")
      ->set_raw_data("a");
  add("no elements", tensor_of(TensorProto::FLOAT, {2}), kInvalid, "expected 2 elements");
  add("negative", tensor_of(TensorProto::FLOAT, {-1}), kInvalid, "at least 0");
  add("overflow", tensor_of(TensorProto::FLOAT, {1LL << 40, 1LL << 40}), kInvalid, "64 bits");
  add("overflow of bytes", tensor_of(TensorProto::DOUBLE, {1LL << 62}), kInvalid, "64 bits");
  add("rank", tensor_of(TensorProto::FLOAT, std::vector<int64_t>(65, 1)), kUnsupported, "65");
  add("short raw", tensor_of(TensorProto::FLOAT, {2}), kInvalid, "expected 8 bytes of float32")
      ->set_raw_data("abc");
  add("long raw", tensor_of(TensorProto::INT8, {2}), kInvalid, "found 3")->set_raw_data("abc");
  add("too few", tensor_of(TensorProto::INT64, {3}), kInvalid, "bytes")->add_int64_data(1);
  add("too few, long ones", tensor_of(TensorProto::INT64, {3}), kInvalid, "found 1")
      ->add_int64_data(1 << 30);
  auto* many = add("too many", tensor_of(TensorProto::FLOAT, {1}), kInvalid, "found more");
  many->add_float_data(1);
  many->add_float_data(1);
  add("other field", tensor_of(TensorProto::FLOAT, {1}), kInvalid,
      "float_data, found them in int32")
      ->add_int32_data(1);
  auto* both = add("both", tensor_of(TensorProto::INT8, {1}), kInvalid, "in one field");
  both->add_int32_data(1);
  both->set_raw_data("a");
  add("bool", tensor_of(TensorProto::BOOL, {1}), kInvalid, "0 or 1")->set_raw_data("\x02");
  add("range", tensor_of(TensorProto::UINT8, {1}), kInvalid, "found 256")->add_int32_data(256);
  for (const Case& row : cases) {
    SCOPED_TRACE(row.what);
    expect_error([&] { read(row.tensor); }, row.kind, {"tensor 'w'", row.part});
  }
}

TEST(Tensors, SizesAreCheckedBeforeMemoryIsTaken) {
  TensorProto proto = tensor_of(TensorProto::FLOAT, {int64_t{1} << 45});
  proto.set_raw_data("abcd");
  expect_error([&] { read(proto); }, ErrorKind::InvalidModel, {"found 4"});
}

TEST(Tensors, FileOfOneTensor) {
  const TemporaryFolder folder;
  TensorProto proto = tensor_of(TensorProto::INT64, {2});
  proto.add_int64_data(5);
  proto.add_int64_data(6);
  const std::string bytes = proto.SerializeAsString();
  EXPECT_THAT(elements<int64_t>(read_tensor_proto(folder.write("a.pb", bytes))),
              testing::ElementsAre(5, 6));
  const auto cut = folder.write("b.pb", std::string_view(bytes).substr(0, bytes.size() - 1));
  expect_error([&] { read_tensor_proto(cut); }, ErrorKind::InvalidArgument, {"b.pb"});
  expect_error([&] { read_tensor_proto(folder.path() / "none.pb"); }, ErrorKind::InvalidArgument,
               {"none.pb"});
}

}  // namespace
}  // namespace tessera::onnx_import
