// NumPy's .npy format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
// write_npy() is declared in tessera/tensor_file.h.
#pragma once

#include <filesystem>

#include "tessera/tensor.h"

namespace tessera {

// Reads a .npy file; read_tensor() documents the formats, `wanted` and errors. Memory is allocated
// only after the file is known to have as many bytes as its header says.
Tensor read_npy(const std::filesystem::path& file, DataType wanted = DataType::Undefined);

}  // namespace tessera
