#include "tessera/tensor.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "base/errors/check.h"
#include "base/memory/huge_pages.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// The allocator returns blocks of this size to the system when they are freed, so the next use has
// to touch their pages again.
constexpr size_t kMinHugeBytes = size_t{32} << 20;

constexpr size_t kFirstListCapacity = 4;

}  // namespace

int64_t element_count(std::span<const int64_t> dims) {
  int64_t count = 1;
  bool is_zero = false;
  for (const int64_t dim : dims) {
    if (dim < 0) {
      throw Error(ErrorKind::InvalidArgument, "shape " + dims_text(dims),
                  "expected dimensions of at least 0, found " + std::to_string(dim));
    }
    if (dim == 0) {
      is_zero = true;
    } else if (__builtin_mul_overflow(count, dim, &count)) {
      throw Error(ErrorKind::InvalidArgument, "shape " + dims_text(dims),
                  "the number of elements exceeds 64 bits");
    }
  }
  return is_zero ? 0 : count;
}

int64_t tensor_bytes(DataType type, std::span<const int64_t> dims) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(element_count(dims), element_bytes(type), &bytes)) {
    throw Error(ErrorKind::InvalidArgument, "shape " + dims_text(dims),
                "the number of bytes exceeds 64 bits");
  }
  return bytes;
}

std::string dims_text(std::span<const int64_t> dims) {
  if (dims.empty()) return "scalar";
  std::string text;
  for (const int64_t dim : dims) {
    if (!text.empty()) text += "x";
    text += std::to_string(dim);
  }
  return text;
}

Tensor::Tensor(DataType type, std::vector<int64_t> dims)
    : type_(type), is_writable_(true), dims_(std::move(dims)), elements_(element_count(dims_)) {
  if (is_strings()) {
    hold(std::vector<std::string>(static_cast<size_t>(elements_)));
    return;
  }
  // An empty tensor gets an address too, because a null pointer means "omitted".
  const auto bytes = static_cast<size_t>(std::max<int64_t>(1, tensor_bytes(type, dims_)));
  const std::align_val_t alignment{bytes < kMinHugeBytes ? kTensorAlignmentBytes : kHugePageBytes};
  void* memory = ::operator new(bytes, alignment, std::nothrow);
  if (memory == nullptr) {
    throw Error(ErrorKind::OutOfMemory, "tensor " + dims_text(dims_),
                "could not allocate " + std::to_string(bytes) + " bytes");
  }
  if (bytes >= kMinHugeBytes) ask_for_huge_pages(memory, bytes);
  owner_ = std::shared_ptr<void>(
      memory, [alignment](void* address) { ::operator delete(address, alignment); });
  data_ = memory;
}

Tensor::Tensor(DataType type, std::vector<int64_t> dims, std::shared_ptr<const void> owner,
               const void* data)
    : type_(type),
      dims_(std::move(dims)),
      elements_(element_count(dims_)),
      owner_(std::move(owner)),
      data_(data) {}

Tensor Tensor::owning(DataType type, std::vector<int64_t> dims, std::shared_ptr<void> owner,
                      void* data) {
  Tensor tensor(type, std::move(dims), std::move(owner), data);
  tensor.is_writable_ = true;
  return tensor;
}

Tensor Tensor::over(DataType type, std::vector<int64_t> dims, std::shared_ptr<void> owner,
                    void* data) {
  Tensor tensor = owning(type, std::move(dims), std::move(owner), data);
  tensor.is_borrowed_ = true;
  return tensor;
}

Tensor Tensor::on_device(DataType type, std::vector<int64_t> dims,
                         std::shared_ptr<DeviceStorage> storage, int64_t offset_bytes) {
  DeviceStorage& memory = *storage;
  const int64_t bytes = tensor_bytes(type, dims);
  if (offset_bytes < 0 || bytes > memory.bytes() || offset_bytes > memory.bytes() - bytes) {
    throw Error(ErrorKind::InvalidArgument, "tensor " + dims_text(dims),
                "expected memory of device '" + memory.device() + "' with " +
                    std::to_string(bytes) + " bytes from offset " + std::to_string(offset_bytes) +
                    " on, found " + std::to_string(memory.bytes()) + " bytes in all");
  }
  Tensor tensor(type, std::move(dims), std::move(storage), memory.handle());
  tensor.device_storage_ = &memory;
  tensor.offset_bytes_ = offset_bytes;
  tensor.is_writable_ = true;
  tensor.is_borrowed_ = true;
  return tensor;
}

// The elements of lists that begin alike: each list is as many of the first ones as it has. An
// element is written once, before the list that has it is made.
struct Tensor::ListStorage {
  explicit ListStorage(size_t capacity) : elements(capacity) {}

  std::vector<Tensor> elements;  // never grows, because others read it
  std::atomic<int64_t> used = 0;
};

Tensor Tensor::list_of(DataType type, std::shared_ptr<ListStorage> storage, int64_t length) {
  const void* data = storage.get();
  return {type, {length}, std::move(storage), data};
}

void Tensor::hold(std::vector<std::string> strings) {
  // An empty tensor gets an address too.
  if (strings.empty()) strings.reserve(1);
  const auto owner = std::make_shared<std::vector<std::string>>(std::move(strings));
  data_ = owner->data();
  owner_ = owner;
}

Tensor Tensor::strings(std::vector<int64_t> dims, std::vector<std::string> values) {
  TESSERA_CHECK(element_count(dims) == std::ssize(values), "one value for each element");
  Tensor tensor;
  tensor.type_ = DataType::String;
  tensor.is_writable_ = true;
  tensor.dims_ = std::move(dims);
  tensor.elements_ = std::ssize(values);
  tensor.hold(std::move(values));
  return tensor;
}

Tensor Tensor::sequence(std::vector<Tensor> elements) {
  const auto length = static_cast<int64_t>(elements.size());
  auto storage = std::make_shared<ListStorage>(0);
  storage->elements = std::move(elements);
  storage->used = length;
  return list_of(DataType::Sequence, std::move(storage), length);
}

Tensor Tensor::map(Tensor keys, Tensor values) {
  TESSERA_CHECK(keys.rank() == 1 && values.rank() == 1 && keys.elements() == values.elements() &&
                    (keys.is_strings() || keys.type() == DataType::Int64),
                "one value for each key, which is an int64 or a string");
  auto storage = std::make_shared<ListStorage>(0);
  storage->elements.reserve(2);
  storage->elements.push_back(std::move(keys));
  storage->elements.push_back(std::move(values));
  storage->used = 2;
  return list_of(DataType::Map, std::move(storage), 2);
}

std::span<const Tensor> Tensor::list() const {
  TESSERA_CHECK(holds_tensors(), "only a sequence or a map is a list of tensors");
  const auto& storage = *static_cast<const ListStorage*>(data_);
  return {storage.elements.data(), static_cast<size_t>(elements_)};
}

Tensor Tensor::appended(Tensor element) const {
  TESSERA_CHECK(is_sequence(), "a map has keys and values only");
  const std::span<const Tensor> present = list();
  auto storage =
      std::const_pointer_cast<ListStorage>(std::static_pointer_cast<const ListStorage>(owner_));
  const int64_t length = elements_;
  // Of several lists that are as long as what is used, one gets the next place.
  int64_t expected = length;
  const bool has_place = static_cast<size_t>(length) < storage->elements.size() &&
                         storage->used.compare_exchange_strong(expected, length + 1);
  if (!has_place) {
    storage =
        std::make_shared<ListStorage>(std::max<size_t>(kFirstListCapacity, 2 * present.size()));
    std::ranges::copy(present, storage->elements.begin());
    storage->used = length + 1;
  }
  storage->elements[static_cast<size_t>(length)] = std::move(element);
  return list_of(DataType::Sequence, std::move(storage), length + 1);
}

Tensor Tensor::owned() const {
  if (owner_ != nullptr || is_empty()) return *this;
  TESSERA_CHECK(!holds_tensors(), "a sequence or a map has an owner");
  return copied();
}

Tensor Tensor::copied() const {
  TESSERA_CHECK(!holds_tensors(), "only its elements can be copied");
  if (!is_strings()) return copy_of(type_, dims_, data(), static_cast<size_t>(bytes()));
  const std::span<const std::string> elements = as<std::string>();
  return strings(dims_, {elements.begin(), elements.end()});
}

Tensor Tensor::to_host() const {
  if (device_storage_ == nullptr) return *this;
  Tensor copy(type_, dims_);
  device_storage_->copy_to_host(offset_bytes_, copy.mutable_data(), bytes());
  return copy;
}

void Tensor::refuse_address() const {
  throw Error(ErrorKind::InvalidArgument,
              "tensor " + std::string(name(type_)) + " " + dims_text(dims_),
              "expected elements in the host's memory, found them in memory of device '" +
                  device_storage_->device() + "'; to_host() copies them");
}

void* Tensor::mutable_data() {
  if (device_storage_ != nullptr) refuse_address();
  TESSERA_CHECK(is_writable_,
                "only storage that a tensor allocated itself or lies over may be written");
  return const_cast<void*>(data_);
}

Tensor Tensor::reshaped(std::vector<int64_t> dims) const {
  TESSERA_CHECK(element_count(dims) == elements_, "reshaping keeps the number of elements");
  Tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

Tensor Tensor::copy_of(DataType type, std::vector<int64_t> dims, const void* data, size_t bytes) {
  TESSERA_CHECK(type != DataType::String && type != DataType::Sequence && type != DataType::Map,
                "strings and lists are more than their bytes");
  Tensor tensor(type, std::move(dims));
  TESSERA_CHECK(static_cast<int64_t>(bytes) == tensor.bytes(), "one value for each element");
  if (bytes > 0) std::memcpy(tensor.mutable_data(), data, bytes);
  return tensor;
}

}  // namespace tessera
