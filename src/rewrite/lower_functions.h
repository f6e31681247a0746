// The replacements that lower_functions() makes, by family. Each writes the nodes that compute the
// same as `builder.replaced()`, which have candidates in more libraries, and returns false if it
// knows none for this node. The op's reference kernel shares no code with it.
#pragma once

#include <span>
#include <string_view>

#include "rewrite/node_builder.h"

namespace tessera {

struct FunctionLowering {
  std::string_view domain;
  std::string_view op;
  bool (*write)(NodeBuilder& builder);
};

std::span<const FunctionLowering> einsum_lowerings();         // lower_einsum.cc
std::span<const FunctionLowering> fused_lowerings();          // lower_fused.cc
std::span<const FunctionLowering> normalization_lowerings();  // lower_normalizations.cc
std::span<const FunctionLowering> attention_lowerings();      // lower_attention.cc
std::span<const FunctionLowering> plain_lowerings();          // lower_plain.cc

// Attributes from pairs of a name and a value.
Attributes attribute_list(std::initializer_list<std::pair<std::string, Attribute>> pairs);

// `id` in float32 if it has fewer bits, so that intermediate results are not rounded to them; else
// `id`.
ValueId widened(NodeBuilder& builder, ValueId id);
// Gives output `index` of the replaced node, converted to `element`.
void give_as(NodeBuilder& builder, size_t index, ValueId id, DataType element);

}  // namespace tessera
