// Tensors in files: NumPy's .npy and ONNX's TensorProto (.pb).
#pragma once

#include <filesystem>

#include "tessera/tensor.h"

namespace tessera {

// Reads a .npy file (versions 1.0 to 3.0, C or Fortran order, either byte order) or a .pb
// file, depending on the file name extension. Throws InvalidArgument, naming the file, if it is
// missing, damaged, or has another type of elements. bfloat16 has no .npy type: NumPy writes it as
// a 2-byte void ("|V2"), which is read as bfloat16.
Tensor read_tensor(const std::filesystem::path& file);

// Same, for a value of type `wanted`. NumPy writes most small types of the package ml_dtypes as a
// 1-byte void ("V1"), which does not tell the type: it is read as `wanted`, which must be small.
Tensor read_tensor(const std::filesystem::path& file, DataType wanted);

// Writes .npy version 1.0. Throws DeviceFailed if the file cannot be written completely; then no
// partial file remains.
void write_npy(const std::filesystem::path& file, const Tensor& tensor);

}  // namespace tessera
