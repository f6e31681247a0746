// Gather, GatherND and GatherElements: slices and elements selected by index.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/any_address.h"
#include "base/element_type.h"
#include "base/families.h"
#include "base/grain.h"
#include "base/indices.h"
#include "copy/copy_kernels.h"
#include "copy/copy_offer.h"
#include "hwy/cache_control.h"
#include "tessera/backend_ops.h"

namespace tessera::native {

using plugin::Buffer;
using plugin::Node;
using plugin::ProposeContext;
using plugin::RunContext;

namespace {

constexpr int32_t kFirstBatchVersion = 12;

std::optional<std::string> explain_unindexable(const Node& node) {
  if (auto reason = explain_uncopyable(node)) return reason;
  if (auto reason = explain_uncopyable(node.input(1))) return reason;
  if (!is_index_type(node.input(1).type().data_type)) return "takes indices of int32 or int64 only";
  return std::nullopt;
}

// A candidate with ports for data and indices, of any sizes; one value may be both.
plugin::Candidate gather_candidate(ProposeContext& context, const Node& node) {
  plugin::Candidate candidate = plugin::candidate_for(node);
  candidate.built_for.emplace();
  const auto output = static_cast<double>(node.output(0).type().dense_bytes());
  const auto indices = static_cast<double>(node.input(1).type().dense_bytes());
  candidate.optimistic_seconds = context.optimistic_seconds(0, 2 * output + indices);
  return candidate;
}

// Slices up to this size are copied without a library call each.
constexpr int64_t kMaxInlineSliceBytes = 2048;
// How far ahead slices are prefetched, because hardware does not predict them.
constexpr int64_t kAhead = 8;
constexpr int64_t kFetchedBytes = 512;
constexpr int64_t kLineBytes = 64;

// Copies a slice of `bytes`; usual short sizes without a call.
void copy_slice(const char* from, char* to, int64_t bytes) {
  switch (bytes) {
    case 1:
      *to = *from;
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    case 32:
      std::memcpy(to, from, 32);
      return;
    default:
      std::memcpy(to, from, static_cast<size_t>(bytes));
  }
}

// Copies slices of `slice_bytes`, selected by tuples of indices in each of `batches`. It points to
// dimensions of the buffers for which it was made.
struct SliceGather {
  std::span<const int64_t> dims;  // the axes that a tuple of indices selects in
  int64_t batches = 1;
  int64_t tuples = 1;      // in each batch
  bool is_shared = false;  // all batches use the same tuples
  int64_t slice_bytes = 0;

  void run(RunContext& context, RowLoop copy_row, const Buffer& data, const Buffer& indices,
           const Buffer& output) const {
    if (batches * tuples * slice_bytes == 0) return;
    const Indices list(indices);
    const auto length = static_cast<int64_t>(dims.size());
    int64_t slices = 1;
    for (const int64_t dim : dims) slices *= dim;
    const char* from = data.as<const char>();
    char* to = output.as<char>();
    const bool is_streamed = output.bytes >= kStreamedCopyBytes;
    const bool is_row = slice_bytes >= kMinRowBytes && slice_bytes <= kMaxInlineSliceBytes;
    const int64_t bytes_per_slice = std::max<int64_t>(slice_bytes, 4);
    const int64_t grain = std::max<int64_t>(1, kGrainBytes / bytes_per_slice);
    context.parallel_for(batches * tuples, grain, [&](int64_t begin, int64_t end) {
      int64_t batch = begin / tuples;
      int64_t tuple = begin % tuples;
      for (int64_t position = begin; position < end; ++position) {
        const int64_t first = (is_shared ? tuple : position) * length;
        if (length == 1 && tuple + kAhead < tuples) {
          fetch(from, batch * slices, slices, list[first + kAhead]);
        }
        int64_t source = 0;
        for (int64_t part = 0; part < length; ++part) {
          const int64_t dim = dims[static_cast<size_t>(part)];
          source = source * dim + list.at(first + part, dim);
        }
        const char* slice = from + (batch * slices + source) * slice_bytes;
        char* target = to + position * slice_bytes;
        if (is_row) {
          copy_row({.from = slice,
                    .to = target,
                    .count = 1,
                    .bytes = slice_bytes,
                    .is_streamed = is_streamed});
        } else {
          copy_slice(slice, target, slice_bytes);
        }
        if (++tuple < tuples) continue;
        tuple = 0;
        ++batch;
      }
      if (is_row && is_streamed) hwy::FlushStream();
    });
  }

  // Prefetches the slice at an index. An index out of range is reported when the slice is copied.
  void fetch(const char* from, int64_t first, int64_t dim, int64_t index) const {
    if (index < 0) index += dim;
    if (index < 0 || index >= dim) return;
    const char* slice = from + (first + index) * slice_bytes;
    const int64_t lines = std::min(slice_bytes, kFetchedBytes);
    for (int64_t line = 0; line < lines; line += kLineBytes) hwy::Prefetch(slice + line);
  }
};

// That of Gather.
SliceGather along_axis(const Buffer& data, const Buffer& indices, size_t axis,
                       int64_t element_bytes) {
  const std::span<const int64_t> dims = data.sizes();
  SliceGather gather;
  gather.dims = dims.subspan(axis, 1);
  gather.tuples = indices.elements();
  gather.is_shared = true;
  gather.slice_bytes = element_bytes;
  for (const int64_t dim : dims.first(axis)) gather.batches *= dim;
  for (const int64_t dim : dims.subspan(axis + 1)) gather.slice_bytes *= dim;
  return gather;
}

// That of GatherND.
SliceGather by_tuples(const Buffer& data, const Buffer& indices, size_t batch_axes,
                      int64_t element_bytes) {
  const std::span<const int64_t> dims = data.sizes();
  const std::span<const int64_t> of_list = indices.sizes();
  const auto length = static_cast<size_t>(of_list.back());
  SliceGather gather;
  gather.dims = dims.subspan(batch_axes, length);
  gather.slice_bytes = element_bytes;
  for (const int64_t dim : of_list.first(batch_axes)) gather.batches *= dim;
  for (const int64_t dim : of_list.subspan(batch_axes, of_list.size() - 1 - batch_axes)) {
    gather.tuples *= dim;
  }
  for (const int64_t dim : dims.subspan(batch_axes + length)) gather.slice_bytes *= dim;
  return gather;
}

// `gather_of` returns the gather for buffers of data and indices.
template <class GatherOf>
void offer_slices(ProposeContext& context, const Node& node, const GatherOf& gather_of) {
  plugin::Candidate candidate = gather_candidate(context, node);
  candidate.algorithm = "slices";
  candidate.build = [gather_of](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [gather_of, copy_row = find_row_loop()](RunContext& run, std::span<const Buffer> inputs,
                                                std::span<const Buffer> outputs) {
          const Buffer& data = inputs.front();
          const Buffer& indices = inputs.back();
          gather_of(data, indices).run(run, copy_row, data, indices, outputs[0]);
        });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

// Constant indices at equal distances along one axis.
struct IndexRange {
  size_t axis = 0;
  int64_t first = 0;  // may be negative
  int64_t step = 1;
  int64_t count = 0;
  int64_t min = 0;
  int64_t max = 0;

  void describe(const CopyPorts& ports, const AddCopy& add) const {
    const StorageAxes from = ports.input(0);
    const int64_t dim = from[axis].dim;
    if (min < -dim || max >= dim) {
      throw plugin::Failure(TESSERA_INVALID_ARGUMENT, "expected an index in [" +
                                                          std::to_string(-dim) + ", " +
                                                          std::to_string(dim) + "), found " +
                                                          std::to_string(min < -dim ? min : max));
    }
    PortCopy port_copy;
    port_copy.from_offset = (first < 0 ? first + dim : first) * from[axis].stride;
    int64_t to = 1;
    for (size_t position = from.count; position-- > 0;) {
      const bool is_along = position == axis;
      const int64_t length = is_along ? count : from[position].dim;
      port_copy.nest.add(length, from[position].stride * (is_along ? step : 1), to);
      to *= length;
    }
    add(port_copy);
  }
};

// Constant indices at equal distances are a slice, which is a strided copy. Gives whether it was
// offered.
bool offer_range(ProposeContext& context, const Node& node, size_t axis) {
  auto indices = plugin::constant_integers(node.input(1));
  if (!indices || indices->empty()) return false;
  const int64_t dim = node.input(0).type().dims[axis];
  const auto [min, max] = std::ranges::minmax(*indices);
  if (min < -dim || max >= dim) return false;
  CopyOffer offer = {.inputs = {node.input(0)}, .outputs = {node.output(0)}};
  // The distance between an index from the front and one from the back depends on the axis.
  const bool is_mixed = min < 0 && max >= 0;
  if (is_mixed) {
    offer.built_for = {{0, static_cast<int32_t>(axis)}};
    for (int64_t& index : *indices) index += index < 0 ? dim : 0;
  }
  const int64_t step = indices->size() > 1 ? (*indices)[1] - (*indices)[0] : 1;
  for (size_t position = 1; position < indices->size(); ++position) {
    if ((*indices)[position] - (*indices)[position - 1] != step) return false;
  }
  const IndexRange range = {.axis = axis,
                            .first = indices->front(),
                            .step = step,
                            .count = static_cast<int64_t>(indices->size()),
                            .min = is_mixed ? 0 : min,
                            .max = is_mixed ? dim - 1 : max};
  offer.describe = [range](const CopyPorts& ports, const AddCopy& add) {
    range.describe(ports, add);
  };
  offer_copies(context, node, offer);
  return true;
}

void offer_gather(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unindexable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type data = node.input(0).type();
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis"), data.dims.size());
  if (offer_range(context, node, axis)) return;
  offer_slices(context, node,
               [axis, bytes = plugin::element_bytes(data.data_type)](const Buffer& values,
                                                                     const Buffer& indices) {
                 return along_axis(values, indices, axis, bytes);
               });
}

void offer_gather_nd(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unindexable(node)) return context.refuse(node.id(), *reason);
  const int64_t batch_axes =
      node.version() >= kFirstBatchVersion ? node.attributes().get_int("batch_dims") : 0;
  offer_slices(context, node,
               [batch = static_cast<size_t>(batch_axes),
                bytes = plugin::element_bytes(node.input(0).type().data_type)](
                   const Buffer& values, const Buffer& indices) {
                 return by_tuples(values, indices, batch, bytes);
               });
}

// A line of a GatherElements: result i is from[i * stride + indices[i] * step].
struct ElementLine {
  int64_t dim = 0;  // of the data, along the axis
  int64_t stride = 0;
  int64_t step = 1;
  int64_t length = 0;
};

template <class T, class Index>
void gather_line(const ElementLine& line, const T* from, const Index* indices, T* to) {
  // All indices first, so that neither loop has a branch.
  int outside = 0;
  for (int64_t column = 0; column < line.length; ++column) {
    const int64_t index = indices[column];
    outside |= static_cast<int>(index < -line.dim) | static_cast<int>(index >= line.dim);
  }
  if (outside != 0) {
    for (int64_t column = 0; column < line.length; ++column) {
      check_index(indices[column], line.dim);
    }
  }
  for (int64_t column = 0; column < line.length; ++column) {
    const int64_t index = indices[column];
    to[column] = from[column * line.stride + (index < 0 ? index + line.dim : index) * line.step];
  }
}

// Copies elements selected along one axis, line by line along the last axis.
template <class T>
void gather_elements(RunContext& context, size_t axis, const Buffer& data, const Buffer& indices,
                     const Buffer& output) {
  const std::span<const int64_t> dims = indices.sizes();
  StorageAxes axes = storage_axes(StorageOrder(), data);
  ElementLine of_line;
  of_line.dim = axes[axis].dim;
  of_line.step = std::exchange(axes.axes[axis].stride, 0);
  of_line.length = dims.back();
  of_line.stride = axes[dims.size() - 1].stride;
  int64_t lines = 1;
  for (const int64_t size : dims.first(dims.size() - 1)) lines *= size;
  if (lines * of_line.length == 0) return;
  const bool is_wide = indices.data_type == TESSERA_INT64;
  const T* from = data.as<const T>();
  T* to = output.as<T>();
  const int64_t grain = std::max<int64_t>(1, kGrain / of_line.length);
  context.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const T* source = from;
      int64_t rest = line;
      for (size_t position = dims.size() - 1; position-- > 0;) {
        source += rest % dims[position] * axes[position].stride;
        rest /= dims[position];
      }
      const int64_t first = line * of_line.length;
      if (is_wide) {
        gather_line(of_line, source, indices.as<const int64_t>() + first, to + first);
      } else {
        gather_line(of_line, source, indices.as<const int32_t>() + first, to + first);
      }
    }
  });
}

template <class T>
std::unique_ptr<plugin::Kernel> element_kernel(size_t axis) {
  return plugin::make_kernel(
      [axis](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
        gather_elements<T>(run, axis, inputs.front(), inputs.back(), outputs[0]);
      });
}

void offer_gather_elements(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unindexable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type data = node.input(0).type();
  if (data.dims.size() >= StorageAxes::kMaxAxes) {
    return context.refuse(node.id(), "takes tensors of fewer axes only");
  }
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis"), data.dims.size());
  plugin::Candidate candidate = gather_candidate(context, node);
  candidate.algorithm = "elements";
  candidate.build = [axis,
                     bytes = plugin::element_bytes(data.data_type)](const plugin::BuildOptions&) {
    return find_loop_for_size(bytes, [&]<class T>() { return element_kernel<T>(axis); });
  };
  accept_any_address(context.graph(), candidate);
  context.add(std::move(candidate));
}

}  // namespace

void propose_gathers(ProposeContext& context) {
  context.for_each({"Gather"}, [&](const Node& node) { offer_gather(context, node); });
  context.for_each({"GatherND"}, [&](const Node& node) { offer_gather_nd(context, node); });
  context.for_each({"GatherElements"},
                   [&](const Node& node) { offer_gather_elements(context, node); });
}

}  // namespace tessera::native
