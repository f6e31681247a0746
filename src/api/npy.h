// NumPy's .npy format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
// write_npy() is declared in tessera/tensor_file.h.
#pragma once

#include <filesystem>

#include "tessera/tensor.h"

namespace tessera {

// Reads a .npy file; see read_tensor() for what it takes and throws. Nothing is allocated before
// the file is known to hold as many bytes as its header promises.
Tensor read_npy(const std::filesystem::path& file);

}  // namespace tessera
