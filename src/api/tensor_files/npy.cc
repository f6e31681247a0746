#include "api/tensor_files/npy.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "api/tensor_files/npy_header.h"
#include "base/text/utf8.h"
#include "tessera/error.h"
#include "tessera/tensor_file.h"

namespace tessera {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
// The size of everything before the elements is a multiple of this.
constexpr size_t kHeaderAlignment = 64;
// NumPy refuses longer headers, because it evaluates them as Python.
constexpr uint32_t kMaxHeaderBytes = 1U << 20;
// Stands for bytes that are no character.
constexpr uint32_t kReplacement = 0xFFFD;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::string file_location(const std::filesystem::path& file) {
  return "file '" + file.string() + "'";
}

std::string system_message(int error) { return std::system_category().message(error); }

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& message) {
  throw Error(ErrorKind::InvalidArgument, file_location(file), message);
}

// Reads exactly `bytes`, or throws: the file may shrink while it is read.
void read_exactly(std::FILE* stream, void* target, size_t bytes,
                  const std::filesystem::path& file) {
  if (bytes == 0) return;
  errno = 0;
  if (std::fread(target, 1, bytes, stream) == bytes) return;
  refuse(file, errno != 0 ? "cannot be read: " + system_message(errno)
                          : "is shorter than its .npy header says");
}

// Opens a regular file and finds its size.
File open_to_read(const std::filesystem::path& file, uint64_t& file_bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) refuse(file, "there is no such file");
  if (error) refuse(file, "cannot be read: " + error.message());
  if (!std::filesystem::is_regular_file(status))
    refuse(file, "expected a file, found a folder or device");
  file_bytes = std::filesystem::file_size(file, error);
  if (error) refuse(file, "cannot be read: " + error.message());
  File stream(std::fopen(file.c_str(), "rb"));
  if (!stream) refuse(file, "cannot be read: " + system_message(errno));
  return stream;
}

// Reads everything before the elements. Sets `used_bytes` to the position of the first element.
NpyHeader read_header(std::FILE* stream, const std::filesystem::path& file, uint64_t file_bytes,
                      uint64_t& used_bytes) {
  // The magic bytes, major and minor version; then the length of the header, in 2 bytes or, since
  // version 2.0, in 4.
  unsigned char prefix[12] = {};
  constexpr uint64_t kVersionEnd = 8;
  if (file_bytes < kVersionEnd)
    refuse(file, "expected a .npy file, found only " + std::to_string(file_bytes) + " bytes");
  read_exactly(stream, prefix, kVersionEnd, file);
  if (std::memcmp(prefix, kMagic.data(), kMagic.size()) != 0) {
    refuse(file, "expected a .npy file, found other first bytes");
  }
  const int major = prefix[6];
  if (major < 1 || major > 3) {
    refuse(file, "expected .npy version 1, 2 or 3, found " + std::to_string(major));
  }
  const uint64_t length_bytes = major == 1 ? 2 : 4;
  used_bytes = kVersionEnd + length_bytes;
  if (file_bytes < used_bytes) refuse(file, "ends within its .npy header");
  read_exactly(stream, prefix + kVersionEnd, length_bytes, file);
  uint32_t header_bytes = 0;
  for (uint64_t index = 0; index < length_bytes; ++index) {
    header_bytes |= uint32_t{prefix[kVersionEnd + index]} << (8 * index);
  }
  if (header_bytes > kMaxHeaderBytes || header_bytes > file_bytes - used_bytes) {
    refuse(file, "its .npy header claims " + std::to_string(header_bytes) +
                     " bytes, but the file has " + std::to_string(file_bytes));
  }
  std::string text(header_bytes, '\0');
  read_exactly(stream, text.data(), text.size(), file);
  used_bytes += header_bytes;
  return parse_npy_header(text, file_location(file));
}

// Copies elements from Fortran order (first index fastest) to C order (last index fastest).
Tensor from_fortran_order(const Tensor& source) {
  Tensor result(source.type(), source.dims());
  const std::vector<int64_t>& dims = source.dims();
  const auto size = static_cast<size_t>(element_bytes(source.type()));
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t axis = 1; axis < dims.size(); ++axis) {
    strides[axis] = strides[axis - 1] * dims[axis - 1];
  }
  std::vector<int64_t> index(dims.size(), 0);
  int64_t from = 0;
  const char* const input = static_cast<const char*>(source.data());
  char* output = static_cast<char*>(result.mutable_data());
  for (int64_t element = 0; element < source.elements(); ++element, output += size) {
    std::memcpy(output, input + static_cast<size_t>(from) * size, size);
    for (size_t axis = dims.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < dims[axis]) break;
      from -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
  return result;
}

// In C++ a bool must be 0 or 1; NumPy reads any other byte as true.
void make_bools_legal(Tensor& tensor) {
  for (uint8_t& byte : tensor.mutable_as<uint8_t>()) byte = byte != 0 ? 1 : 0;
}

// Reverses the bytes of each number of `width` bytes.
void reverse_bytes(void* numbers, int64_t bytes, int64_t width) {
  auto* const begin = static_cast<char*>(numbers);
  for (int64_t at = 0; at < bytes; at += width) std::reverse(begin + at, begin + at + width);
}

// A string that fills `bytes` of a file.
std::string decoded(const char* bytes, const NpyHeader& header) {
  if (header.character_bytes == 1) {
    const std::string_view all(bytes, static_cast<size_t>(header.string_bytes));
    return std::string(all.substr(0, all.find_last_not_of('\0') + 1));
  }
  std::string text;
  size_t end = 0;  // of what is not filling
  for (int64_t at = 0; at < header.string_bytes; at += header.character_bytes) {
    uint32_t number = 0;
    std::memcpy(&number, bytes + at, sizeof number);
    const bool is_character = number <= 0x10FFFF && (number < 0xD800 || number > 0xDFFF);
    append_code_point(is_character ? number : kReplacement, text);
    if (number != 0) end = text.size();
  }
  return text.substr(0, end);
}

Tensor strings_of(const Tensor& bytes, const NpyHeader& header) {
  std::vector<std::string> strings(static_cast<size_t>(element_count(header.dims)));
  const char* begin = static_cast<const char*>(bytes.data());
  for (std::string& text : strings) {
    text = decoded(begin, header);
    begin += header.string_bytes;
  }
  const bool is_transposed = header.is_fortran_order && header.dims.size() > 1;
  if (!is_transposed) return Tensor::strings(header.dims, std::move(strings));
  Tensor positions(DataType::Int64, header.dims);
  std::ranges::generate(positions.mutable_as<int64_t>(),
                        [next = int64_t{0}]() mutable { return next++; });
  Tensor result(DataType::String, header.dims);
  std::ranges::transform(
      from_fortran_order(positions).as<int64_t>(), result.mutable_as<std::string>().begin(),
      [&](int64_t position) { return std::move(strings[static_cast<size_t>(position)]); });
  return result;
}

std::vector<uint32_t> code_points_of(std::string_view text) {
  std::vector<uint32_t> numbers;
  while (!text.empty()) {
    const CodePoint found = first_code_point(text);
    numbers.push_back(found.bytes == 0 ? kReplacement : found.number);
    text.remove_prefix(std::max<size_t>(1, found.bytes));
  }
  return numbers;
}

// The elements as they lie in a file: strings as UTF-32, all of the same length, which is noted in
// `header`.
Tensor file_elements(const Tensor& tensor, NpyHeader& header) {
  if (!tensor.is_strings()) return tensor;
  std::vector<std::vector<uint32_t>> all;
  size_t length = 1;  // as NumPy has at least
  for (const std::string& text : tensor.as<std::string>()) {
    length = std::max(length, all.emplace_back(code_points_of(text)).size());
  }
  header.character_bytes = sizeof(uint32_t);
  header.string_bytes = static_cast<int64_t>(length * sizeof(uint32_t));
  Tensor bytes(DataType::UInt32, {std::ssize(all), static_cast<int64_t>(length)});
  std::ranges::fill(bytes.mutable_as<uint32_t>(), 0U);
  auto to = bytes.mutable_as<uint32_t>().begin();
  for (const std::vector<uint32_t>& numbers : all) {
    std::ranges::copy(numbers, to);
    to += static_cast<ptrdiff_t>(length);
  }
  return bytes;
}

int64_t expected_bytes(const NpyHeader& header, const std::filesystem::path& file) {
  try {
    if (header.type != DataType::String) return tensor_bytes(header.type, header.dims);
    std::vector<int64_t> dims = header.dims;
    dims.push_back(header.string_bytes);
    return tensor_bytes(DataType::UInt8, dims);
  } catch (const Error& error) {
    refuse(file, error.where() + ": " + error.message());
  }
}

// Writes header and elements. Returns 0 or the error number of the system.
int write_to(const std::filesystem::path& file, const std::string& header, const Tensor& tensor) {
  File stream(std::fopen(file.c_str(), "wb"));
  if (!stream) return errno;
  errno = 0;
  const auto bytes = static_cast<size_t>(tensor.bytes());
  const bool is_written =
      std::fwrite(header.data(), 1, header.size(), stream.get()) == header.size() &&
      std::fwrite(tensor.data(), 1, bytes, stream.get()) == bytes && std::fflush(stream.get()) == 0;
  const int write_error = is_written ? 0 : errno != 0 ? errno : EIO;
  // Network file systems may report a full disk only when the file is closed.
  const bool is_closed = std::fclose(stream.release()) == 0;
  return write_error != 0 ? write_error : is_closed ? 0 : errno;
}

std::string padded_header(const NpyHeader& header, const std::filesystem::path& file) {
  std::string text = npy_header_text(header);
  const size_t prefix_bytes = kMagic.size() + 4;
  const size_t unpadded_bytes = prefix_bytes + text.size() + 1;
  text.append((kHeaderAlignment - unpadded_bytes % kHeaderAlignment) % kHeaderAlignment, ' ');
  text += '\n';
  if (text.size() > UINT16_MAX) {
    refuse(file,
           "a tensor of " + std::to_string(header.dims.size()) + " dimensions cannot be written");
  }
  std::string begin(kMagic);
  begin += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return begin + text;
}

}  // namespace

Tensor read_npy(const std::filesystem::path& file, DataType wanted) {
  uint64_t file_bytes = 0;
  const File stream = open_to_read(file, file_bytes);
  uint64_t used_bytes = 0;
  NpyHeader header = read_header(stream.get(), file, file_bytes, used_bytes);
  if (header.is_untold) {
    if (!is_small(wanted)) {
      refuse(file,
             "expected elements whose type the file tells, found those of a 1-byte void (V1), "
             "which can be read only as a value of 8 bits or less, such as int4" +
                 (wanted == DataType::Undefined ? std::string()
                                                : ", not of " + std::string(name(wanted))));
    }
    header.type = wanted;
  }
  const auto expected = static_cast<uint64_t>(expected_bytes(header, file));
  if (file_bytes - used_bytes != expected) {
    refuse(file, "expected " + std::to_string(expected) + " bytes of elements for " +
                     std::string(name(header.type)) + " " + dims_text(header.dims) + ", found " +
                     std::to_string(file_bytes - used_bytes));
  }
  if (header.type == DataType::String) {
    // Each string of a file that claims more of them than it has bytes takes memory.
    constexpr int64_t kMaxEmptyStrings = int64_t{1} << 24;
    if (expected == 0 && element_count(header.dims) > kMaxEmptyStrings) {
      refuse(file, "expected at most " + std::to_string(kMaxEmptyStrings) +
                       " strings without bytes, found " + dims_text(header.dims));
    }
    Tensor bytes(DataType::UInt8, {static_cast<int64_t>(expected)});
    read_exactly(stream.get(), bytes.mutable_data(), expected, file);
    if (header.is_big_endian) {
      reverse_bytes(bytes.mutable_data(), bytes.bytes(), header.character_bytes);
    }
    return strings_of(bytes, header);
  }
  Tensor tensor(header.type, header.dims);
  read_exactly(stream.get(), tensor.mutable_data(), expected, file);
  if (header.is_big_endian) {
    reverse_bytes(tensor.mutable_data(), tensor.bytes(), element_bytes(tensor.type()));
  }
  if (header.type == DataType::Bool) make_bools_legal(tensor);
  const bool is_transposed = header.is_fortran_order && tensor.rank() > 1;
  return is_transposed ? from_fortran_order(tensor) : tensor;
}

void write_npy(const std::filesystem::path& file, const Tensor& tensor) {
  if (tensor.is_empty() || tensor.holds_tensors()) {
    refuse(file, "a tensor of type " + std::string(name(tensor.type())) + " cannot be written");
  }
  NpyHeader form = {.type = tensor.type(), .dims = tensor.dims()};
  const Tensor elements = file_elements(tensor, form);
  const std::string header = padded_header(form, file);
  std::error_code ignored;
  const auto kind = std::filesystem::status(file, ignored).type();
  // Devices and pipes are written directly. Any other file gets its name only when it is complete.
  const bool is_replaced =
      kind == std::filesystem::file_type::not_found || kind == std::filesystem::file_type::regular;
  std::filesystem::path target = file;
  if (is_replaced) target += ".partial-" + std::to_string(getpid());
  int error = write_to(target, header, elements);
  if (error == 0 && is_replaced && std::rename(target.c_str(), file.c_str()) != 0) error = errno;
  if (error == 0) return;
  if (is_replaced) std::filesystem::remove(target, ignored);
  throw Error(ErrorKind::DeviceFailed, file_location(file),
              "cannot be written: " + system_message(error));
}

}  // namespace tessera
