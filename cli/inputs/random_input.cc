#include "cli/inputs/random_input.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "base/tensor/small_types.h"
#include "ops/visit_type.h"
#include "tessera/error.h"
#include "tessera/float16.h"

namespace tessera::cli {
namespace {

constexpr int64_t kDefaultLimit = 10;

// FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char character : text) {
    hash = (hash ^ static_cast<uint8_t>(character)) * 0x100000001b3U;
  }
  return hash;
}

// The xoshiro256** generator, its state filled by splitmix64: Blackman and Vigna, "Scrambled linear
// pseudorandom number generators", 2018.
class Generator {
 public:
  explicit Generator(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15U;
      uint64_t mixed = seed;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
      word = mixed ^ (mixed >> 31);
    }
  }

  uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, limit). Draws again if the number is in the last, incomplete multiple of
  // `limit`.
  uint64_t below(uint64_t limit) {
    const uint64_t excess = (0 - limit) % limit;
    uint64_t draw = next();
    while (draw < excess) draw = next();
    return draw % limit;
  }

  // Uniform in [-1, 1), exact.
  double signed_unit() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1.0; }

 private:
  std::array<uint64_t, 4> state_{};
};

// The natural logarithm of a normal positive number, by log(2^e m) = e log 2 + 2
// artanh((m-1)/(m+1)) with m in [sqrt(1/2), sqrt(2)). Twelve terms of the series are exact up to
// the last bits of a double.
double natural_logarithm(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  int exponent = static_cast<int>(bits >> 52) - 1022;
  // In [1/2, 1).
  double mantissa = std::bit_cast<double>((bits & 0xfffffffffffffU) | 0x3fe0000000000000U);
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double ratio = (mantissa - 1) / (mantissa + 1);
  const double square = ratio * ratio;
  double sum = 0;
  for (int term = 11; term >= 0; --term) sum = sum * square + 1.0 / (2 * term + 1);
  return exponent * 0.69314718055994531 + 2 * ratio * sum;
}

// The normal distribution by Marsaglia's polar method, which needs a logarithm and a square root.
class Normal {
 public:
  explicit Normal(Generator& generator) : generator_(generator) {}

  double next() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double first = 0;
    double second = 0;
    double square = 0;
    do {
      first = generator_.signed_unit();
      second = generator_.signed_unit();
      square = first * first + second * second;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * natural_logarithm(square) / square);
    spare_ = second * factor;
    has_spare_ = true;
    return first * factor;
  }

 private:
  Generator& generator_;
  bool has_spare_ = false;
  double spare_ = 0;
};

// Float64 stores the number itself. The other types round it to float first, so that float16 inputs
// are the rounded float32 inputs.
template <class T>
void fill_normal(Tensor& tensor, Generator& generator) {
  Normal normal(generator);
  for (T& element : tensor.mutable_as<T>()) {
    if constexpr (std::is_same_v<T, double>) {
      element = normal.next();
    } else {
      element = T(static_cast<float>(normal.next()));
    }
  }
}

template <class T>
void fill_uniform(Tensor& tensor, Generator& generator, std::optional<int64_t> index_limit) {
  // A limit of 0 allows no index at all; the run then reports this more clearly than this function
  // can.
  uint64_t limit = static_cast<uint64_t>(std::max<int64_t>(1, index_limit.value_or(kDefaultLimit)));
  limit = std::min(limit, static_cast<uint64_t>(std::numeric_limits<T>::max()));
  for (T& element : tensor.mutable_as<T>()) element = static_cast<T>(generator.below(limit));
}

// Normal numbers, rounded, or integers of the whole range. Powers of two have no sign.
void fill_small(Tensor& tensor, Generator& generator, std::optional<int64_t> index_limit) {
  Normal normal(generator);
  const DataType type = tensor.type();
  const int64_t all = int64_t{1} << element_bits(type);
  const auto limit = static_cast<uint64_t>(std::clamp<int64_t>(index_limit.value_or(all), 1, all));
  for (uint8_t& element : tensor.mutable_as<uint8_t>()) {
    element = is_small_float(type) ? small_float_bits(type, normal.next())
                                   : static_cast<uint8_t>(small_integer(
                                         type, static_cast<uint8_t>(generator.below(limit))));
  }
}

// "a" to "j".
void fill_words(Tensor& tensor, Generator& generator) {
  constexpr uint64_t kWords = 10;
  for (std::string& element : tensor.mutable_as<std::string>()) {
    element = std::string(1, static_cast<char>('a' + generator.below(kWords)));
  }
}

void fill_bools(Tensor& tensor, Generator& generator) {
  for (uint8_t& element : tensor.mutable_as<uint8_t>()) {
    element = static_cast<uint8_t>(generator.next() >> 63);
  }
}

}  // namespace

Tensor random_tensor(DataType type, const std::vector<int64_t>& dims, uint64_t seed,
                     std::string_view name, std::optional<int64_t> index_limit) {
  if (element_bytes(type) == 0 && type != DataType::String) {
    throw Error(ErrorKind::Unsupported, "input '" + std::string(name) + "'",
                "expected a type with random elements, found " + std::string(tessera::name(type)));
  }
  Tensor tensor(type, dims);
  // The name's hash is mixed before the seed is added, so that neighbouring seeds of similar names
  // give unrelated numbers.
  Generator generator(Generator(hash_of(name)).next() + seed);
  if (is_floating(type)) {
    ops::visit_floating(
        type, [&](auto tag) { fill_normal<typename decltype(tag)::type>(tensor, generator); });
  } else if (is_integer(type)) {
    ops::visit_integer(type, [&](auto tag) {
      fill_uniform<typename decltype(tag)::type>(tensor, generator, index_limit);
    });
  } else if (is_small(type)) {
    fill_small(tensor, generator, index_limit);
  } else if (type == DataType::Bool) {
    fill_bools(tensor, generator);
  } else {
    fill_words(tensor, generator);
  }
  return tensor;
}

}  // namespace tessera::cli
