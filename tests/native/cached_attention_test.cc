// Attention with a cache of keys and values: caches that grow and that have space, in place too.

#include <cmath>
#include <string>
#include <vector>

#include "any_tensor.h"
#include "each_target.h"

namespace tessera {
namespace {

using Sizes = std::vector<int64_t>;

struct Group {
  int64_t batch = 1;
  int64_t key_heads = 1;
  int64_t sharing = 1;
  int64_t size = 1;
  int64_t past = 0;
  int64_t added = 1;
  int64_t total = 1;

  int64_t heads() const { return key_heads * sharing; }
};

// A prompt, a step with a cache that grows, or one with a cache that has space.
Group random_group(Dice& dice) {
  const Sizes sizes = {2, 4, 6, 8, 10, 16, 20, 32, 34, 64, 80};
  const Sizes lengths = {1, 2, 3, 4, 5, 7, 9, 17, 33, 70};
  Group group = {.batch = dice.whole(1, 3),
                 .key_heads = dice.whole(1, 3),
                 .sharing = dice.one_in(2) ? 1 : dice.whole(1, 9),
                 .size = dice.pick(sizes),
                 .added = dice.one_in(2) ? 1 : dice.pick(lengths)};
  const int64_t kind = dice.whole(0, 2);
  if (kind == 0) {
    group.total = group.added;
    return group;
  }
  group.past = dice.one_in(10) ? dice.whole(500, 1200) : dice.pick(lengths) + group.added;
  group.total = kind == 1 ? group.past + group.added : dice.whole(group.added, group.past);
  return group;
}

std::string add_if(Dice& dice, RandomGraph& made, int64_t rarity, const std::string& name,
                   Tensor tensor) {
  if (!dice.one_in(rarity)) return "";
  made.operand(dice, name, std::move(tensor));
  return name;
}

// The last position of each sequence.
Tensor last_positions(Dice& dice, const Group& group) {
  Tensor last(DataType::Int32, {group.batch});
  const bool grows = group.past > 0 && group.total == group.past + group.added;
  const bool is_prompt = group.total == group.added;
  const int64_t least = is_prompt ? 1 : group.added;
  for (int32_t& each : last.mutable_as<int32_t>()) {
    const int64_t length = grows && dice.one_in(2) ? group.total : dice.whole(least, group.total);
    each = static_cast<int32_t>(length - 1);
  }
  return last;
}

std::vector<std::string> add_operands(Dice& dice, RandomGraph& made, const Group& group) {
  const int64_t width = group.heads() * group.size;
  const int64_t key_width = group.key_heads * group.size;
  std::vector<std::string> inputs = {"query", "", ""};
  if (dice.one_in(3)) {
    made.input("query", dice.tensor({group.batch, group.added, width + 2 * key_width}));
  } else {
    inputs = {"query", "key", "value"};
    made.input("query", dice.tensor({group.batch, group.added, width}));
    made.input("key", dice.tensor({group.batch, group.added, key_width}));
    made.input("value", dice.tensor({group.batch, group.added, key_width}));
  }
  const Sizes cache = {group.batch, group.key_heads, group.past, group.size};
  for (const char* name : {"past_key", "past_value"}) {
    inputs.emplace_back(group.past == 0 ? "" : name);
    if (group.past > 0) made.input(name, dice.tensor(cache));
  }
  inputs.emplace_back("last");
  made.input("last", last_positions(dice, group));
  inputs.emplace_back("total");
  const Tensor total =
      Tensor::from<int32_t>(DataType::Int32, {1}, {{static_cast<int32_t>(group.total)}});
  made.constant("total", total);
  return inputs;
}

RandomGraph group_query(Dice& dice, const ops::Registry& registry) {
  const Group group = random_group(dice);
  RandomGraph made(registry, 17);
  std::vector<std::string> inputs = add_operands(dice, made, group);
  const bool is_rotated = dice.one_in(2);
  if (is_rotated) {
    const int64_t rows = group.total + dice.whole(0, 2);
    const int64_t half = dice.one_in(3) ? (group.size + 2) / 4 : group.size / 2;
    made.operand(dice, "cosines", dice.tensor({rows, half}));
    made.operand(dice, "sines", dice.tensor({rows, half}));
    inputs.insert(inputs.end(), {"cosines", "sines"});
    Tensor positions(DataType::Int64, {group.batch, group.added});
    const bool is_prompt = group.total == group.added;
    for (int64_t& each : positions.mutable_as<int64_t>()) {
      each = is_prompt ? 0 : dice.whole(0, rows - 1);
    }
    inputs.push_back(add_if(dice, made, 3, "positions", positions));
  } else {
    inputs.insert(inputs.end(), {"", "", ""});
  }
  const Sizes bias = {dice.one_in(2) ? 1 : group.batch, dice.one_in(2) ? 1 : group.heads(),
                      group.added, group.total};
  inputs.push_back(add_if(dice, made, 3, "bias", dice.tensor(bias)));
  inputs.push_back(add_if(dice, made, 4, "sinks", dice.tensor({group.heads()})));
  Attributes attributes = attributes_of({{"num_heads", group.heads()},
                                         {"kv_num_heads", group.key_heads},
                                         {"do_rotary", is_rotated ? 1 : 0},
                                         {"rotary_interleaved", dice.whole(0, 1)}});
  if (dice.one_in(3)) attributes.set("softcap", dice.number(0.5F, 3));
  if (dice.one_in(3)) attributes.set("scale", dice.number(0.1F, 1));
  if (dice.one_in(4)) attributes.set("smooth_softmax", int64_t{1});
  if (dice.one_in(5)) {
    attributes.set("causal", int64_t{0});
  } else if (dice.one_in(3)) {
    attributes.set("local_window_size", dice.whole(1, 40));
  }
  made.node("node", "com.microsoft.GroupQueryAttention", inputs,
            {"y", "present_key", "present_value"}, attributes);
  return made.ending_in("y", "present_key", "present_value");
}

RandomGraph rotary(Dice& dice, const ops::Registry& registry) {
  RandomGraph made(registry, 23);
  const int64_t batch = dice.whole(1, 3);
  const int64_t heads = dice.whole(1, 4);
  const int64_t count = dice.whole(1, 9);
  const int64_t half = dice.whole(1, 40);
  const int64_t size = 2 * half + (dice.one_in(3) ? 2 * dice.whole(1, 9) : 0);
  const bool is_of_microsoft = dice.one_in(2);
  const bool has_positions = is_of_microsoft || dice.one_in(2);
  const int64_t rows = count + dice.whole(0, 3);
  const Sizes angles = has_positions ? Sizes{rows, half} : Sizes{batch, count, half};
  made.input("x", dice.one_in(2) ? dice.tensor({batch, heads, count, size})
                                 : dice.tensor({batch, count, heads * size}));
  made.operand(dice, "cosines", dice.tensor(angles));
  made.operand(dice, "sines", dice.tensor(angles));
  Tensor positions(DataType::Int64, {batch, count});
  for (int64_t& each : positions.mutable_as<int64_t>()) each = dice.whole(-rows, rows - 1);
  if (is_of_microsoft && dice.one_in(2)) {
    positions = Tensor::from<int64_t>(DataType::Int64, {1}, {{dice.whole(0, rows - count)}});
  }
  if (has_positions) made.input("positions", positions);
  Attributes attributes = attributes_of({{"interleaved", dice.whole(0, 1)}, {"num_heads", heads}});
  if (size != 2 * half) attributes.set("rotary_embedding_dim", 2 * half);
  if (is_of_microsoft) {
    made.node("y", "com.microsoft.RotaryEmbedding", {"x", "positions", "cosines", "sines"},
              attributes);
  } else {
    made.node("y", "RotaryEmbedding", {"x", "cosines", "sines", has_positions ? "positions" : ""},
              attributes);
  }
  return made.ending_in("y");
}

TEST(NativeCachedAttention, RotaryEmbedding) {
  EXPECT_GE(check_each_target(172, 500, rotary).answered, 500);
}

TEST(NativeCachedAttention, GroupQueryAttention) {
  EXPECT_GE(check_each_target(171, 1500, group_query).answered, 1500);
}

}  // namespace
}  // namespace tessera
