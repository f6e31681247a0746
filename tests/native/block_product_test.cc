// Products with weights of few bits, in sizes that leave rests in every loop.

#include <string>
#include <vector>

#include "any_tensor.h"
#include "each_target.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

struct NBits {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t depth = 1;
  int64_t bits = 4;
  int64_t block = 32;

  int64_t blocks() const { return (depth + block - 1) / block; }
};

NBits random_sizes(Dice& dice) {
  const Sizes few = {1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 16, 17, 31, 40};
  const Sizes widths = {1, 2, 7, 8, 15, 16, 17, 31, 33, 48, 63, 65, 100, 130};
  const Sizes bits = {2, 4, 4, 8};
  const Sizes blocks = {16, 32, 32, 64, 128, 256};
  NBits sizes = {.rows = dice.pick(few),
                 .columns = dice.pick(widths),
                 .depth = dice.whole(1, 300),
                 .bits = dice.pick(bits),
                 .block = dice.pick(blocks)};
  // Several parts of a depth.
  if (dice.one_in(20)) sizes.depth = dice.whole(1500, 3500);
  return sizes;
}

RandomGraph mat_mul_n_bits(Dice& dice, const ops::Registry& registry) {
  const NBits sizes = random_sizes(dice);
  RandomGraph made(registry, 17);
  Sizes rows = {sizes.rows, sizes.depth};
  if (dice.one_in(3)) rows = {1, sizes.rows, sizes.depth};
  if (dice.one_in(3)) rows.insert(rows.begin(), 2);
  made.input("a", dice.tensor(rows, -0.5F, 1));
  const int64_t blocks = sizes.blocks();
  made.constant("b", any_elements(dice, DataType::UInt8,
                                  {sizes.columns, blocks, sizes.block * sizes.bits / 8}));
  const bool is_flat = dice.one_in(3);
  const Sizes scales = is_flat ? Sizes{sizes.columns * blocks} : Sizes{sizes.columns, blocks};
  made.constant("scales", dice.tensor(scales, -0.1F, 0.2F));
  std::vector<std::string> inputs = {"a", "b", "scales", "", "", ""};
  const int64_t kind = dice.whole(0, 2);
  if (kind == 1) {
    const int64_t bytes = (blocks * sizes.bits + 7) / 8;
    made.constant("zeros", any_elements(dice, DataType::UInt8, {sizes.columns, bytes}));
  } else if (kind == 2) {
    made.constant("zeros", dice.tensor({sizes.columns, blocks}, 0, 15));
  }
  if (kind > 0) inputs[3] = "zeros";
  if (dice.one_in(3)) {
    made.operand(dice, "bias", dice.tensor({sizes.columns}));
    inputs[5] = "bias";
  }
  made.node("y", "com.microsoft.MatMulNBits", inputs,
            attributes_of({{"K", sizes.depth},
                           {"N", sizes.columns},
                           {"bits", sizes.bits},
                           {"block_size", sizes.block},
                           {"accuracy_level", dice.whole(0, 4)}}));
  return made.ending_in("y");
}

// Numbers of any bits as weights must not become others, whatever the zero points are.
RandomGraph zero_weights(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 17);
  const int64_t columns = dice.whole(1, 70);
  const int64_t zero = dice.whole(0, 15);
  made.input("a", dice.tensor({dice.whole(1, 20), 64}, -1e6F, 1e6F));
  Tensor weights(DataType::UInt8, {columns, 2, 16});
  for (uint8_t& byte : weights.mutable_as<uint8_t>()) byte = static_cast<uint8_t>(zero * 17);
  made.constant("b", std::move(weights));
  made.constant("scales", dice.tensor({columns, 2}));
  Tensor zeros(DataType::UInt8, {columns, 1});
  for (uint8_t& byte : zeros.mutable_as<uint8_t>()) byte = static_cast<uint8_t>(zero * 17);
  made.constant("zeros", std::move(zeros));
  made.node("y", "com.microsoft.MatMulNBits", {"a", "b", "scales", "zeros"},
            attributes_of({{"K", 64}, {"N", columns}, {"bits", 4}, {"block_size", 32}}));
  return made.ending_in("y");
}

TEST(NativeBlockProduct, MatMulNBits) {
  EXPECT_GE(check_each_target(161, 1500, mat_mul_n_bits).answered, 1500);
}

TEST(NativeBlockProduct, IsExactlyZeroIfAllWeightsAre) {
  const Totals totals = check_each_target(162, 100, zero_weights, {.relative = 0, .of_largest = 0});
  EXPECT_GE(totals.answered, 100);
}

}  // namespace
}  // namespace tessera
