// Gather, GatherND and GatherElements: slices and elements selected by index.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// A candidate with ports for data and indices; one value may be both.
plugin::Candidate gather_candidate(ProposeContext& context, const Node& node) {
  plugin::Candidate candidate = plugin::candidate_for(node);
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

// Copies slices of `slice_bytes`, selected by tuples of indices in each of `batches`.
struct SliceGather {
  std::vector<int64_t> dims;  // the axes that a tuple of indices selects in
  int64_t batches = 1;
  int64_t tuples = 0;      // in each batch
  bool is_shared = false;  // all batches use the same tuples
  int64_t slice_bytes = 0;
  RowLoop copy_row = find_row_loop();

  void run(RunContext& context, const Buffer& data, const Buffer& indices,
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

void offer_slices(ProposeContext& context, const Node& node, SliceGather gather) {
  plugin::Candidate candidate = gather_candidate(context, node);
  candidate.algorithm = "slices";
  candidate.build = [gather = std::move(gather)](const plugin::BuildOptions&) {
    return plugin::make_kernel(
        [gather](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
          gather.run(run, inputs.front(), inputs.back(), outputs[0]);
        });
  };
  context.add(std::move(candidate));
}

// Constant indices at equal distances are a slice, which is a strided copy. Gives whether it was
// offered.
bool offer_range(ProposeContext& context, const Node& node, size_t axis) {
  const plugin::Type from = node.input(0).type();
  auto indices = plugin::constant_integers(node.input(1));
  if (!indices || indices->empty()) return false;
  const int64_t dim = from.dims[axis];
  for (int64_t& index : *indices) {
    if (index < -dim || index >= dim) return false;
    if (index < 0) index += dim;
  }
  const int64_t step = indices->size() > 1 ? (*indices)[1] - (*indices)[0] : 1;
  for (size_t position = 1; position < indices->size(); ++position) {
    if ((*indices)[position] - (*indices)[position - 1] != step) return false;
  }
  PortCopy port_copy;
  port_copy.strides = strided_layout(TESSERA_LAYOUT_DEFAULT, from.dims).strides;
  port_copy.starts.assign(from.dims.size(), 0);
  port_copy.starts[axis] = indices->front();
  std::vector<int64_t> to = from.dims;
  to[axis] = static_cast<int64_t>(indices->size());
  const StridedLayout target = strided_layout(TESSERA_LAYOUT_DEFAULT, to);
  for (size_t position = 0; position < to.size(); ++position) {
    port_copy.axes.push_back({.count = to[position],
                              .input_axis = static_cast<int>(position),
                              .step = position == axis ? step : 1,
                              .to = target.strides[position]});
  }
  offer_copies(
      context, node,
      {.inputs = {node.input(0)}, .outputs = {node.output(0)}, .port_copies = {port_copy}});
  return true;
}

void offer_gather(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unindexable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type data = node.input(0).type();
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis"), data.dims.size());
  if (offer_range(context, node, axis)) return;
  SliceGather gather;
  gather.dims = {data.dims[axis]};
  gather.tuples = node.input(1).type().elements();
  gather.is_shared = true;
  gather.slice_bytes = plugin::element_bytes(data.data_type);
  for (size_t position = 0; position < data.dims.size(); ++position) {
    if (position < axis) gather.batches *= data.dims[position];
    if (position > axis) gather.slice_bytes *= data.dims[position];
  }
  offer_slices(context, node, gather);
}

void offer_gather_nd(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unindexable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type data = node.input(0).type();
  const plugin::Type indices = node.input(1).type();
  const int64_t batch_axes =
      node.version() >= kFirstBatchVersion ? node.attributes().get_int("batch_dims") : 0;
  const auto first = static_cast<size_t>(batch_axes);
  const int64_t length = indices.dims.back();
  SliceGather gather;
  for (size_t axis = 0; axis < first; ++axis) gather.batches *= indices.dims[axis];
  gather.tuples = 1;
  for (size_t axis = first; axis + 1 < indices.dims.size(); ++axis) {
    gather.tuples *= indices.dims[axis];
  }
  gather.slice_bytes = plugin::element_bytes(data.data_type);
  for (size_t axis = first; axis < data.dims.size(); ++axis) {
    if (static_cast<int64_t>(axis - first) < length) {
      gather.dims.push_back(data.dims[axis]);
    } else {
      gather.slice_bytes *= data.dims[axis];
    }
  }
  offer_slices(context, node, gather);
}

// Copies elements selected along one axis, line by line along the last axis.
struct ElementGather {
  std::vector<int64_t> dims;     // of the indices
  std::vector<int64_t> strides;  // of the data, 0 along the axis of the indices
  int64_t dim = 0;               // of the data along that axis
  int64_t step = 1;

  template <class T>
  void run(RunContext& context, const Buffer& data, const Buffer& indices,
           const Buffer& output) const {
    const int64_t length = dims.empty() ? 1 : dims.back();
    const int64_t stride = dims.empty() ? 0 : strides.back();
    int64_t lines = 1;
    for (size_t axis = 0; axis + 1 < dims.size(); ++axis) lines *= dims[axis];
    if (lines * length == 0) return;
    const Indices list(indices);
    const T* from = data.as<const T>();
    T* to = output.as<T>();
    const int64_t grain = std::max<int64_t>(1, kGrain / length);
    context.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const T* source = from + offset_of(line);
        for (int64_t column = 0; column < length; ++column) {
          const int64_t position = line * length + column;
          to[position] = source[column * stride + list.at(position, dim) * step];
        }
      }
    });
  }

  int64_t offset_of(int64_t line) const {
    int64_t offset = 0;
    for (size_t axis = dims.size() - 1; axis-- > 0;) {
      offset += line % dims[axis] * strides[axis];
      line /= dims[axis];
    }
    return offset;
  }
};

template <class T>
std::unique_ptr<plugin::Kernel> element_kernel(const ElementGather& gather) {
  return plugin::make_kernel(
      [gather](RunContext& run, std::span<const Buffer> inputs, std::span<const Buffer> outputs) {
        gather.run<T>(run, inputs.front(), inputs.back(), outputs[0]);
      });
}

void offer_gather_elements(ProposeContext& context, const Node& node) {
  if (const auto reason = explain_unindexable(node)) return context.refuse(node.id(), *reason);
  const plugin::Type data = node.input(0).type();
  const size_t axis = plugin::normalized_axis(node.attributes().get_int("axis"), data.dims.size());
  ElementGather gather;
  gather.dims = node.input(1).type().dims;
  gather.strides = strided_layout(TESSERA_LAYOUT_DEFAULT, data.dims).strides;
  gather.step = gather.strides[axis];
  gather.strides[axis] = 0;
  gather.dim = data.dims[axis];
  plugin::Candidate candidate = gather_candidate(context, node);
  candidate.algorithm = "elements";
  candidate.build = [gather,
                     bytes = plugin::element_bytes(data.data_type)](const plugin::BuildOptions&) {
    return find_loop_for_size(bytes, [&]<class T>() { return element_kernel<T>(gather); });
  };
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
