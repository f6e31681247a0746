#include "tessera/tensor_file.h"

#include <cstring>

#include "targets.h"
#include "tessera/error.h"

namespace tessera::fuzzing {

void fuzz_tensor_file(Bytes bytes) {
  if (bytes.empty()) return;
  const bool is_proto = (bytes.front() & 1) != 0;
  const auto file = scratch_folder() / (is_proto ? "tensor.pb" : "tensor.npy");
  write_scratch_file(file, bytes.subspan(1));
  try {
    const Tensor tensor = read_tensor(file);
    if (element_bytes(tensor.type()) == 0) return;
    const auto copy = scratch_folder() / "copy.npy";
    write_npy(copy, tensor);
    const Tensor again = read_tensor(copy);
    expect(again.type() == tensor.type() && again.dims() == tensor.dims() &&
               (tensor.bytes() == 0 ||
                std::memcmp(again.data(), tensor.data(), static_cast<size_t>(tensor.bytes())) == 0),
           "a tensor that was read is written and read again as it is");
  } catch (const Error& error) {
    // More dimensions than a header can contain are refused too.
    expect(error.kind() == ErrorKind::InvalidArgument || error.kind() == ErrorKind::InvalidModel ||
               error.kind() == ErrorKind::Unsupported || error.kind() == ErrorKind::OutOfMemory,
           error.what());
  }
}

}  // namespace tessera::fuzzing
