#include "tessera/tensor_file.h"

#include "api/tensor_files/npy.h"
#include "import/onnx/import.h"

namespace tessera {

Tensor read_tensor(const std::filesystem::path& file) {
  return read_tensor(file, DataType::Undefined);
}

Tensor read_tensor(const std::filesystem::path& file, DataType wanted) {
  return file.extension() == ".pb" ? read_tensor_proto(file) : read_npy(file, wanted);
}

}  // namespace tessera
