// The work of a kernel of this plug-in as plain data: launches of kernels in OpenCL C and matrix
// products, one after another. Candidates carry it until they are built; build_kernel() makes a
// kernel from it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "device.h"
#include "tessera/backend.h"

namespace tessera::opencl {

inline constexpr int64_t kFloatBytes = sizeof(float);
// The number of work-items in a group, for kernels that need no other.
inline constexpr int32_t kGroupItems = 64;

// Where the bytes of an argument are.
struct Place {
  enum class Kind : uint8_t { Input, Output, Workspace };
  Kind kind = Kind::Input;
  size_t port = 0;
  int64_t offset_bytes = 0;

  // The place `bytes` further on.
  Place plus(int64_t bytes) const { return {kind, port, offset_bytes + bytes}; }
};

// One or more arguments of a kernel. A Place becomes a pointer and the offset of the first byte, a
// vector an argument for each number.
using Argument = std::variant<Place, int32_t, int64_t, float, std::vector<int32_t>>;

// One launch of the kernel `name` in `source`. `source` needs the prelude of launch.cc; it sees
// `definitions` (lines of "#define") and GROUP, the number of work-items in a group.
struct Launch {
  std::string definitions = {};
  std::string source = {};
  const char* name = nullptr;
  std::vector<Argument> arguments = {};
  int64_t groups = 1;
  int32_t group_items = kGroupItems;
  bool is_exact = false;  // see ProgramSource
};

// The matrices of one product of a batch, in elements after the places of A, B and C.
struct BatchEntry {
  int64_t a = 0;
  int64_t b = 0;
  int64_t c = 0;
};

// C = alpha * A * B + beta * C for each entry of `batch`, by CLBlast. Matrices are row-major; of a
// transposed one, `ld` is the length of a row as it is stored.
struct Product {
  bool is_a_transposed = false;
  bool is_b_transposed = false;
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  float alpha = 1;
  float beta = 0;  // 0: C is not read
  Place a = {};
  Place b = {};
  Place c = {};
  int64_t lda = 1;
  int64_t ldb = 1;
  int64_t ldc = 1;
  std::vector<BatchEntry> batch = std::vector<BatchEntry>(1);
  // Scratch memory, of product_workspace() bytes.
  Place workspace = {};
};

struct Work {
  std::vector<std::variant<Launch, Product>> steps = {};
  int64_t workspace_bytes = 0;
  std::string expression = {};  // of a fused group, as text
};

// An upper bound of the scratch memory that CLBlast needs for the product. The exact size depends
// on the device, which would have to be opened.
int64_t product_workspace(const Product& product);

std::unique_ptr<plugin::Kernel> build_kernel(const std::shared_ptr<OpenedDevice>& device,
                                             const Work& work);

}  // namespace tessera::opencl
