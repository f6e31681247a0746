#include "graph/dim.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/errors/check.h"
#include "graph/dim_names.h"
#include "tessera/error.h"

namespace tessera {
namespace {

// Longer expressions are replaced by their digest, because in deep networks the text would grow
// with every layer. Equal texts still give equal symbols.
constexpr size_t kMaxSymbolLength = 80;

Dim symbol_of(std::string text) {
  if (text.size() <= kMaxSymbolLength) return Dim::symbol(std::move(text));
  // FNV-1a, twice with different seeds: 128 bits make collisions of different expressions
  // improbable.
  uint64_t first = 0xcbf29ce484222325ULL;
  uint64_t second = 0x84222325cbf29ce4ULL;
  for (const char character : text) {
    first = (first ^ static_cast<unsigned char>(character)) * 0x100000001b3ULL;
    second = (second ^ static_cast<unsigned char>(character)) * 0x10000000233ULL;
  }
  char digest[40];
  std::snprintf(digest, sizeof digest, "~%016llx%016llx", static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(second));
  return Dim::symbol(digest);
}

Dim infix(const Dim& left, const char* sign, const Dim& right) {
  return symbol_of("(" + left.text() + sign + right.text() + ")");
}

[[noreturn]] void fail_overflow(const Dim& left, const char* sign, const Dim& right) {
  throw Error(ErrorKind::InvalidModel, "dimension " + left.text() + sign + right.text(),
              "the result exceeds 64 bits");
}

// Puts the operands of a commutative operation in canonical order: symbols by name, a number last.
std::pair<Dim, Dim> ordered(const Dim& left, const Dim& right) {
  if (left.is_known() != right.is_known()) {
    return left.is_known() ? std::pair(right, left) : std::pair(left, right);
  }
  return left.symbol() <= right.symbol() ? std::pair(left, right) : std::pair(right, left);
}

}  // namespace

Dim Dim::symbol(std::string text) {
  TESSERA_CHECK(!text.empty(), "a symbol has a name");
  Dim dim;
  dim.symbol_ = std::move(text);
  return dim;
}

int64_t Dim::value() const {
  TESSERA_CHECK(is_known(), "only a known dimension has a value");
  return value_;
}

const std::string& Dim::symbol() const { return symbol_; }

std::string Dim::text() const { return is_known() ? std::to_string(value_) : symbol_; }

Dim add(const Dim& left, const Dim& right) {
  if (left.is_known() && right.is_known()) {
    int64_t sum = 0;
    if (__builtin_add_overflow(left.value(), right.value(), &sum)) {
      fail_overflow(left, "+", right);
    }
    return sum;
  }
  if (left == Dim(0)) return right;
  if (right == Dim(0)) return left;
  const auto [first, second] = ordered(left, right);
  return infix(first, "+", second);
}

Dim subtract(const Dim& left, const Dim& right) {
  if (left == right) return 0;
  if (right.is_known()) {
    int64_t negated = 0;
    if (__builtin_sub_overflow(int64_t{0}, right.value(), &negated)) {
      fail_overflow(left, "-", right);
    }
    return add(left, negated);
  }
  return infix(left, "-", right);
}

Dim multiply(const Dim& left, const Dim& right) {
  if (left.is_known() && right.is_known()) {
    int64_t product = 0;
    if (__builtin_mul_overflow(left.value(), right.value(), &product)) {
      fail_overflow(left, "*", right);
    }
    return product;
  }
  if (left == Dim(0) || right == Dim(0)) return 0;
  if (left == Dim(1)) return right;
  if (right == Dim(1)) return left;
  const auto [first, second] = ordered(left, right);
  return infix(first, "*", second);
}

Dim floor_divide(const Dim& left, const Dim& right) {
  if (right == Dim(0)) {
    throw Error(ErrorKind::InvalidModel, "dimension " + left.text() + "/0", "division by zero");
  }
  if (right == Dim(1)) return left;
  if (left.is_known() && right.is_known()) {
    if (right == Dim(-1)) return subtract(0, left);
    const int64_t quotient = left.value() / right.value();
    const bool is_inexact = left.value() % right.value() != 0;
    const bool has_opposite_signs = (left.value() < 0) != (right.value() < 0);
    return quotient - (is_inexact && has_opposite_signs ? 1 : 0);
  }
  if (left == right) return 1;
  return infix(left, "/", right);
}

Dim ceil_divide(const Dim& left, const Dim& right) {
  return subtract(0, floor_divide(subtract(0, left), right));
}

Dim expression(const std::string& function, const std::vector<Dim>& arguments) {
  std::string text = function + "(";
  for (size_t index = 0; index < arguments.size(); ++index) {
    text += (index > 0 ? "," : "") + arguments[index].text();
  }
  return symbol_of(text + ")");
}

std::string text(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string result;
  for (const Dim& dim : shape) {
    if (!result.empty()) result += "x";
    result += shown_text(dim);
  }
  return result;
}

bool is_known(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim.is_known(); });
}

Shape shape_from(const std::vector<int64_t>& dims) { return {dims.begin(), dims.end()}; }

std::vector<int64_t> dims_from(const Shape& shape) {
  std::vector<int64_t> dims;
  dims.reserve(shape.size());
  for (const Dim& dim : shape) dims.push_back(dim.value());
  return dims;
}

}  // namespace tessera
