// Makes fused groups, by hand or at random, and runs their compiled kernels beside the evaluator.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fused_kernel.h"
#include "tessera/backend_fusion.h"

namespace tessera::jit {

// Appends instructions to a group.
class GroupBuilder {
 public:
  explicit GroupBuilder(std::vector<int64_t> dims) { group.dims = std::move(dims); }

  int32_t append(int32_t operation, int32_t data_type,
                 std::initializer_list<int32_t> arguments = {}, uint64_t bits = 0,
                 int32_t index = 0);
  // An operand on an input port of its own; row-major if there are no strides.
  int32_t operand(int32_t data_type, std::vector<int64_t> strides = {}, int64_t offset = 0);
  int32_t constant(int32_t data_type, uint64_t bits);
  // Constants of value `number`.
  int32_t number(int32_t data_type, double value);
  // A result on an output port of its own.
  void result(int32_t instruction, std::vector<int64_t> strides = {}, int64_t offset = 0);

  int32_t type(int32_t instruction) const {
    return group.instructions[static_cast<size_t>(instruction)].data_type;
  }
  std::vector<int64_t> row_major() const;

  plugin::FusedGroup group;
};

// Bytes of the tensor that these accesses of a port reach.
int64_t port_bytes(const plugin::FusedGroup& group,
                   const std::vector<plugin::FusedAccess>& accesses, int32_t port);

// The elements of all inputs of a group, row-major, by port.
using Tensors = std::vector<std::string>;

struct RunSettings {
  std::string layout;  // of whole tensors
  int32_t threads = 1;
  bool is_in_place = false;  // output 0 has the buffer of input 0
  // All buffers begin this number of bytes behind an aligned address.
  size_t address_offset = 0;
};

// Runs a kernel on copies of `inputs` in the layout, between guard bytes, and returns the outputs
// row-major. Bytes of outputs that no result reaches are zero. Throws std::runtime_error if guard
// bytes, inputs or bytes outside of results have changed, or if padding is not zero.
Tensors run_kernel(plugin::Kernel& kernel, const plugin::FusedGroup& group, const Tensors& inputs,
                   const RunSettings& settings);

// Same as run_kernel(), by the evaluator.
Tensors evaluate(const plugin::FusedGroup& group, const Tensors& inputs);

// Says where the outputs differ, or "". Elements are equal if their bits are, or if both are NaN.
std::string explain_difference(const plugin::FusedGroup& group, const Tensors& expected,
                               const Tensors& found);

// A random fused group with random inputs (random_group.cc), the same for the same seed on all
// machines.
struct RandomCase {
  plugin::FusedGroup group;
  Tensors inputs;
  RunSettings settings;
};

// Elementwise operations of all types, broadcasts, transposed and strided accesses, all layouts.
RandomCase random_elementwise_case(uint32_t seed);

// Reductions over one axis or more, one after another, in all forms of loops. Sums and products are
// of small integers, so their order does not matter.
RandomCase random_reduction_case(uint32_t seed);

// Elements of any type: for floats, a third of them NaN, infinities, zeros, denormals.
std::string random_elements(std::mt19937& random, int32_t data_type, int64_t bytes);

}  // namespace tessera::jit
