// MatMulNBits of com.microsoft: a product with weights of 2, 4 or 8 bits, which have a scale and a
// zero point for each block of a column. The matrix product reads the weights as real numbers while
// it packs them.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include <algorithm>
#include <string>

#include "ops/check_shape.h"
#include "ops/convert_element.h"
#include "ops/domains.h"
#include "ops/matmul/dense_operand.h"
#include "ops/quantize/packed_bits.h"

namespace tessera::ops {
namespace {

enum BlockInput : size_t { kBlockA, kBlockB, kBlockScales, kBlockZeros, kBlockGroups, kBlockBias };

constexpr int64_t kMinBlock = 16;
// Larger numbers in a file are corrupt; products of two of them fit 64 bits.
constexpr int64_t kMaxFeatures = (int64_t{1} << 31) - 1;

// The sizes that the attributes say.
struct BlockSizes {
  int64_t columns = 0;  // N
  int64_t depth = 0;    // K
  int64_t block = 0;
  int64_t bits = 0;
  int64_t blocks = 0;      // of a column
  int64_t blob_bytes = 0;  // of a block
};

BlockSizes block_sizes_of(const Node& node) {
  BlockSizes sizes = {.columns = node.attributes.get_int("N"),
                      .depth = node.attributes.get_int("K"),
                      .block = node.attributes.get_int("block_size"),
                      .bits = node.attributes.get_int("bits")};
  sizes.blocks = (sizes.depth + sizes.block - 1) / sizes.block;
  sizes.blob_bytes = sizes.block * sizes.bits / 8;
  return sizes;
}

void check_block_attributes(const InferContext& context) {
  const Attributes& attributes = context.node().attributes;
  const auto check = [&](const char* attribute, bool is_right, const std::string& expected) {
    if (is_right) return;
    context.fail("attribute '" + std::string(attribute) + "': expected " + expected + ", found " +
                 std::to_string(attributes.get_int(attribute)));
  };
  for (const char* size : {"N", "K"}) {
    const int64_t given = attributes.get_int(size);
    check(size, given > 0 && given <= kMaxFeatures, "a number in [1, 2^31)");
  }
  const int64_t block = attributes.get_int("block_size");
  check("block_size", block >= kMinBlock && block <= kMaxFeatures && (block & (block - 1)) == 0,
        "a power of two of at least 16");
  const int64_t bits = attributes.get_int("bits");
  check("bits", bits >= 2 && bits <= 8, "2 to 8");
  if (bits != 2 && bits != 4 && bits != 8) {
    context.fail_unsupported("kernels exist for weights of 2, 4 and 8 bits, found " +
                             std::to_string(bits));
  }
  if (attributes.get_int("weight_prepacked") != 0) {
    context.fail_unsupported(
        "weights that are packed for one device have no kernels, found "
        "'weight_prepacked' " +
        std::to_string(attributes.get_int("weight_prepacked")));
  }
}

// fail_input()s unless the input, which may be left out, has the number of elements of `expected`.
// Files of older tools have them in one axis.
void check_same_count(const InferContext& context, size_t index, const Shape& expected) {
  const Shape* const found = context.has_input(index) ? context.shape(index) : nullptr;
  if (found == nullptr || can_be_equal(*found, expected)) return;
  if (found->size() == 1 && can_be_equal(*found, {multiply(expected[0], expected[1])})) return;
  check_shape(context, index, expected);
}

void check_block_zeros(const InferContext& context, const BlockSizes& sizes) {
  if (!context.has_input(kBlockZeros)) return;
  const DataType type = context.element(kBlockZeros);
  if (type == DataType::Undefined) return;
  if (type == DataType::UInt8) {
    return check_same_count(context, kBlockZeros,
                            {sizes.columns, packed_bytes(sizes.blocks, sizes.bits)});
  }
  const DataType real = context.element(kBlockA);
  if (real != DataType::Undefined && type != real) {
    context.fail_input(kBlockZeros, "expected uint8 or " + std::string(name(real)) +
                                        " as input 'A' has, found " + std::string(name(type)));
  }
  check_same_count(context, kBlockZeros, {sizes.columns, sizes.blocks});
}

void infer_block_product(InferContext& context) {
  check_block_attributes(context);
  const BlockSizes sizes = block_sizes_of(context.node());
  check_shape(context, kBlockB, {sizes.columns, sizes.blocks, sizes.blob_bytes});
  check_same_count(context, kBlockScales, {sizes.columns, sizes.blocks});
  check_block_zeros(context, sizes);
  check_shape(context, kBlockBias, {sizes.columns});
  if (context.has_input(kBlockGroups) && context.shape(kBlockGroups) != nullptr) {
    const Shape& groups = *context.shape(kBlockGroups);
    // Tools also pad it to whole blocks.
    if (!can_be_equal(groups, {sizes.blocks * sizes.block})) {
      check_shape(context, kBlockGroups, {sizes.depth});
    }
  }
  context.set_output(0, context.element(kBlockA));
  const Shape* const input = context.shape(kBlockA);
  if (input == nullptr) return;
  if (input->empty() || (input->back().is_known() && input->back() != Dim(sizes.depth))) {
    context.fail_input(kBlockA, "expected a last axis of " + std::to_string(sizes.depth) +
                                    " as attribute 'K' says, found shape [" + text(*input) + "]");
  }
  Shape output = *input;
  output.back() = sizes.columns;
  context.set_output(0, context.element(kBlockA), std::move(output));
}

// Writes the weights of `count` whole bytes of one block.
template <int kBits>
double* read_weights_of_bytes(const uint8_t* bytes, int64_t count, double zero, double scale,
                              double* target) {
  constexpr int kInByte = 8 / kBits;
  constexpr int kMask = (1 << kBits) - 1;
  for (int64_t byte = 0; byte < count; ++byte) {
    for (int part = 0; part < kInByte; ++part) {
      target[byte * kInByte + part] = (((bytes[byte] >> (part * kBits)) & kMask) - zero) * scale;
    }
  }
  return target + count * kInByte;
}

// Reads columns of the weights as real numbers: MatrixOperand::read.
class BlockColumns {
 public:
  explicit BlockColumns(const KernelCall& call)
      : sizes_(block_sizes_of(call.node)),
        weights_(call.inputs[kBlockB].as<uint8_t>().data()),
        scales_(to_doubles(call.inputs[kBlockScales], call.scratch)),
        zeros_(static_cast<size_t>(sizes_.columns * sizes_.blocks),
               static_cast<double>(int64_t{1} << (sizes_.bits - 1)), &call.scratch) {
    if (call.has_input(kBlockZeros)) read_zeros(call.inputs[kBlockZeros], call.scratch);
    if (call.has_input(kBlockGroups)) read_groups(call);
  }

  void operator()(int64_t, int64_t column, int64_t begin, int64_t count, double* target) const {
    if (sizes_.bits == 2) return read_column<2>(column, begin, count, target);
    if (sizes_.bits == 4) return read_column<4>(column, begin, count, target);
    read_column<8>(column, begin, count, target);
  }

 private:
  void read_zeros(const TensorView& zeros, std::pmr::memory_resource& memory) {
    if (zeros.type != DataType::UInt8) {
      zeros_ = to_doubles(zeros, memory);
      return;
    }
    const uint8_t* const packed = zeros.as<uint8_t>().data();
    const int64_t column_bytes = packed_bytes(sizes_.blocks, sizes_.bits);
    for (int64_t column = 0; column < sizes_.columns; ++column) {
      for (int64_t block = 0; block < sizes_.blocks; ++block) {
        zeros_[static_cast<size_t>(column * sizes_.blocks + block)] =
            packed_at(packed + column * column_bytes, block, sizes_.bits);
      }
    }
  }

  void read_groups(const KernelCall& call) {
    groups_ = call.inputs[kBlockGroups].as<int32_t>().data();
    for (int64_t index = 0; index < sizes_.depth; ++index) {
      if (groups_[index] >= 0 && groups_[index] < sizes_.blocks) continue;
      call.fail("expected groups in [0, " + std::to_string(sizes_.blocks) +
                ") in input 'g_idx', found " + std::to_string(groups_[index]));
    }
  }

  template <int kBits>
  void read_column(int64_t column, int64_t begin, int64_t count, double* target) const {
    const uint8_t* const bytes = weights_ + column * sizes_.blocks * sizes_.blob_bytes;
    const double* const scales = scales_.data() + column * sizes_.blocks;
    const double* const zeros = zeros_.data() + column * sizes_.blocks;
    if (groups_ != nullptr) {
      for (int64_t index = begin; index < begin + count; ++index) {
        const int32_t group = groups_[index];
        *target++ = (packed_at(bytes, index, kBits) - zeros[group]) * scales[group];
      }
      return;
    }
    for (int64_t index = begin; index < begin + count;) {
      const int64_t block = index / sizes_.block;
      const int64_t end = std::min(begin + count, (block + 1) * sizes_.block);
      const double scale = scales[block];
      const double zero = zeros[block];
      constexpr int64_t kInByte = 8 / kBits;
      if (index % kInByte == 0) {
        const int64_t count_of_bytes = (end - index) / kInByte;
        target = read_weights_of_bytes<kBits>(bytes + index / kInByte, count_of_bytes, zero, scale,
                                              target);
        index += count_of_bytes * kInByte;
      }
      for (; index < end; ++index) *target++ = (packed_at(bytes, index, kBits) - zero) * scale;
    }
  }

  BlockSizes sizes_;
  const uint8_t* weights_ = nullptr;
  std::pmr::vector<double> scales_;
  std::pmr::vector<double> zeros_;
  const int32_t* groups_ = nullptr;  // of each index along the depth; null: blocks in order
};

void run_block_product(const KernelCall& call) {
  if (call.outputs[0].elements == 0) return;
  const BlockColumns columns(call);
  const int64_t width = call.outputs[0].dims.back();
  const int64_t depth = call.inputs[kBlockA].dims.back();
  const std::pmr::vector<double> bias = to_doubles(
      call.inputs.size() > kBlockBias ? call.inputs[kBlockBias] : TensorView{}, call.scratch);
  visit_floating(call.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const ReadDense<double, T> rows = {call.inputs[kBlockA].as<T>().data(), depth};
    T* const output = call.outputs[0].as<T>().data();
    const auto store = [&](int64_t, int64_t row, int64_t column, int64_t count,
                           const double* sums) {
      for (int64_t index = 0; index < count; ++index) {
        const double offset = bias.empty() ? 0 : bias[static_cast<size_t>(column + index)];
        output[row * width + column + index] = from_double<T>(sums[index] + offset);
      }
    };
    multiply_matrices<double>(call, {.rows = call.outputs[0].elements / width,
                                     .columns = width,
                                     .depth = depth,
                                     .left = {rows, true},
                                     .right = {columns, true},
                                     .store = store});
  });
}

int64_t block_product_flops(const Node& node, std::span<const Type> inputs,
                            std::span<const Type> outputs) {
  return multiply(flops_per_output(node, inputs, outputs),
                  multiply(node.attributes.get_int("K"), 2))
      .value();
}

}  // namespace

std::vector<Op> mat_mul_n_bits_ops() {
  constexpr TypeSet kRealTypes = {DataType::Float32, DataType::Float16, DataType::BFloat16};
  return {{.name = "MatMulNBits",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"A", "T1"},
                      {"B", "T2"},
                      {"scales", "T1"},
                      {"zero_points", "T3", Arity::Optional},
                      {"g_idx", "T4", Arity::Optional},
                      {"bias", "T1", Arity::Optional}},
           .outputs = {{"Y", "T1"}},
           .type_variables = {{"T1", kRealTypes},
                              {"T2", {DataType::UInt8}},
                              {"T3", kRealTypes | TypeSet{DataType::UInt8}},
                              {"T4", {DataType::Int32}}},
           .attributes = {{"K", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"N", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          // The least accuracy: all kernels compute in float32 or better.
                          {"accuracy_level", AttributeKind::Int, int64_t{0}},
                          {"bits", AttributeKind::Int, int64_t{4}},
                          {"block_size", AttributeKind::Int, std::nullopt, 1, kAnyVersion, true},
                          {"weight_prepacked", AttributeKind::Int, int64_t{0}}},
           .infer = infer_block_product,
           .flops = block_product_flops,
           .kernel = run_block_product}};
}

}  // namespace tessera::ops
