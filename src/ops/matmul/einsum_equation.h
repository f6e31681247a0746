// The equation of Einsum: "bij,bjk->bik".
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::ops {

// Letters are the indices below this number, in the order in which an implicit output has them. The
// axes that "..." stands for are the indices from it on, counted from the last axis, so that
// operands with different numbers of them align at their ends.
inline constexpr int kEinsumLetters = 52;

struct EinsumEquation {
  // Kernels pass `memory`.
  explicit EinsumEquation(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : operands(memory), output(memory) {}

  std::pmr::vector<std::pmr::vector<int>> operands;  // by operand and axis
  std::pmr::vector<int> output;                      // by axis; all different
};

// Reads `text` for operands of these ranks into `equation`, which must be empty. Returns "", or
// what was expected and found.
std::string read_einsum(std::string_view text, std::span<const int64_t> ranks,
                        EinsumEquation& equation);

}  // namespace tessera::ops
