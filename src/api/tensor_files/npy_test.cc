#include "api/tensor_files/npy.h"

#include <unistd.h>

#include <random>
#include <string>

#include "base/errors/error_test.h"
#include "base/files/temporary_folder_test.h"
#include "base/matchers_test.h"
#include "base/tensor/tensors_test.h"
#include "tessera/tensor_file.h"

namespace tessera {
namespace {

// A file that exists as long as its test.
class Npy : public testing::Test {
 protected:
  Tensor read(const std::string& bytes) {
    write_text(file_, bytes);
    return read_npy(file_);
  }

  // Returns the error message for `bytes`, or "" if they can be read.
  std::string refusal(const std::string& bytes) {
    const auto error = thrown_by([&] { read(bytes); });
    if (!error) return "";
    EXPECT_EQ(error->kind(), ErrorKind::InvalidArgument);
    EXPECT_THAT(error->where(), HasSubstr(file_.string()));
    return error->message();
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  std::filesystem::path file_ = folder_ / "tensor.npy";
};

std::string length_bytes(size_t length, int count) {
  std::string bytes;
  for (int index = 0; index < count; ++index) {
    bytes += static_cast<char>(length >> (8 * index) & 0xff);
  }
  return bytes;
}

std::string npy(const std::string& header, const std::string& elements, char version = 1) {
  return std::string("\x93NUMPY") + version + '\0' +
         length_bytes(header.size(), version == 1 ? 2 : 4) + header + elements;
}

std::string header(const std::string& descr, const std::string& shape, bool is_fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (is_fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

template <class T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

TEST_F(Npy, ReadsEveryElementType) {
  struct Case {
    const char* descr;
    DataType type;
  };
  const Case cases[] = {
      {"|b1", DataType::Bool},    {"|i1", DataType::Int8},     {"<i2", DataType::Int16},
      {"<i4", DataType::Int32},   {"<i8", DataType::Int64},    {"|u1", DataType::UInt8},
      {"<u2", DataType::UInt16},  {"<u4", DataType::UInt32},   {"<u8", DataType::UInt64},
      {"<f2", DataType::Float16}, {"|V2", DataType::BFloat16}, {"<V2", DataType::BFloat16},
      {"<f4", DataType::Float32}, {"<f8", DataType::Float64},  {"<f1", DataType::Float8E5M2},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.descr);
    const std::string elements(static_cast<size_t>(2 * element_bytes(row.type)), '\1');
    const Tensor tensor = read(npy(header(row.descr, "(2,)"), elements));
    EXPECT_EQ(tensor.type(), row.type);
    EXPECT_THAT(tensor.dims(), ElementsAre(2));
    EXPECT_EQ(std::string(static_cast<const char*>(tensor.data()), elements.size()), elements);
  }
}

TEST_F(Npy, ReadsAllVersionsAndRanks) {
  const std::string one = raw<float>({1.5F});
  for (const char version : {'\1', '\2', '\3'}) {
    EXPECT_THAT(read(npy(header("<f4", "(1, 1)"), one, version)).as<float>(), ElementsAre(1.5F));
  }
  EXPECT_EQ(read(npy(header("<f4", "()"), one)).rank(), 0);
  EXPECT_EQ(read(npy(header("<f4", "(3, 0)"), "")).elements(), 0);
  EXPECT_THAT(read(npy("{\"shape\":(1L,),'fortran_order':False,'descr':'<f4'}", one)).dims(),
              ElementsAre(1));
}

TEST_F(Npy, FortranOrderBecomesRowMajor) {
  const Tensor matrix =
      read(npy(header("<i2", "(2, 3)", true), raw<int16_t>({0, 10, 1, 11, 2, 12})));
  EXPECT_THAT(matrix.as<int16_t>(), ElementsAre(0, 1, 2, 10, 11, 12));
  const Tensor cube = read(npy(header("|u1", "(2, 1, 2)", true), raw<uint8_t>({0, 100, 1, 101})));
  EXPECT_THAT(cube.as<uint8_t>(), ElementsAre(0, 1, 100, 101));
  EXPECT_EQ(read(npy(header("<f4", "(0, 9223372036854775807)", true), "")).elements(), 0);
}

TEST_F(Npy, AnyByteButZeroIsTrue) {
  const Tensor tensor = read(npy(header("|b1", "(3,)"), raw<uint8_t>({0, 1, 200})));
  EXPECT_THAT(tensor.as<uint8_t>(), ElementsAre(0, 1, 1));
}

TEST_F(Npy, ReadsBigEndianElements) {
  const Tensor floats = read(npy(header(">f4", "(2,)"), std::string("\x3F\x80\0\0\xC0\0\0\0", 8)));
  EXPECT_EQ(floats.type(), DataType::Float32);
  EXPECT_THAT(floats.as<float>(), ElementsAre(1.0F, -2.0F));
  const Tensor integers = read(npy(header(">i2", "(2, 1)", true), std::string("\0\1\1\0", 4)));
  EXPECT_THAT(integers.as<int16_t>(), ElementsAre(1, 256));
  const Tensor text = read(npy(header(">U2", "(1,)"), std::string("\0\0\0A\0\0\0\xE4", 8)));
  EXPECT_THAT(text.as<std::string>(), ElementsAre("A\xC3\xA4"));
}

TEST_F(Npy, RefusesWhatItCannotRead) {
  struct Case {
    const char* what;
    std::string bytes;
    const char* message;
  };
  const std::string huge_header = std::string("\x93NUMPY\2\0", 8) + length_bytes(1U << 30, 4);
  const Case cases[] = {
      {"empty", "", "found only 0 bytes"},
      {"another file", "PK\3\4 and more than eight bytes", "other first bytes"},
      {"version 4", npy(header("<f4", "()"), raw<float>({1}), 4), "found 4"},
      {"no header", npy("", ""), "expected '{', found the end"},
      {"header beyond the file", huge_header, "claims 1073741824 bytes"},
      {"garbage header", npy("{'descr': <f4}", ""), "expected a string, found '<f4}'"},
      {"unknown key", npy("{'colour': 'red'}", ""), "found 'colour'"},
      {"key twice", npy("{'descr': '<f4', 'descr': '<f4'}", ""), "once each"},
      {"missing key", npy("{'descr': '<f4'}", ""), "without one of them"},
      {"after the end", npy(header("<f4", "()") + "x", ""), "nothing after"},
      {"complex", npy(header("<c8", "()"), raw<double>({1})), "'<c8'"},
      {"no type", npy(header("", "()"), ""), "type ''"},
      {"objects", npy(header("|O", "()"), ""), "'|O'"},
      {"structured", npy("{'descr': [('a', '<f4')]}", ""), "a structured type"},
      {"negative", npy(header("<f4", "(-1,)"), ""), "a dimension"},
      {"65 bits", npy(header("<f4", "(18446744073709551616,)"), ""), "a dimension"},
      {"overflow", npy(header("<f4", "(4294967296, 4294967296)"), ""), "exceeds 64 bits"},
      {"bytes overflow", npy(header("<f8", "(4611686018427387904,)"), ""), "exceeds 64 bits"},
      {"huge", npy(header("<f4", "(1099511627776,)"), "abcd"), "found 4"},
      {"truncated", npy(header("<f4", "(2,)"), raw<float>({1})),
       "expected 8 bytes of elements for float32 2, found 4"},
      {"too long", npy(header("<f4", "(1,)"), raw<float>({1, 2})), "found 8"},
  };
  for (const Case& row : cases) {
    SCOPED_TRACE(row.what);
    EXPECT_THAT(refusal(row.bytes), HasSubstr(row.message));
  }
}

TEST_F(Npy, NamesAFileThatIsNotThere) {
  EXPECT_THAT(error_of(ErrorKind::InvalidArgument, [&] { read_npy(folder_ / "absent.npy"); }),
              HasSubstr("absent.npy': there is no such file"));
  EXPECT_THROW(read_npy(folder_), Error);
}

TEST_F(Npy, WritesWhatNumPyWrites) {
  write_npy(file_, floats({1, 2}, {1, 2}));
  // The file that numpy.save() writes for float32 [[1, 2]].
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  const std::string expected = std::string("\x93NUMPY\1\0\x76\0", 10) + text +
                               std::string(117 - text.size(), ' ') + "\n" + raw<float>({1, 2});
  EXPECT_EQ(read_text(file_), expected);
}

TEST_F(Npy, WrittenFilesAreReadBack) {
  for (int index = 1; index < static_cast<int>(DataType::String); ++index) {
    const auto type = static_cast<DataType>(index);
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{}, {3}, {0, 2}, {2, 1, 3}, std::vector<int64_t>(30, 1)}) {
      SCOPED_TRACE(std::string(name(type)) + " " + dims_text(dims));
      const std::string elements(static_cast<size_t>(tensor_bytes(type, dims)), '\1');
      write_npy(file_, Tensor::copy_of(type, dims, elements.data(), elements.size()));
      const std::string bytes = read_text(file_);
      EXPECT_EQ((bytes.size() - elements.size()) % 64, 0U);
      const Tensor copy = read_npy(file_);
      EXPECT_EQ(copy.type(), type);
      EXPECT_EQ(copy.dims(), dims);
      EXPECT_EQ(std::string(static_cast<const char*>(copy.data()), elements.size()), elements);
    }
  }
}

TEST_F(Npy, AVoidOfOneByteIsTheSmallTypeThatIsWanted) {
  for (auto type = DataType::Float8E4M3FN; type <= DataType::UInt2;
       type = static_cast<DataType>(static_cast<int>(type) + 1)) {
    SCOPED_TRACE(name(type));
    const std::vector<uint8_t> elements = {1, 0, 1};
    write_npy(file_, Tensor::from<uint8_t>(type, {3}, elements));
    const Tensor copy = read_npy(file_, type);
    EXPECT_EQ(copy.type(), type);
    EXPECT_THAT(copy.as<uint8_t>(), ElementsAre(1, 0, 1));
    EXPECT_THAT(error_of(ErrorKind::InvalidArgument, [&] { read_npy(file_); }),
                HasSubstr("those of a 1-byte void (V1)"));
    EXPECT_THAT(error_of(ErrorKind::InvalidArgument, [&] { read_npy(file_, DataType::Int8); }),
                HasSubstr("such as int4, not of int8"));
  }
}

TEST_F(Npy, HoldsStrings) {
  const Tensor words = Tensor::strings({2, 2}, {"a", "é漢😀", "", "with space"});
  write_npy(file_, words);
  const Tensor copy = read_npy(file_);
  EXPECT_EQ(copy.dims(), words.dims());
  EXPECT_TRUE(std::ranges::equal(copy.as<std::string>(), words.as<std::string>()));
  write_npy(file_, Tensor::strings({0}, {}));
  EXPECT_EQ(read_npy(file_).dims(), std::vector<int64_t>{0});
}

TEST_F(Npy, ReadsStringsOfBytesAndInFortranOrder) {
  const auto texts = [&](const std::string& bytes) {
    const Tensor strings = read(bytes);
    const auto elements = strings.as<std::string>();
    return std::vector<std::string>(elements.begin(), elements.end());
  };
  EXPECT_THAT(texts(npy(header("|S2", "(3,)"), {'a', 'b', 'c', '\0', '\0', '\0'})),
              ElementsAre("ab", "c", ""));
  EXPECT_THAT(texts(npy(header("|S1", "(2, 2)", true), "abcd")), ElementsAre("a", "c", "b", "d"));
  // A half of a surrogate pair is no character.
  EXPECT_THAT(texts(npy(header("<U1", "()"), raw<uint32_t>({0xD800}))),
              ElementsAre("\xEF\xBF\xBD"));
  EXPECT_NE(refusal(npy(header("|S0", "(99999999999,)"), "")), "");
  EXPECT_NE(refusal(npy(header("<U99999999999999999999", "(1,)"), "")), "");
}

TEST_F(Npy, LeavesNothingBehindWhereItCannotWrite) {
  const Tensor tensor(DataType::Float32, {0});
  const auto kind_of_failure = [&](const std::filesystem::path& file, const Tensor& written) {
    return kind_of_error([&] { write_npy(file, written); });
  };
  EXPECT_EQ(kind_of_failure(folder_ / "absent" / "a.npy", tensor), ErrorKind::DeviceFailed);
  EXPECT_EQ(kind_of_failure(folder_, tensor), ErrorKind::DeviceFailed);
  EXPECT_EQ(kind_of_failure("/dev/full", tensor), ErrorKind::DeviceFailed);
  EXPECT_TRUE(std::filesystem::exists("/dev/full"));
  EXPECT_EQ(kind_of_failure(file_, Tensor()), ErrorKind::InvalidArgument);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(Npy, TruncatedAtAnyByteIsRefused) {
  const std::string bytes = npy(header("<f4", "(2, 2)"), raw<float>({1, 2, 3, 4}));
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(refusal(bytes.substr(0, length)), "") << "cut at byte " << length;
  }
  EXPECT_EQ(refusal(bytes), "");
}

TEST_F(Npy, FlippedBitsAreReadOrRefused) {
  const std::string bytes =
      npy(header("|b1", "(2, 4)", true), raw<uint8_t>({1, 0, 1, 0, 1, 1, 0, 0}));
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    for (int flips = static_cast<int>(random() % 3); flips >= 0; --flips) {
      char& byte = damaged[random() % damaged.size()];
      byte = static_cast<char>(byte ^ static_cast<char>(1U << (random() % 8)));
    }
    if (!refusal(damaged).empty()) ++refused;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_LT(refused, 2000);
}

}  // namespace
}  // namespace tessera
