// One dimension of a shape: a number, or a symbol for a number that is unknown until shapes are
// bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

// Equal symbols always mean the same number. A symbol is a name from the model ("batch") or a
// canonical expression over such names ("(batch*4)"). Equal expressions are equal symbols, so two
// branches that apply the same arithmetic to an unknown dimension have matching shapes.
class Dim {
 public:
  Dim() = default;                       // the number 0
  Dim(int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor): a number is a Dim
  static Dim symbol(std::string text);   // `text` must not be empty

  bool is_known() const { return symbol_.empty(); }
  int64_t value() const;              // only if is_known()
  const std::string& symbol() const;  // "" if is_known()
  std::string text() const;           // "224" or "batch"

  bool operator==(const Dim& other) const = default;

 private:
  int64_t value_ = 0;
  std::string symbol_;
};

// Arithmetic: the result is a number if both operands are numbers, else the canonical expression.
// Throws InvalidModel if a number exceeds 64 bits or the divisor is zero. Division rounds towards
// minus infinity.
Dim add(const Dim& left, const Dim& right);
Dim subtract(const Dim& left, const Dim& right);
Dim multiply(const Dim& left, const Dim& right);
Dim floor_divide(const Dim& left, const Dim& right);
Dim ceil_divide(const Dim& left, const Dim& right);

// The symbol of `function` applied to `arguments`, e.g. "max(batch,4)", for functions that the
// arithmetic above does not cover. Equal arguments give an equal symbol.
Dim expression(const std::string& function, const std::vector<Dim>& arguments);

using Shape = std::vector<Dim>;

// "1x3xHx224"; "scalar" for no dimensions.
std::string text(const Shape& shape);

bool is_known(const Shape& shape);
Shape shape_from(const std::vector<int64_t>& dims);
std::vector<int64_t> dims_from(const Shape& shape);  // only if is_known(shape)

}  // namespace tessera
