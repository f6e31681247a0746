#include "quantized/integer_offer.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/refusal.h"
#include "quantized/region.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Candidate;
using plugin::Node;
using plugin::ProposeContext;
using plugin::Value;

namespace {

constexpr int64_t kMaxExactDepth = (int64_t{1} << 31) / (255 * 255);

bool is_real_role(size_t role) {
  return role == kLeftScale || role == kRightScale || role == kScale || role == kRealBias;
}

bool is_zero_role(size_t role) { return role == kLeftZero || role == kRightZero || role == kZero; }

// Whether all zero points of weights are 0, so that sums of rows need not be computed.
bool has_zeros_of_zero(const Value& zero) {
  if (!zero.is_constant() || zero.constant() == nullptr) return false;
  if (zero.type().data_type != TESSERA_INT8) return false;
  return std::ranges::all_of(zero.constant_as<int8_t>(), [](int8_t each) { return each == 0; });
}

void set_result(const IntegerOffer& offer, IntegerWork& work) {
  const int32_t type = offer.result.type().data_type;
  work.low = -std::numeric_limits<float>::infinity();
  work.high = std::numeric_limits<float>::infinity();
  if (type == TESSERA_INT32) {
    work.to = SumsTo::Integers;
  } else if (type == TESSERA_FLOAT32) {
    work.to = SumsTo::Reals;
  } else if (is_byte_type(type) && offer.input(kZero).is_present()) {
    work.to = SumsTo::Bytes;
    work.is_result_signed = type == TESSERA_INT8;
    work.lowest = work.is_result_signed ? -128 : 0;
    work.highest = work.is_result_signed ? 127 : 255;
  } else {
    refuse("has no integer kernel for this type of result");
  }
}

}  // namespace

IntegerOffer offer_of_node(const Node& node, const IntegerRoles& inputs) {
  IntegerOffer offer = {
      .node = node, .nodes = {node.id()}, .inputs = {}, .result = node.output(0), .work = {}};
  for (const int32_t input : inputs.at) {
    offer.inputs.push_back(input < 0 ? Value(nullptr, -1) : node.input(static_cast<size_t>(input)));
  }
  for (size_t role = 0; role < kIntegerRoles; ++role) {
    if (!offer.inputs[role].is_present()) continue;
    const plugin::Type type = offer.inputs[role].type();
    if (!type.is_known()) refuse("takes tensors of known shape only");
    if (is_real_role(role) && type.data_type != TESSERA_FLOAT32) {
      refuse("takes scales of float32 only");
    }
    if ((is_zero_role(role) || role == kRight) && !is_byte_type(type.data_type)) {
      refuse("takes bytes only");
    }
  }
  Value& right_zero = offer.inputs[kRightZero];
  if (right_zero.is_present() && has_zeros_of_zero(right_zero)) right_zero = Value(nullptr, -1);
  if (!offer.result.type().is_known()) refuse("takes tensors of known shape only");
  if (offer.result.type().elements() == 0) refuse("the result has no elements");
  const int32_t left = offer.input(kLeft).type().data_type;
  IntegerWork& work = offer.work;
  work.is_left_signed = left == TESSERA_INT8;
  work.is_dynamic = left == TESSERA_FLOAT32;
  if (!is_byte_type(left) && !work.is_dynamic) refuse("takes bytes only");
  work.is_right_signed = offer.input(kRight).type().data_type == TESSERA_INT8;
  set_result(offer, work);
  return offer;
}

void check_by_column(const IntegerOffer& offer, int64_t columns) {
  if (offer.has_checked_columns) return;
  for (size_t role = kLeftScale; role < kIntegerRoles; ++role) {
    if (!offer.inputs[role].is_present()) continue;
    const plugin::Type type = offer.inputs[role].type();
    if (type.elements() == 1) continue;
    const bool may_differ =
        role == kRightScale || role == kRightZero || role == kIntegerBias || role == kRealBias;
    const bool is_list = std::ranges::count(type.dims, int64_t{1}) == type.rank - 1;
    if (!may_differ || !is_list || type.dims.back() != columns) {
      refuse("takes scales, zero points and biases of all elements or of columns only");
    }
  }
}

void check_depth(const IntegerOffer& offer, int64_t depth) {
  if (offer.work.to != SumsTo::Integers && depth > kMaxExactDepth) {
    refuse("adds up so many products that their sums may exceed 32 bits");
  }
}

Candidate integer_candidate(IntegerOffer& offer, const char* algorithm, const char* left_layout,
                            const char* result_layout, std::optional<plugin::Pack> pack) {
  Candidate candidate;
  candidate.nodes = offer.nodes;
  candidate.algorithm = algorithm;
  candidate.built_for.emplace();
  IntegerRoles& ports = offer.work.ports;
  ports = {};
  for (size_t role = 0; role < kIntegerRoles; ++role) {
    const Value& value = offer.inputs[role];
    if (!value.is_present()) continue;
    ports.at[role] =
        plugin::input_port(candidate, value, role == kRight ? pack : std::optional<plugin::Pack>());
  }
  candidate.inputs[ports.of(kLeft)].layout = left_layout;
  if (pack) {
    for (int32_t axis = 0; axis < offer.input(kRight).type().rank; ++axis) {
      candidate.built_for->push_back({ports.at[kRight], axis});
    }
  }
  candidate.outputs.push_back({.value = offer.result.id(), .layout = result_layout});
  return candidate;
}

void add_integer_candidate(ProposeContext& context, Candidate candidate, const IntegerOffer& offer,
                           const SizedProduct& proposed) {
  const int64_t threads = context.options().threads;
  candidate.workspace_bytes = integer_workspace(offer.work, proposed, threads);
  candidate.workspace_for = [work = offer.work, threads](std::span<const Buffer> inputs,
                                                         std::span<const Buffer> outputs) {
    return integer_workspace(work, work.sized(inputs, outputs), threads);
  };
  const auto bytes = static_cast<double>(offer.input(kLeft).type().dense_bytes() +
                                         offer.input(kRight).type().dense_bytes() +
                                         offer.result.type().dense_bytes());
  // A processor multiplies four times as many bytes at a time as float32 numbers.
  candidate.optimistic_seconds = context.optimistic_seconds(proposed.product.flops() / 4, bytes);
  candidate.build = [work = offer.work, proposed](const plugin::BuildOptions& options) {
    return make_integer_kernel(work, proposed, options.threads);
  };
  context.add(std::move(candidate));
}

}  // namespace tessera::native
