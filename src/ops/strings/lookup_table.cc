#include "ops/strings/lookup_table.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/errors/check.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

template <class T>
uint64_t bits_of(T number) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(number)) number = std::numeric_limits<T>::quiet_NaN();
    if (number == T{0}) number = T{0};  // both zeros are one key
  }
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(number));
  return bits;
}

// Calls `use` for each element, as text or as bits.
template <class Use>
void for_each_key(const Tensor& keys, const Use& use) {
  if (keys.type() == DataType::String) {
    for (const std::string& key : keys.as<std::string>()) use(std::string_view(key));
    return;
  }
  visit_numeric(keys.type(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (const T key : keys.as<T>()) use(bits_of(key));
  });
}

}  // namespace

LookUpTable::LookUpTable(Tensor keys, Tensor values, Tensor missing)
    : keys_(std::move(keys)), values_(std::move(values)), missing_(std::move(missing)) {
  TESSERA_CHECK(keys_.elements() == values_.elements() && missing_.elements() == 1 &&
                    (values_.is_empty() || missing_.type() == values_.type()),
                "type rules check the attributes");
  int64_t index = 0;
  if (keys_.is_empty()) return;
  for_each_key(keys_, [&](auto key) {
    if constexpr (std::is_same_v<decltype(key), uint64_t>) {
      numbers_.add(key, index++);
    } else {
      words_.try_emplace(key, index++);
    }
  });
}

int64_t LookUpTable::find(std::string_view key) const {
  const auto found = words_.find(key);
  return found == words_.end() ? NumberIndex::kNone : found->second;
}

int64_t LookUpTable::find(uint64_t bits) const { return numbers_.find(bits); }

template <size_t kBytes>
void LookUpTable::copy_found(const Tensor& input, Tensor& output) const {
  const auto* const values = static_cast<const std::byte*>(values_.data());
  const auto* const missing = static_cast<const std::byte*>(missing_.data());
  auto* to = static_cast<std::byte*>(output.mutable_data());
  for_each_key(input, [&](auto key) {
    const int64_t found = find(key);
    const auto at = static_cast<size_t>(found) * kBytes;
    std::memcpy(to, found == NumberIndex::kNone ? missing : values + at, kBytes);
    to += kBytes;
  });
}

Tensor LookUpTable::look_up(const Tensor& input) const {
  Tensor output(missing_.type(), input.dims());
  if (missing_.is_strings()) {
    auto to = output.mutable_as<std::string>().begin();
    for_each_key(input, [&](auto key) {
      const int64_t found = find(key);
      *to++ = found == NumberIndex::kNone ? missing_.as<std::string>()[0]
                                          : values_.as<std::string>()[static_cast<size_t>(found)];
    });
    return output;
  }
  switch (element_bytes(missing_.type())) {
    case 1:
      copy_found<1>(input, output);
      break;
    case 2:
      copy_found<2>(input, output);
      break;
    case 4:
      copy_found<4>(input, output);
      break;
    default:
      TESSERA_CHECK(element_bytes(missing_.type()) == 8, "numbers have at most eight bytes");
      copy_found<8>(input, output);
  }
  return output;
}

void copy_element(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index) {
  const auto source = static_cast<size_t>(from_index);
  const auto target = static_cast<size_t>(to_index);
  if (from.type() == DataType::String) {
    to.mutable_as<std::string>()[target] = from.as<std::string>()[source];
    return;
  }
  const auto bytes = static_cast<size_t>(element_bytes(from.type()));
  std::memcpy(static_cast<std::byte*>(to.mutable_data()) + target * bytes,
              static_cast<const std::byte*>(from.data()) + source * bytes, bytes);
}

Tensor tensor_of_list(const Attributes& attributes, std::string_view name) {
  const auto dims_of = [](const auto& list) { return std::vector<int64_t>{std::ssize(list)}; };
  if (const auto* words = attributes.find_strings(name)) {
    return Tensor::strings(dims_of(*words), *words);
  }
  if (const auto* integers = attributes.find_ints(name)) {
    return Tensor::from<int64_t>(DataType::Int64, dims_of(*integers), *integers);
  }
  if (const auto* floats = attributes.find_floats(name)) {
    return Tensor::from<float>(DataType::Float32, dims_of(*floats), *floats);
  }
  return {};
}

}  // namespace tessera::ops
