// What is thrown where elements are needed that nobody has any more.
#pragma once

#include <string>

namespace tessera {

// Thrown where the elements of a weight are needed that were let go: the model has to be read
// again.
struct LetGo {
  std::string weight;
};

}  // namespace tessera
