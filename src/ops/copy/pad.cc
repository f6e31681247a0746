// Pad: adds elements at both ends of the axes, or removes them if a pad is negative. The pads are
// attributes until version 10 and inputs from 11 on; from 18 on they may apply to a subset of axes.
// In com.microsoft they are an input, which may be a row of a matrix.
#include <algorithm>
#include <cstring>

#include "ops/domains.h"
#include "ops/index_reader.h"
#include "ops/op.h"
#include "ops/shape_rules.h"
#include "ops/strided_view.h"
#include "ops/visit_type.h"

namespace tessera::ops {
namespace {

constexpr int kPadsInputVersion = 11;
constexpr int kFirstWrapVersion = 19;
constexpr int64_t kFill = -1;

bool has_pads_input(const Node& node) {
  return !node.domain.empty() || node.version >= kPadsInputVersion;
}

// The pads of one axis.
struct Pads {
  int64_t begin = 0;
  int64_t end = 0;
};

// The pads of each axis of the data. If `axes` is empty, `pads` covers all axes.
std::pmr::vector<Pads> pads_by_axis(
    std::span<const int64_t> pads, std::span<const int64_t> axes, size_t rank,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  std::pmr::vector<Pads> result(rank, memory);
  const size_t count = pads.size() / 2;
  for (size_t index = 0; index < count; ++index) {
    int64_t axis = axes.empty() ? static_cast<int64_t>(index) : axes[index];
    if (axis < 0) axis += static_cast<int64_t>(rank);
    result[static_cast<size_t>(axis)] = {pads[index], pads[index + count]};
  }
  return result;
}

void check_mode(const InferContext& context) {
  const std::string& mode = context.node().attributes.get_string("mode");
  const bool has_wrap = context.version() >= kFirstWrapVersion;
  if (mode == "constant" || mode == "reflect" || mode == "edge" || (has_wrap && mode == "wrap")) {
    return;
  }
  context.fail(std::string("expected mode 'constant', 'reflect'") +
               (has_wrap ? ", 'edge' or 'wrap'" : " or 'edge'") + ", found '" + mode + "'");
}

Dim padded_dim(const InferContext& context, const Dim& dim, const Pads& pads) {
  int64_t sum = 0;
  const auto fail_overflow = [&] {
    context.fail("expected a dimension that fits 64 bits, found " + dim.text() + " with pads " +
                 std::to_string(pads.begin) + " and " + std::to_string(pads.end));
  };
  const bool has_opposite = pads.begin != INT64_MIN && pads.end != INT64_MIN;
  if (!has_opposite || __builtin_add_overflow(pads.begin, pads.end, &sum)) fail_overflow();
  if (!dim.is_known()) return add(dim, sum);
  int64_t padded = 0;
  if (__builtin_add_overflow(dim.value(), sum, &padded)) fail_overflow();
  if (padded < 0) {
    context.fail("expected pads that leave a dimension of at least 0, found " + dim.text() +
                 " with pads " + std::to_string(pads.begin) + " and " + std::to_string(pads.end));
  }
  // The other modes need source elements that remain after negative pads.
  const bool is_constant = context.node().attributes.get_string("mode") == "constant";
  const __int128 kept = static_cast<__int128>(dim.value()) + std::min<int64_t>(0, pads.begin) +
                        std::min<int64_t>(0, pads.end);
  if (!is_constant && padded > 0 && kept <= 0) {
    context.fail("expected elements to repeat, found dimension " + dim.text() + " with pads " +
                 std::to_string(pads.begin) + " and " + std::to_string(pads.end));
  }
  return padded;
}

// The elements of input 'pads'. com.microsoft also takes a matrix of one row.
std::optional<std::vector<int64_t>> pads_input(const InferContext& context) {
  const Shape* shape = context.shape(1);
  const bool is_row = !context.node().domain.empty() && shape != nullptr && shape->size() == 2 &&
                      (!shape->front().is_known() || shape->front() == Dim(1));
  return is_row ? context.known_integers(1) : integer_list(context, 1);
}

// The pads of a node and their axes as far as the rule knows them; nullopt if something is unknown.
std::optional<std::pmr::vector<Pads>> known_pads(const InferContext& context, int64_t rank) {
  std::optional<std::vector<int64_t>> pads;
  std::vector<int64_t> axes;
  int64_t count = rank;
  if (!has_pads_input(context.node())) {
    pads = context.node().attributes.get_ints("pads");
  } else {
    pads = pads_input(context);
    if (context.has_input(3)) {
      const auto given = integer_list(context, 3);
      if (!given) return std::nullopt;
      axes = normalized_axes(context, *given, rank);
      count = static_cast<int64_t>(axes.size());
    }
  }
  if (!pads) return std::nullopt;
  if (static_cast<int64_t>(pads->size()) != 2 * count) {
    context.fail("expected " + std::to_string(2 * count) + " pads for " + std::to_string(count) +
                 " axes, found " + std::to_string(pads->size()));
  }
  return pads_by_axis(*pads, axes, static_cast<size_t>(rank));
}

void infer_pad(InferContext& context) {
  check_mode(context);
  const bool has_element = context.element(0) != DataType::Undefined;
  if (!has_pads_input(context.node()) && has_element && !kFloatTypes.contains(context.element(0))) {
    context.fail_input(0, "expected " + kFloatTypes.text() + " before version 11, found " +
                              std::string(name(context.element(0))));
  }
  if (context.has_input(2)) {
    const Shape* shape = context.shape(2);
    if (shape != nullptr && is_known(*shape) && product(*shape) != Dim(1)) {
      context.fail_input(2, "expected one element, found shape " + text(*shape));
    }
  }
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, context.element(0));
  const auto rank = static_cast<int64_t>(shape->size());
  const auto pads = known_pads(context, rank);
  if (!pads) return context.set_output(0, context.element(0), unknown_shape(context, 0, rank));
  Shape padded;
  for (size_t axis = 0; axis < shape->size(); ++axis) {
    padded.push_back(padded_dim(context, (*shape)[axis], (*pads)[axis]));
  }
  context.set_output(0, context.element(0), padded);
}

int64_t remainder(int64_t value, int64_t period) {
  const int64_t rest = value % period;
  return rest < 0 ? rest + period : rest;
}

// Sets the source coordinate for each coordinate of one output axis. Negative pads are applied
// first; the rest [first, first + kept) is mirrored or repeated.
void fill_table(const std::string& mode, int64_t dim, const Pads& pads, std::span<int64_t> table) {
  const int64_t first = std::max<int64_t>(0, -pads.begin);
  const int64_t kept = dim + std::min<int64_t>(0, pads.begin) + std::min<int64_t>(0, pads.end);
  int64_t source = -pads.begin;
  for (int64_t& entry : table) {
    if (mode == "constant") {
      entry = source >= 0 && source < dim ? source : kFill;
    } else if (mode == "edge") {
      entry = std::clamp(source, first, first + kept - 1);
    } else if (mode == "wrap") {
      entry = first + remainder(source - first, kept);
    } else if (kept == 1) {
      entry = first;
    } else {
      const int64_t phase = remainder(source - first, 2 * (kept - 1));
      entry = first + std::min(phase, 2 * (kept - 1) - phase);
    }
    ++source;
  }
}

void run_pad(const KernelCall& call) {
  const TensorView& input = call.inputs[0];
  const MutableTensorView& output = call.outputs[0];
  if (output.elements == 0) return;
  const Attributes& attributes = call.node.attributes;
  uint64_t fill = 0;  // zero has the same bits in every type
  if (!has_pads_input(call.node)) {
    visit_floating(input.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T value = T(static_cast<compute_t<T>>(attributes.get_float("value")));
      std::memcpy(&fill, &value, sizeof value);
    });
  } else if (call.has_input(2)) {
    std::memcpy(&fill, call.inputs[2].data, static_cast<size_t>(element_bytes(input.type)));
  }
  const std::pmr::vector<Pads> pads = pads_by_axis(
      integers_of(call, "pads", 1), integers_of(call, 3), input.dims.size(), &call.scratch);
  SourceTables tables(input.dims.size(), &call.scratch);
  for (size_t axis = 0; axis < tables.size(); ++axis) {
    tables[axis].resize(static_cast<size_t>(output.dims[axis]));
    fill_table(attributes.get_string("mode"), input.dims[axis], pads[axis], tables[axis]);
  }
  copy_indexed(call, tables, &fill);
}

}  // namespace

std::vector<Op> pad_ops() {
  Op pad = {.name = "Pad",
            .versions = {2, 11, 13, 18, 19, 21, 23, 24, 25},
            .inputs = {{"data", "T"},
                       {"pads", "tensor(int64)", Arity::Required, 11},
                       {"constant_value", "T", Arity::Optional, 11},
                       {"axes", "Tind", Arity::Optional, 18}},
            .outputs = {{"output", "T"}},
            .type_variables = {{"T", kAllTypesAndStrings, small_types_since(21)},
                               {"tensor(int64)", kInt64Type},
                               {"Tind", kIndexTypes}},
            .attributes = {{"mode", AttributeKind::String, std::string("constant")},
                           {"pads", AttributeKind::Ints, std::nullopt, 2, 10, true},
                           {"value", AttributeKind::Float, 0.0F, 1, 10}},
            .infer = infer_pad,
            .flops = no_flops,
            .kernel = run_pad};
  Op older = pad;
  older.domain = kMicrosoftDomain;
  older.versions = {1};
  older.inputs = {{"data", "T"}, {"pads", "tensor(int64)"}, {"value", "T", Arity::Optional}};
  older.attributes.resize(1);
  return {pad, older};
}

}  // namespace tessera::ops
