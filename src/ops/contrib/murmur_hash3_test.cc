#include "ops/contrib/contrib_test.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

// Known values of MurmurHash3_x86_32.
constexpr uint32_t kHashOfEmptyWithSeedOne = 0x514E28B7;
constexpr uint32_t kHashOfTestWithoutSeed = 0xBA6BD213;  // of "test"

std::vector<uint32_t> hashes(const Attributes& given, const Tensor& input) {
  const Node node = make_node(all_ops(), "MurmurHash3", 1, given, {true}, 1, kMicrosoftDomain);
  std::vector<Tensor> outputs(1);
  run_on_values(all_ops().of(node), {node, std::span(&input, 1), outputs});
  const auto* elements = static_cast<const uint32_t*>(outputs[0].data());
  return {elements, elements + outputs[0].elements()};
}

TEST(MurmurHash3, HashesBytes) {
  EXPECT_THAT(hashes({}, Tensor::strings({2}, {"", "test"})),
              ElementsAre(0U, kHashOfTestWithoutSeed));
  EXPECT_THAT(hashes(attributes_of({{"seed", 1}}), Tensor::strings({1}, {""})),
              ElementsAre(kHashOfEmptyWithSeedOne));
  // The same four bytes as a number.
  const Tensor number = Tensor::from<uint32_t>(DataType::UInt32, {1}, std::vector{0x74736574U});
  EXPECT_THAT(run_contrib("MurmurHash3", {}, {number})[0].as<uint32_t>(),
              ElementsAre(kHashOfTestWithoutSeed));
  const auto as_signed = run_contrib("MurmurHash3", attributes_of({{"positive", 0}}), {number});
  EXPECT_THAT(as_signed[0].as<int32_t>(),
              ElementsAre(static_cast<int32_t>(kHashOfTestWithoutSeed)));
}

TEST(MurmurHash3, RefusesSeedsOfMoreThan32Bits) {
  const auto refusal_of = [](int64_t seed) {
    return contrib_refusal("MurmurHash3", attributes_of({{"seed", seed}}), {floats({1})});
  };
  EXPECT_THAT(refusal_of(-1), HasSubstr("'seed' of 32 bits, found -1"));
  EXPECT_THAT(refusal_of(int64_t{1} << 32), HasSubstr("found 4294967296"));
}

}  // namespace
}  // namespace tessera::ops
