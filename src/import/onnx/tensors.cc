#include "import/onnx/tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "base/errors/check.h"
#include "base/memory/memory.h"
#include "base/tensor/small_types.h"
#include "import/onnx/types.h"
#include "import/onnx/wire/wire_reader.h"
#include "tessera/error.h"

namespace tessera::onnx_import {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores raw_data little-endian");

using onnx::TensorProto;

// The field that holds the elements of `type` if raw_data does not.
int typed_field(DataType type) {
  switch (type) {
    case DataType::Float32:
      return TensorProto::kFloatDataFieldNumber;
    case DataType::Float64:
      return TensorProto::kDoubleDataFieldNumber;
    case DataType::Int64:
      return TensorProto::kInt64DataFieldNumber;
    case DataType::UInt32:
    case DataType::UInt64:
      return TensorProto::kUint64DataFieldNumber;
    default:
      return TensorProto::kInt32DataFieldNumber;
  }
}

const char* field_name(int field) {
  switch (field) {
    case TensorProto::kFloatDataFieldNumber:
      return "float_data";
    case TensorProto::kDoubleDataFieldNumber:
      return "double_data";
    case TensorProto::kInt64DataFieldNumber:
      return "int64_data";
    case TensorProto::kUint64DataFieldNumber:
      return "uint64_data";
    case TensorProto::kInt32DataFieldNumber:
      return "int32_data";
    default:
      return "raw_data";
  }
}

DataType checked_type(const TensorProto& proto, const std::string& where) {
  if (proto.data_type() == TensorProto::UNDEFINED) {
    throw Error(ErrorKind::InvalidModel, where, "expected a data type, found none");
  }
  const std::optional<DataType> type = data_type_of(proto.data_type());
  if (!type) {
    throw Error(ErrorKind::Unsupported, where,
                "elements of " + onnx_type_name(proto.data_type()) + " are not supported");
  }
  if (proto.has_segment()) {
    throw Error(ErrorKind::Unsupported, where, "tensors in segments are not supported");
  }
  return *type;
}

std::vector<int64_t> checked_dims(const TensorProto& proto, DataType type,
                                  const std::string& where) {
  if (proto.dims_size() > kMaxDims) {
    throw Error(ErrorKind::Unsupported, where,
                "expected at most " + std::to_string(kMaxDims) + " dimensions, found " +
                    std::to_string(proto.dims_size()));
  }
  std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  try {
    tensor_bytes(type, dims);
  } catch (const Error& error) {
    throw Error(ErrorKind::InvalidModel, where, error.where() + ": " + error.message());
  }
  return dims;
}

[[noreturn]] void fail_count(const std::string& where, const std::vector<int64_t>& dims,
                             const std::string& expected, const std::string& found) {
  throw Error(ErrorKind::InvalidModel, where,
              "expected " + expected + " for shape " + dims_text(dims) + ", found " + found);
}

// A byte other than 0 and 1 is not a valid bool, and reading it as bool is undefined behaviour.
void check_bools(const Tensor& tensor, const std::string& where) {
  if (tensor.type() != DataType::Bool) return;
  const auto* bytes = static_cast<const uint8_t*>(tensor.data());
  const auto* end = bytes + tensor.elements();
  const auto* wrong = std::find_if(bytes, end, [](uint8_t byte) { return byte > 1; });
  if (wrong != end) {
    throw Error(ErrorKind::InvalidModel, where,
                "expected bools of 0 or 1, found " + std::to_string(*wrong) + " as element " +
                    std::to_string(wrong - bytes));
  }
}

bool is_fixed_size(int field) {
  return field == TensorProto::kFloatDataFieldNumber ||
         field == TensorProto::kDoubleDataFieldNumber;
}

// One element from the wire; the tensor takes the low bytes of the 64-bit number.
uint64_t read_element(WireReader& reader, int field) {
  switch (field) {
    case TensorProto::kFloatDataFieldNumber:
      return reader.fixed32();
    case TensorProto::kDoubleDataFieldNumber:
      return reader.fixed64();
    default:
      return reader.varint();
  }
}

// int32_data holds narrower integers too, sign- or zero-extended, and the bits of 16-bit floats.
void check_range(uint64_t element, int64_t element_size, const std::string& where) {
  const auto value = static_cast<int64_t>(element);
  const int64_t bits = 8 * element_size;
  if (bits == 64) return;
  const int64_t smallest = -(int64_t{1} << (bits - 1));
  const int64_t largest = (int64_t{1} << bits) - 1;
  if (value < smallest || value > largest) {
    throw Error(
        ErrorKind::InvalidModel, where,
        "expected elements of " + std::to_string(bits) + " bits, found " + std::to_string(value));
  }
}

// The tensor whose elements are the bytes of the file: `tensor` itself, or bytes of which each
// holds several elements.
Tensor storage_of(const Tensor& tensor) {
  if (!is_packed(tensor.type())) return tensor;
  return Tensor(DataType::UInt8, {packed_bytes(tensor.type(), tensor.elements())});
}

// Moves elements from the storage_of() of `tensor`, once it is filled, to it.
void take(const Tensor& storage, Tensor& tensor) {
  if (!is_packed(tensor.type())) return;
  unpack(tensor.type(), storage.as<uint8_t>(), tensor.mutable_as<uint8_t>());
}

// Fills `tensor` and returns the number of elements in the file (if there are too many, one more
// than fits).
int64_t decode(const ByteSource& source, const Payload& payload, Tensor& tensor,
               const std::string& where) {
  const int64_t element_size = element_bytes(tensor.type());
  auto* target = static_cast<char*>(tensor.mutable_data());
  int64_t count = 0;
  for (const Segment& segment : payload) {
    if (segment.is_packed && is_fixed_size(segment.field)) {
      // The wire format equals the tensor's format.
      const int64_t found = segment.bytes / element_size;
      if (segment.bytes % element_size != 0) {
        throw Error(ErrorKind::InvalidModel, where,
                    "expected whole elements of " + std::to_string(element_size) +
                        " bytes, found " + std::to_string(segment.bytes) + " bytes");
      }
      if (found > tensor.elements() - count) return tensor.elements() + 1;
      source.read(segment.offset, target + count * element_size,
                  static_cast<size_t>(segment.bytes));
      count += found;
      continue;
    }
    WireReader reader(source, segment.offset, segment.offset + segment.bytes);
    while (!reader.is_at_end()) {
      if (!segment.is_packed) reader.tag();
      const uint64_t element = read_element(reader, segment.field);
      if (count == tensor.elements()) return count + 1;
      check_range(element, element_size, where);
      std::memcpy(target + count * element_size, &element, static_cast<size_t>(element_size));
      ++count;
    }
  }
  return count;
}

}  // namespace

TensorReader::TensorReader(const ByteSource& source, const std::vector<Payload>& payloads,
                           ExternalData& external, bool copies_external)
    : source_(source),
      payloads_(payloads),
      external_(external),
      copies_external_(copies_external),
      bytes_left_(available_memory_bytes()) {}

Tensor TensorReader::read(const TensorProto& proto, const std::string& where) {
  const DataType type = checked_type(proto, where);
  std::vector<int64_t> dims = checked_dims(proto, type, where);
  if (type == DataType::String) return read_strings(proto, std::move(dims), where);
  const int64_t index = payload_index(proto);
  if (proto.data_location() == TensorProto::EXTERNAL) {
    if (index >= 0) {
      throw Error(ErrorKind::InvalidModel, where, "its elements are both external and in the file");
    }
    return read_external(proto, type, std::move(dims), where);
  }
  if (index < 0) {
    if (element_count(dims) > 0) {
      fail_count(where, dims, std::to_string(element_count(dims)) + " elements", "none");
    }
    return allocate(type, std::move(dims), where);
  }
  TESSERA_CHECK(index < static_cast<int64_t>(payloads_.size()), "scanning numbers the payloads");
  const auto known = read_already_.find(index);
  if (known != read_already_.end()) return known->second;
  Tensor tensor = read_payload(payloads_[static_cast<size_t>(index)], type, std::move(dims), where);
  return read_already_.emplace(index, std::move(tensor)).first->second;
}

void TensorReader::charge(int64_t bytes, const std::string& where) {
  if (bytes > bytes_left_) {
    throw Error(ErrorKind::OutOfMemory, where,
                "needs " + std::to_string(bytes) + " bytes, but only " +
                    std::to_string(std::max<int64_t>(0, bytes_left_)) + " are left");
  }
  bytes_left_ -= bytes;
}

Tensor TensorReader::allocate(DataType type, std::vector<int64_t> dims, const std::string& where) {
  charge(tensor_bytes(type, dims), where);
  return Tensor(type, std::move(dims));
}

namespace {

// The size of a tensor in a file.
int64_t file_bytes(DataType type, const std::vector<int64_t>& dims) {
  return is_packed(type) ? packed_bytes(type, element_count(dims)) : tensor_bytes(type, dims);
}

// The size of a payload. Throws InvalidModel if it lies in several fields.
int64_t bytes_in_one_field(const Payload& payload, const std::string& where) {
  int64_t stored_bytes = 0;
  for (const Segment& segment : payload) {
    stored_bytes += segment.bytes;
    if (segment.field != payload.front().field) {
      throw Error(ErrorKind::InvalidModel, where,
                  std::string("expected its elements in one field, found them in ") +
                      field_name(payload.front().field) + " and " + field_name(segment.field));
    }
  }
  return stored_bytes;
}

}  // namespace

// Strings have a field of their own, which scanning leaves in the message.
Tensor TensorReader::read_strings(const TensorProto& proto, std::vector<int64_t> dims,
                                  const std::string& where) {
  if (proto.data_location() == TensorProto::EXTERNAL || payload_index(proto) >= 0) {
    throw Error(ErrorKind::InvalidModel, where, "expected strings in string_data, found others");
  }
  const int64_t elements = element_count(dims);
  if (elements != proto.string_data_size()) {
    fail_count(where, dims, std::to_string(elements) + " elements",
               std::to_string(proto.string_data_size()));
  }
  std::vector<std::string> strings(proto.string_data().begin(), proto.string_data().end());
  for (const std::string& text : strings) {
    charge(static_cast<int64_t>(sizeof(text) + text.size()), where);
  }
  return Tensor::strings(std::move(dims), std::move(strings));
}

Tensor TensorReader::read_payload(const Payload& payload, DataType type, std::vector<int64_t> dims,
                                  const std::string& where) {
  const bool is_raw = payload.front().field == TensorProto::kRawDataFieldNumber;
  const int64_t stored_bytes = bytes_in_one_field(payload, where);
  if (is_raw) {
    const int64_t bytes = file_bytes(type, dims);
    if (stored_bytes != bytes) {
      fail_count(where, dims, std::to_string(bytes) + " bytes of " + std::string(name(type)),
                 std::to_string(stored_bytes));
    }
    return read_raw(source_, payload.front().offset, type, std::move(dims), where);
  }
  if (payload.front().field != typed_field(type)) {
    throw Error(ErrorKind::InvalidModel, where,
                "expected elements of " + std::string(name(type)) + " in raw_data or " +
                    field_name(typed_field(type)) + ", found them in " +
                    field_name(payload.front().field));
  }
  const int64_t elements =
      is_packed(type) ? packed_bytes(type, element_count(dims)) : element_count(dims);
  const std::string unit = is_packed(type) ? " bytes of packed elements" : " elements";
  // Each element takes at least one byte, so the size of the file bounds the allocation.
  if (elements > stored_bytes) {
    fail_count(where, dims, std::to_string(elements) + unit,
               "only " + std::to_string(stored_bytes) + " bytes");
  }
  Tensor tensor = allocate(type, std::move(dims), where);
  Tensor storage = storage_of(tensor);
  const int64_t found = decode(source_, payload, storage, where);
  if (found != elements) {
    fail_count(where, tensor.dims(), std::to_string(elements) + unit,
               found > elements ? "more" : std::to_string(found));
  }
  take(storage, tensor);
  check_bools(tensor, where);
  return tensor;
}

Tensor TensorReader::read_raw(const ByteSource& source, int64_t offset, DataType type,
                              std::vector<int64_t> dims, const std::string& where) {
  const int64_t bytes = file_bytes(type, dims);
  Tensor tensor = allocate(type, std::move(dims), where);
  Tensor storage = storage_of(tensor);
  source.read(offset, storage.mutable_data(), static_cast<size_t>(bytes));
  take(storage, tensor);
  check_bools(tensor, where);
  return tensor;
}

Tensor TensorReader::read_external(const TensorProto& proto, DataType type,
                                   std::vector<int64_t> dims, const std::string& where) {
  const ExternalLocation location = external_location(proto, where);
  const int64_t bytes = file_bytes(type, dims);
  if (location.length && *location.length != bytes) {
    fail_count(where, dims, std::to_string(bytes) + " bytes of " + std::string(name(type)),
               "an external length of " + std::to_string(*location.length));
  }
  ExternalFile& file = external_.open(location.location, where);
  const int64_t size = file.source.size();
  if (location.offset > size || bytes > size - location.offset) {
    throw Error(ErrorKind::InvalidModel, where,
                "expected " + std::to_string(bytes) + " bytes at offset " +
                    std::to_string(location.offset) + " of its external data '" +
                    location.location + "', found a file of " + std::to_string(size) + " bytes");
  }
  const bool is_aligned = location.offset % static_cast<int64_t>(kTensorAlignmentBytes) == 0;
  if (bytes == 0 || !is_aligned || copies_external_ || is_packed(type)) {
    return read_raw(file.source, location.offset, type, std::move(dims), where);
  }
  const std::shared_ptr<const std::byte>& start = mapped(file);
  Tensor tensor(type, std::move(dims), start, start.get() + location.offset);
  check_bools(tensor, where);
  return tensor;
}

}  // namespace tessera::onnx_import
