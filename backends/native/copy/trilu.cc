// Trilu: the upper or lower triangle of matrices, the rest zero.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/any_address.h"
#include "base/families.h"
#include "base/grain.h"
#include "copy/copy_offer.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

struct Triangle {
  bool is_upper = true;
  bool has_diagonal = false;  // in the last input
  int64_t element_bytes = 1;

  void run(RunContext& context, std::span<const Buffer> inputs, const Buffer& output) const {
    const std::span<const int64_t> dims = inputs[0].sizes();
    const int64_t width = dims.back();
    const int64_t height = dims[dims.size() - 2];
    const int64_t rows = width == 0 ? 0 : inputs[0].elements() / width;
    if (rows == 0) return;
    // All diagonals beyond a corner of the matrix have the same effect.
    const int64_t wanted = has_diagonal ? *inputs.back().as<const int64_t>() : 0;
    const int64_t diagonal = std::clamp(wanted, -height - 1, width + 1);
    const char* from = inputs[0].as<const char>();
    char* to = output.as<char>();
    const int64_t grain = std::max<int64_t>(1, kGrain / width);
    context.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        // The first column of the upper part: the diagonal belongs to the part that is kept.
        const int64_t edge =
            std::clamp<int64_t>(row % height + diagonal + (is_upper ? 0 : 1), 0, width);
        const int64_t first = is_upper ? edge : 0;
        const int64_t count = is_upper ? width - edge : edge;
        const int64_t start = row * width * element_bytes;
        if (from != to && count > 0) {
          std::memcpy(to + start + first * element_bytes, from + start + first * element_bytes,
                      static_cast<size_t>(count * element_bytes));
        }
        const int64_t zeros = width - count;
        if (zeros > 0) {
          std::memset(to + start + (is_upper ? 0 : edge) * element_bytes, 0,
                      static_cast<size_t>(zeros * element_bytes));
        }
      }
    });
  }
};

void offer_trilu(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type type = node.input(0).type();
  const Triangle triangle = {.is_upper = node.attributes().get_int("upper", 1) != 0,
                             .has_diagonal = node.input(1).is_present(),
                             .element_bytes = plugin::element_bytes(type.data_type)};
  plugin::Candidate candidate = plugin::candidate_for(node);
  // A tensor that is data and diagonal must not be overwritten.
  if (candidate.inputs.size() == (triangle.has_diagonal ? 2U : 1U)) {
    candidate.outputs[0].requests = TESSERA_REQUEST_WRITE | TESSERA_REQUEST_IN_PLACE;
    candidate.outputs[0].in_place_input = 0;
  }
  candidate.built_for.emplace();
  candidate.optimistic_seconds =
      context.optimistic_seconds(0, 2 * static_cast<double>(type.dense_bytes()));
  candidate.build = [triangle](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [triangle](RunContext& run, std::span<const Buffer> inputs,
                   std::span<const Buffer> outputs) { triangle.run(run, inputs, outputs[0]); });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_trilus(ProposeContext& context) {
  context.for_each({"Trilu"}, [&](const Node& node) { offer_trilu(context, node); });
}

}  // namespace tessera::native
