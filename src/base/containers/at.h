// Positions in containers, from the signed numbers by which graphs, problems and plans name things.
#pragma once

#include <cstddef>

namespace tessera {

// `index` is not negative.
constexpr size_t at(int index) { return static_cast<size_t>(index); }

}  // namespace tessera
