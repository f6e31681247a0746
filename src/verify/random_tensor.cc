#include "verify/random_tensor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/convert_elements.h"
#include "ops/visit_type.h"
#include "tessera/error.h"
#include "tessera/float16.h"

namespace tessera::verification {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15U;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31);
  }
  double fraction() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

template <class T>
void fill_floating(Tensor& tensor, Generator& generator, bool is_positive) {
  const double low = is_positive ? 0.5 : -2.0;
  for (T& element : tensor.mutable_as<T>()) {
    element = T(static_cast<float>(low + generator.fraction() * (2.0 - low)));
  }
}

template <class T>
float float_of(const T& element) {
  return static_cast<float>(element);
}

// Every 16th element or so is zero, of one of the signs.
constexpr uint64_t kZeroEvery = 16;

template <class T>
void fill_range(Tensor& tensor, ValueRange range, Generator& generator, bool is_positive) {
  const bool is_short = sizeof(T) == 2;
  for (T& element : tensor.mutable_as<T>()) {
    const double sign = is_positive || (generator.bits() >> 40 & 1U) == 0 ? 1 : -1;
    double number = 0;
    if (range == ValueRange::LargeMean) {
      number = is_short ? 64 + 2 * generator.fraction() : 8192 + 4 * generator.fraction();
    } else if (is_positive || (generator.bits() >> 20) % kZeroEvery != 0) {
      const double lowest = is_short ? -10 : -30;
      const double highest = is_short ? 4 : 7;
      number = sign * std::exp2(lowest + (highest - lowest) * generator.fraction());
    } else {
      number = sign * 0.0;
    }
    element = T(static_cast<float>(number));
  }
}

template <class T>
Tensor in_range_of(const Tensor& tensor, ValueRange range, uint64_t seed) {
  const bool is_positive =
      std::ranges::all_of(tensor.as<T>(), [](const T& element) { return float_of(element) > 0; });
  Tensor result(tensor.type(), tensor.dims());
  Generator generator(seed);
  fill_range<T>(result, range, generator, is_positive);
  return result;
}

template <class T>
void fill_whole(Tensor& tensor, Generator& generator, bool is_positive) {
  const int64_t low = is_positive || std::is_unsigned_v<T> ? 1 : -5;
  for (T& element : tensor.mutable_as<T>()) {
    const auto count = static_cast<uint64_t>(6 - low);
    element = static_cast<T>(low + static_cast<int64_t>(generator.bits() % count));
  }
}

void fill_small(Tensor& tensor, Generator& generator, bool is_positive) {
  const DataType type = tensor.type();
  Tensor numbers(is_small_float(type) ? DataType::Float32 : DataType::Int8, tensor.dims());
  if (is_small_float(type)) {
    fill_floating<float>(numbers, generator, is_positive);
  } else {
    fill_whole<int8_t>(numbers, generator, is_positive);
  }
  ops::convert_elements(numbers.type(), numbers.data(), type, tensor.mutable_data(),
                        tensor.elements());
}

}  // namespace

Tensor random_tensor(DataType type, std::vector<int64_t> dims, bool is_positive, uint64_t seed) {
  Tensor tensor(type, std::move(dims));
  Generator generator(seed);
  if (type == DataType::Bool) {
    for (bool& element : tensor.mutable_as<bool>()) element = (generator.bits() >> 40 & 1U) != 0;
  } else if (is_floating(type)) {
    ops::visit_floating(type, [&](auto tag) {
      fill_floating<typename decltype(tag)::type>(tensor, generator, is_positive);
    });
  } else if (is_integer(type)) {
    ops::visit_integer(type, [&](auto tag) {
      fill_whole<typename decltype(tag)::type>(tensor, generator, is_positive);
    });
  } else if (is_small(type)) {
    fill_small(tensor, generator, is_positive);
  } else {
    throw Error(ErrorKind::InvalidArgument, "random tensor", "no such elements can be drawn");
  }
  return tensor;
}

Tensor random_bits(DataType type, std::vector<int64_t> dims, uint64_t seed) {
  if (type == DataType::Bool) return random_tensor(type, std::move(dims), false, seed);
  Tensor tensor(type, std::move(dims));
  Generator generator(seed);
  auto* bytes = static_cast<uint8_t*>(tensor.mutable_data());
  for (int64_t index = 0; index < tensor.bytes(); ++index) {
    bytes[index] = static_cast<uint8_t>(generator.bits());
  }
  return tensor;
}

Tensor in_range(const Tensor& tensor, ValueRange range, uint64_t seed) {
  Tensor result;
  if (!is_floating(tensor.type())) return result;
  ops::visit_floating(tensor.type(), [&](auto tag) {
    result = in_range_of<typename decltype(tag)::type>(tensor, range, seed);
  });
  return result;
}

}  // namespace tessera::verification
