// Serialisation of structs, valid within one machine and one build: for messages to another process
// and for files that one build writes and reads (docs/formats/model_index.md). A struct takes part
// through one function, found by argument-dependent lookup, that serves both directions:
//
//   template <class Archive>
//   void transfer(Archive& archive, PluginRef& plugin) { archive(plugin.name, plugin.file); }
//
// An enumeration takes part through a function that says which numbers are valid:
//
//   constexpr bool is_enumerator(Weights weights) { return weights <= Weights::Warm; }
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/error.h"
#include "tessera/tensor.h"

namespace tessera {

constexpr bool is_enumerator(DataType type) {
  return type <= DataType::UInt2 && type != DataType::Sequence;
}
constexpr bool is_enumerator(ErrorKind kind) {
  return kind >= ErrorKind::InvalidModel && kind <= ErrorKind::CacheMiss;
}

class ByteWriter {
 public:
  static constexpr bool kIsReading = false;

  template <class... Fields>
  void operator()(const Fields&... fields) {
    (put(fields), ...);
  }

  std::string take_bytes() { return std::move(bytes_); }
  // Tensors whose elements are not among the bytes: the block with the same index holds them.
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  template <class Field>
  void put(const Field& field) {
    if constexpr (std::is_arithmetic_v<Field> || std::is_enum_v<Field>) {
      bytes_.append(reinterpret_cast<const char*>(&field), sizeof(field));
    } else {
      // transfer() serves both directions, so it takes a mutable reference. Writing changes
      // nothing.
      transfer(*this, const_cast<Field&>(field));
    }
  }
  void put(const std::string& text) {
    put(uint64_t{text.size()});
    bytes_ += text;
  }
  void put(const Tensor& tensor) {
    put(tensor.type());
    put(tensor.dims());
    put(tensor.has_elements());
    if (!tensor.has_elements()) return;
    if (tensor.is_strings()) {
      for (const std::string& text : tensor.as<std::string>()) put(text);
      return;
    }
    size_t index = 0;
    while (index < tensors_.size() &&
           (tensors_[index].data() != tensor.data() || tensors_[index].bytes() != tensor.bytes())) {
      ++index;
    }
    if (index == tensors_.size()) tensors_.push_back(tensor);
    put(uint64_t{index});
  }
  template <class Item>
  void put(const std::vector<Item>& items) {
    put(uint64_t{items.size()});
    for (const Item& item : items) put(item);
  }
  template <class Item, size_t kCount>
  void put(const std::array<Item, kCount>& items) {
    for (const Item& item : items) put(item);
  }
  template <class Key, class Item, class Order>
  void put(const std::map<Key, Item, Order>& items) {
    put(uint64_t{items.size()});
    for (const auto& [key, item] : items) (*this)(key, item);
  }
  template <class Item>
  void put(const std::optional<Item>& item) {
    put(item.has_value());
    if (item) put(*item);
  }

  std::string bytes_;
  std::vector<Tensor> tensors_;
};

// Every read throws Corrupt if the bytes do not hold the requested value.
class ByteReader {
 public:
  static constexpr bool kIsReading = true;

  struct Block {
    std::shared_ptr<const void> start;
    int64_t bytes = 0;
  };

  // `blocks` are those of ByteWriter::tensors(); tensors that are read share their memory. `bytes`
  // must outlive the reader.
  explicit ByteReader(std::span<const char> bytes, std::vector<Block> blocks = {})
      : bytes_(bytes), blocks_(std::move(blocks)) {}

  template <class... Fields>
  void operator()(Fields&... fields) {
    (get(fields), ...);
  }

  // The bytes not read yet.
  std::span<const char> rest() const { return bytes_; }
  void expect_end() const {
    if (!bytes_.empty()) fail(std::to_string(bytes_.size()) + " bytes too many");
  }
  [[noreturn]] static void fail(const std::string& found) {
    throw Error(ErrorKind::Corrupt, "message", "expected another content, found " + found);
  }

 private:
  template <class Field>
  void get(Field& field) {
    if constexpr (std::is_same_v<Field, bool>) {
      uint8_t byte = 0;
      get(byte);
      if (byte > 1) fail("a truth value of " + std::to_string(byte));
      field = byte == 1;
    } else if constexpr (std::is_enum_v<Field>) {
      std::underlying_type_t<Field> number{};
      get(number);
      field = static_cast<Field>(number);
      if (!is_enumerator(field)) fail("a kind with the number " + std::to_string(number));
    } else if constexpr (std::is_arithmetic_v<Field>) {
      std::memcpy(&field, cut(sizeof(field)).data(), sizeof(field));
    } else {
      transfer(*this, field);
    }
  }
  void get(std::string& text) {
    const std::span<const char> found = cut(get_count());
    text.assign(found.begin(), found.end());
  }
  void get(Tensor& tensor) {
    DataType type = DataType::Undefined;
    std::vector<int64_t> dims;
    bool has_elements = false;
    (*this)(type, dims, has_elements);
    if (!has_elements) {
      tensor = type == DataType::Undefined ? Tensor() : Tensor(type, dims, nullptr, nullptr);
      return;
    }
    if (type == DataType::String) return get_strings(std::move(dims), tensor);
    uint64_t index = 0;
    get(index);
    if (index >= blocks_.size() || blocks_[index].bytes != tensor_bytes(type, dims)) {
      fail("a tensor without its elements");
    }
    tensor = Tensor(type, std::move(dims), blocks_[index].start, blocks_[index].start.get());
  }
  void get_strings(std::vector<int64_t> dims, Tensor& tensor) {
    const int64_t count = element_count(dims);
    if (static_cast<uint64_t>(count) > bytes_.size()) fail("strings beyond its end");
    std::vector<std::string> strings(static_cast<size_t>(count));
    for (std::string& text : strings) get(text);
    tensor = Tensor::strings(std::move(dims), std::move(strings));
  }
  template <class Item>
  void get(std::vector<Item>& items) {
    items.clear();
    for (uint64_t left = get_count(); left > 0; --left) get(items.emplace_back());
  }
  template <class Item, size_t kCount>
  void get(std::array<Item, kCount>& items) {
    for (Item& item : items) get(item);
  }
  template <class Key, class Item, class Order>
  void get(std::map<Key, Item, Order>& items) {
    items.clear();
    for (uint64_t left = get_count(); left > 0; --left) {
      Key key;
      get(key);
      get(items[key]);
    }
  }
  template <class Item>
  void get(std::optional<Item>& item) {
    bool has_value = false;
    get(has_value);
    item.reset();
    if (has_value) get(item.emplace());
  }

  // Every item takes at least one byte, so a larger count is invalid.
  uint64_t get_count() {
    uint64_t count = 0;
    get(count);
    if (count > bytes_.size()) fail("a count of " + std::to_string(count));
    return count;
  }
  std::span<const char> cut(uint64_t size) {
    if (size > bytes_.size()) fail("its end");
    const std::span<const char> found = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return found;
  }

  std::span<const char> bytes_;
  std::vector<Block> blocks_;
};

}  // namespace tessera
