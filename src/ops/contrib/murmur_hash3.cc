// MurmurHash3: the 32-bit hash of the bytes of each element (MurmurHash3_x86_32 of Austin Appleby,
// https://github.com/aappleby/smhasher, in the public domain).
#include <bit>
#include <cstring>
#include <string>

#include "ops/contrib/contrib.h"
#include "ops/domains.h"

namespace tessera::ops {
namespace {

// The constants of the algorithm: the two factors of a block, the factor and the addend that mix a
// block in, and the two factors at the end.
constexpr uint32_t kBlockFactors[] = {0xcc9e2d51, 0x1b873593};
constexpr uint32_t kMixFactor = 5;
constexpr uint32_t kMixAddend = 0xe6546b64;
constexpr uint32_t kFinalFactors[] = {0x85ebca6b, 0xc2b2ae35};

uint32_t scrambled(uint32_t block) {
  return std::rotl(block * kBlockFactors[0], 15) * kBlockFactors[1];
}

uint32_t murmur_hash(const void* bytes, size_t count, uint32_t seed) {
  const auto* source = static_cast<const unsigned char*>(bytes);
  uint32_t hash = seed;
  size_t done = 0;
  for (; done + sizeof(uint32_t) <= count; done += sizeof(uint32_t)) {
    uint32_t block = 0;
    std::memcpy(&block, source + done, sizeof block);
    hash = std::rotl(hash ^ scrambled(block), 13) * kMixFactor + kMixAddend;
  }
  if (done < count) {
    uint32_t rest = 0;
    std::memcpy(&rest, source + done, count - done);
    hash ^= scrambled(rest);
  }
  hash ^= static_cast<uint32_t>(count);
  hash = (hash ^ hash >> 16) * kFinalFactors[0];
  hash = (hash ^ hash >> 13) * kFinalFactors[1];
  return hash ^ hash >> 16;
}

uint32_t hash_seed(const Node& node) {
  return static_cast<uint32_t>(node.attributes.get_int("seed"));
}

void infer_murmur_hash(InferContext& context) {
  const int64_t seed = context.node().attributes.get_int("seed");
  if (seed < 0 || seed > UINT32_MAX) {
    context.fail("expected a 'seed' of 32 bits, found " + std::to_string(seed));
  }
  const bool is_positive = context.node().attributes.get_int("positive") != 0;
  context.set_output(0, is_positive ? DataType::UInt32 : DataType::Int32,
                     context.input(0).type.shape);
}

void run_murmur_hash(const KernelCall& call) {
  const uint32_t seed = hash_seed(call.node);
  const auto bytes = static_cast<size_t>(element_bytes(call.inputs[0].type));
  const auto* source = static_cast<const char*>(call.inputs[0].data);
  // The hash has the same bits in both types.
  auto* target = static_cast<uint32_t*>(call.outputs[0].data);
  call.pool.parallel_for(call.outputs[0].elements, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      target[index] = murmur_hash(source + static_cast<size_t>(index) * bytes, bytes, seed);
    }
  });
}

void run_murmur_hash_of_strings(const ValueCall& call) {
  const uint32_t seed = hash_seed(call.node);
  const bool is_positive = call.node.attributes.get_int("positive") != 0;
  Tensor output(is_positive ? DataType::UInt32 : DataType::Int32, call.inputs[0].dims());
  auto* target = static_cast<uint32_t*>(output.mutable_data());
  for (const std::string& text : call.inputs[0].as<std::string>()) {
    *target++ = murmur_hash(text.data(), text.size(), seed);
  }
  call.outputs[0] = std::move(output);
}

}  // namespace

std::vector<Op> murmur_hash3_ops() {
  constexpr TypeSet kHashedTypes = {DataType::Int32,  DataType::Int64,   DataType::UInt32,
                                    DataType::UInt64, DataType::Float32, DataType::Float64,
                                    DataType::String};
  return {{.name = "MurmurHash3",
           .domain = kMicrosoftDomain,
           .versions = {1},
           .inputs = {{"X", "T1"}},
           .outputs = {{"Y", "T2"}},
           .type_variables = {{"T1", kHashedTypes}, {"T2", {DataType::Int32, DataType::UInt32}}},
           .attributes = {{"positive", AttributeKind::Int, int64_t{1}},
                          {"seed", AttributeKind::Int, int64_t{0}}},
           .infer = infer_murmur_hash,
           .kernel = run_murmur_hash,
           .value_kernel = run_murmur_hash_of_strings}};
}

}  // namespace tessera::ops
