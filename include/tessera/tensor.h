// A dense row-major array in host memory: what models take, give, and are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/data_type.h"

namespace tessera {

// Every buffer that a kernel sees starts at a multiple of this.
inline constexpr size_t kTensorAlignmentBytes = 64;

// The number of elements of `dims`; 1 for a scalar. Throws InvalidArgument where a dimension is
// negative or the product exceeds 64 bits.
int64_t element_count(std::span<const int64_t> dims);

// Bytes that a dense tensor takes. Throws InvalidArgument on overflow.
int64_t tensor_bytes(DataType type, std::span<const int64_t> dims);

// "1x3x224x224"; "scalar" for no dimensions.
std::string dims_text(std::span<const int64_t> dims);

// A value type with shared storage: copies are cheap and see the same elements. Storage is freed
// with its last tensor. Writing needs one owner at a time; reading is safe from any thread.
class Tensor {
 public:
  Tensor() = default;  // holds nothing: is_empty()

  // New storage, aligned to kTensorAlignmentBytes, uninitialised.
  // Throws OutOfMemory with the bytes asked for.
  Tensor(DataType type, std::vector<int64_t> dims);

  // Elements that live in memory of somebody else's, kept alive by `owner`.
  Tensor(DataType type, std::vector<int64_t> dims, std::shared_ptr<const void> owner,
         const void* data);

  // The same in memory that may be written: for what an executor writes its outputs to.
  static Tensor over(DataType type, std::vector<int64_t> dims, std::shared_ptr<void> owner,
                     void* data);

  bool is_empty() const { return type_ == DataType::Undefined; }
  // That no other tensor sees these elements, and they may be written.
  bool is_sole_owner() const { return is_writable_ && !is_borrowed_ && owner_.use_count() == 1; }
  bool is_writable() const { return is_writable_; }
  // False for what only tells type and dimensions of elements that were let go.
  bool has_elements() const { return data_ != nullptr; }
  DataType type() const { return type_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  int64_t elements() const { return elements_; }
  int64_t bytes() const { return elements_ * element_bytes(type_); }

  const void* data() const { return data_; }
  // Only for a tensor that was made by the first constructor or over(); anything else is a bug.
  void* mutable_data();

  template <class T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data_), static_cast<size_t>(elements_)};
  }
  template <class T>
  std::span<T> mutable_as() {
    return {static_cast<T*>(mutable_data()), static_cast<size_t>(elements_)};
  }

  // Type and dimensions of this tensor without its elements.
  Tensor without_elements() const { return {type_, dims_, nullptr, nullptr}; }

  // The same elements under other dimensions with the same count.
  Tensor reshaped(std::vector<int64_t> dims) const;

  // A tensor of its own with a copy of `values`. Their count must be that of `dims`.
  template <class T>
  static Tensor from(DataType type, std::vector<int64_t> dims, std::span<const T> values) {
    return copy_of(type, std::move(dims), values.data(), values.size_bytes());
  }
  static Tensor copy_of(DataType type, std::vector<int64_t> dims, const void* data, size_t bytes);

 private:
  DataType type_ = DataType::Undefined;
  bool is_writable_ = false;
  bool is_borrowed_ = false;  // somebody else sees the elements without owning them
  std::vector<int64_t> dims_;
  int64_t elements_ = 0;
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;
};

}  // namespace tessera
