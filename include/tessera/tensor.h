// A dense row-major array, in the host's memory or in that of a device: the type of inputs, outputs
// and weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data_type.h"
#include "tessera/device_storage.h"

namespace tessera {

// The alignment of new tensors, and of every buffer that a kernel gets unless its port asks for
// less.
inline constexpr size_t kTensorAlignmentBytes = 64;

// The number of elements of `dims`; 1 for a scalar. Throws InvalidArgument if a dimension is
// negative or the product exceeds 64 bits.
int64_t element_count(std::span<const int64_t> dims);

// The size of a dense tensor in bytes, 0 for strings. Throws InvalidArgument on overflow.
int64_t tensor_bytes(DataType type, std::span<const int64_t> dims);

// "1x3x224x224"; "scalar" for no dimensions.
std::string dims_text(std::span<const int64_t> dims);

// A value type with shared storage: copying is inexpensive, and copies refer to the same elements.
// The storage is freed with the last tensor that refers to it. Writing requires a single owner;
// reading is safe from any thread. Elements in memory of a device have no address on the host:
// functions that give one throw InvalidArgument for such a tensor.
class Tensor {
 public:
  Tensor() = default;  // no elements and no type: is_empty()

  // Allocates storage, aligned to kTensorAlignmentBytes and uninitialised; strings are empty.
  // Throws OutOfMemory, naming the requested bytes.
  Tensor(DataType type, std::vector<int64_t> dims);

  // Refers to elements in memory of the caller, which `owner` keeps alive.
  Tensor(DataType type, std::vector<int64_t> dims, std::shared_ptr<const void> owner,
         const void* data);

  // Refers to elements in memory of the caller that may be written, for example by an executor that
  // writes its outputs there.
  static Tensor over(DataType type, std::vector<int64_t> dims, std::shared_ptr<void> owner,
                     void* data);

  // Refers to elements in memory that only this tensor and its copies use; `owner` is released
  // after the last of them.
  static Tensor owning(DataType type, std::vector<int64_t> dims, std::shared_ptr<void> owner,
                       void* data);

  // Elements in memory of a device, `offset_bytes` from the beginning of `storage`. Throws
  // InvalidArgument if they do not fit. Backends makes such tensors (tessera/tessera.h).
  static Tensor on_device(DataType type, std::vector<int64_t> dims,
                          std::shared_ptr<DeviceStorage> storage, int64_t offset_bytes = 0);

  bool is_empty() const { return type_ == DataType::Undefined; }
  // Null: the elements are in the host's memory.
  DeviceStorage* device_storage() const { return device_storage_; }
  // The offset of the elements in device_storage().
  int64_t offset_bytes() const { return offset_bytes_; }
  // "cpu" for the host's memory, else the name of the device, such as "mylib:1".
  std::string_view device() const {
    return device_storage_ == nullptr ? "cpu" : std::string_view(device_storage_->device());
  }
  // A tensor of strings; their number must be that of `dims`. as<std::string>() gives them.
  static Tensor strings(std::vector<int64_t> dims, std::vector<std::string> values);
  bool is_strings() const { return type_ == DataType::String; }

  // A list of tensors, which may differ in their dimensions and be lists themselves: a value of
  // ONNX's type "sequence". Its type() is Sequence, its only dimension is the length of the list. A
  // copy shares the elements.
  static Tensor sequence(std::vector<Tensor> elements);
  bool is_sequence() const { return type_ == DataType::Sequence; }
  // A map from keys to values: a value of ONNX's type "map". Both have rank 1 and the same number
  // of elements; keys are int64 or strings, no two of which are equal. Its type() is Map, its
  // list() has the keys and the values, so its only dimension is 2.
  static Tensor map(Tensor keys, Tensor values);
  bool is_map() const { return type_ == DataType::Map; }
  const Tensor& map_keys() const { return list()[0]; }
  const Tensor& map_values() const { return list()[1]; }
  // Whether it is a list or a map, and has list() instead of elements.
  bool holds_tensors() const { return is_sequence() || is_map(); }
  // The elements of a list, or keys and values of a map; anything else is a bug.
  std::span<const Tensor> list() const;
  // A list with one more element at its end. This list stays as it is; both share their elements,
  // and, unless this one was appended to before, also their memory: to append costs nearly the same
  // for lists of any length.
  Tensor appended(Tensor element) const;

  // This tensor if it keeps its elements alive, else a copy that does.
  Tensor owned() const;

  // This tensor if it is in the host's memory, else a copy there. Waits until it is copied. Throws
  // DeviceFailed.
  Tensor to_host() const;

  // Whether no other tensor refers to these elements, and they may be written.
  bool is_sole_owner() const { return is_writable_ && !is_borrowed_ && owner_.use_count() == 1; }
  bool is_writable() const { return is_writable_; }
  // False for a tensor that has only a type and dimensions, because its elements were released.
  bool has_elements() const { return data_ != nullptr; }
  DataType type() const { return type_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t elements() const { return elements_; }
  int64_t bytes() const { return elements_ * element_bytes(type_); }

  const void* data() const {
    if (device_storage_ != nullptr) refuse_address();
    return data_;
  }
  // Allowed only for a tensor that was created by the allocating constructor or by over(); anything
  // else is a bug.
  void* mutable_data();

  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(elements_)};
  }
  template <class T>
  std::span<T> mutable_as() {
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(elements_)};
  }

  // Type and dimensions of this tensor without its elements.
  Tensor without_elements() const { return {type_, dims_, nullptr, nullptr}; }

  // Returns the same elements with other dimensions, whose product must be the same.
  Tensor reshaped(std::vector<int64_t> dims) const;

  // Creates a tensor with a copy of `values`. Their number must be that of `dims`.
  template <class T>
  static Tensor from(DataType type, std::vector<int64_t> dims, std::span<const T> values) {
    return copy_of(type, std::move(dims), values.data(), values.size_bytes());
  }
  static Tensor copy_of(DataType type, std::vector<int64_t> dims, const void* data, size_t bytes);
  // A copy that shares no memory with this tensor, which is neither a list nor on a device.
  Tensor copied() const;

 private:
  struct ListStorage;

  static Tensor list_of(DataType type, std::shared_ptr<ListStorage> storage, int64_t length);
  void hold(std::vector<std::string> strings);
  [[noreturn]] void refuse_address() const;

  DataType type_ = DataType::Undefined;
  bool is_writable_ = false;
  bool is_borrowed_ = false;  // the caller can also access the elements
  std::vector<int64_t> dims_;
  int64_t elements_ = 0;
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;  // of a device: the handle of its memory
  DeviceStorage* device_storage_ = nullptr;
  int64_t offset_bytes_ = 0;  // in device_storage_
};

}  // namespace tessera
