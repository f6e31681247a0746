// OneHot: each index becomes a line of `depth` elements, one of which is set.
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "base/any_address.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/grain.h"
#include "copy/copy_kernels.h"
#include "copy/copy_offer.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

// The integer part of an index; the largest integer if it has none.
template <class T>
int64_t whole(T stored) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  if constexpr (std::is_floating_point_v<T>) {
    return std::abs(stored) < static_cast<T>(0x1p62) ? static_cast<int64_t>(stored) : kNone;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return stored > uint64_t{kNone} ? kNone : static_cast<int64_t>(stored);
  } else {
    return stored;
  }
}

constexpr int kFirstWrappingVersion = 11;

// The output is [outer, depth, inner]; there are outer x inner indices.
struct Lines {
  int64_t outer = 1;
  int64_t depth = 0;
  int64_t inner = 1;
  bool counts_from_end = true;  // negative indices, since version 11
};

Lines lines_of(std::span<const int64_t> dims, size_t axis) {
  Lines lines;
  for (size_t position = 0; position < dims.size(); ++position) {
    if (position < axis) lines.outer *= dims[position];
    if (position > axis) lines.inner *= dims[position];
  }
  lines.depth = dims[axis];
  return lines;
}

using PutOn = void (*)(const Lines& lines, const void* indices, const char* on, char* to,
                       int64_t begin, int64_t end);

// Stores *on at the positions that indices [begin, end) select.
template <class T, class E>
void put_on(const Lines& lines, const void* indices, const char* on, char* to, int64_t begin,
            int64_t end) {
  E element;
  std::memcpy(&element, on, sizeof(E));
  for (int64_t index = begin; index < end; ++index) {
    int64_t position = whole(static_cast<const T*>(indices)[index]);
    const int64_t lowest = lines.counts_from_end ? -lines.depth : 0;
    if (position < lowest || position >= lines.depth) continue;
    if (position < 0) position += lines.depth;
    const int64_t target =
        (index / lines.inner * lines.depth + position) * lines.inner + index % lines.inner;
    std::memcpy(to + target * static_cast<int64_t>(sizeof(E)), &element, sizeof(E));
  }
}

// Null for indices of 16-bit floating-point types.
PutOn find_put_on(int32_t index_type, int64_t element_bytes) {
  return find_number_loop(index_type, [&]<class T>() {
    return find_loop_for_size(element_bytes, []<class E>() -> PutOn { return put_on<T, E>; });
  });
}

void offer_one_hot(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_uncopyable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type output = node.output(0).type();
  const int64_t element_bytes = plugin::element_bytes(output.data_type);
  const PutOn put = find_put_on(node.input(0).type().data_type, element_bytes);
  if (put == nullptr) return context.refuse(node.id(), "takes no indices of this element type");
  const size_t axis =
      plugin::normalized_axis(node.attributes().get_int("axis", -1), output.dims.size());
  plugin::Candidate candidate = plugin::candidate_for(node);
  const size_t values = port_of(candidate, node.input(2));
  const size_t indices = port_of(candidate, node.input(0));
  const bool counts_from_end = node.version() >= kFirstWrappingVersion;
  candidate.built_for.emplace();
  candidate.optimistic_seconds =
      context.optimistic_seconds(0, static_cast<double>(output.dense_bytes()));
  candidate.build = [=](const plugin::BuildOptions&) {
    const CopyLoops* loops = loops_for(find_copy_loops(), element_bytes);
    return plugin::make_kernel(
        [=](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          Lines lines = lines_of(outputs[0].sizes(), axis);
          lines.counts_from_end = counts_from_end;
          const char* off = inputs[values].as<const char>();
          char* to = outputs[0].as<char>();
          const int64_t elements = lines.outer * lines.depth * lines.inner;
          run.parallel_for(elements, kGrain, [&](int64_t begin, int64_t end) {
            loops->fill(off, to + begin * element_bytes, end - begin);
          });
          if (elements == 0) return;
          run.parallel_for(lines.outer * lines.inner, kGrain, [&](int64_t begin, int64_t end) {
            put(lines, inputs[indices].data, off + element_bytes, to, begin, end);
          });
        });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_one_hots(ProposeContext& context) {
  context.for_each({"OneHot"}, [&](const Node& node) { offer_one_hot(context, node); });
}

}  // namespace tessera::native
