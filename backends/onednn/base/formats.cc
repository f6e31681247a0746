#include "base/formats.h"

#include <algorithm>

#include "tessera/backend_ops.h"

namespace tessera::onednn {

using dnnl::memory;

namespace {

constexpr size_t kMinChannelRank = 3;
constexpr size_t kMaxChannelRank = 5;
constexpr Tag kNhwcTags[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc};
constexpr Tag kNchw8cTags[] = {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c};
constexpr Tag kNchw16cTags[] = {Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c};

// Whether a tensor of these sizes has the same bytes in `format` as in row-major.
bool is_row_major(Format format, const memory::dims& dims) {
  if (format == Format::RowMajor || !can_hold(format, dims.size())) return true;
  const bool is_one_pixel =
      std::all_of(dims.begin() + 2, dims.end(), [](int64_t dim) { return dim == 1; });
  if (format == Format::Nhwc) return is_one_pixel || dims[1] == 1;
  return is_one_pixel && dims[1] % (format == Format::Nchw8c ? 8 : 16) == 0;
}

}  // namespace

const char* layout_name(Format format) {
  switch (format) {
    case Format::RowMajor:
      return TESSERA_LAYOUT_DEFAULT;
    case Format::Nhwc:
      return "nhwc";
    case Format::Nchw8c:
      return "nchw8c";
    case Format::Nchw16c:
      return "nchw16c";
  }
  return "";
}

std::optional<Format> format_named(std::string_view layout) {
  for (const Format format : kFormats) {
    if (layout == layout_name(format)) return format;
  }
  return std::nullopt;
}

bool can_hold(Format format, size_t rank) {
  if (format == Format::RowMajor) return rank <= DNNL_MAX_NDIMS;
  return rank >= kMinChannelRank && rank <= kMaxChannelRank;
}

memory::desc describe(Format format, const std::vector<int64_t>& dims) {
  constexpr auto kType = memory::data_type::f32;
  const memory::dims sizes = dims.empty() ? memory::dims{1} : dims;
  // The library treats descriptors as equal that differ only in the strides of axes of length 1,
  // and would then reuse the primitive of the other descriptor.
  if (format == Format::Nhwc && is_row_major(format, sizes)) format = Format::RowMajor;
  switch (format) {
    case Format::RowMajor:
      return {sizes, kType, plugin::dense_strides(sizes)};
    case Format::Nhwc:
      return {sizes, kType, kNhwcTags[sizes.size() - kMinChannelRank]};
    case Format::Nchw8c:
      return {sizes, kType, kNchw8cTags[sizes.size() - kMinChannelRank]};
    case Format::Nchw16c:
      return {sizes, kType, kNchw16cTags[sizes.size() - kMinChannelRank]};
  }
  return {};
}

memory::desc describe_pooled(Format format, const std::vector<int64_t>& source,
                             const std::vector<int64_t>& dims) {
  if (format != Format::Nhwc || is_row_major(format, source)) return describe(format, dims);
  return {dims, memory::data_type::f32, kNhwcTags[dims.size() - kMinChannelRank]};
}

memory::desc describe_any(const std::vector<int64_t>& dims) {
  return {dims.empty() ? memory::dims{1} : dims, memory::data_type::f32, Tag::any};
}

std::optional<Format> format_of(const memory::desc& desc) {
  const memory::dims dims = desc.get_dims();
  for (const Format format : kFormats) {
    if (can_hold(format, dims.size()) && describe(format, dims) == desc) return format;
  }
  return std::nullopt;
}

const char* layout_name(Format format, const std::vector<int64_t>& dims) {
  return layout_name(is_row_major(format, dims) ? Format::RowMajor : format);
}

const char* layout_of(const memory::desc& desc) {
  const std::optional<Format> format = format_of(desc);
  if (!format) {
    throw plugin::Failure(TESSERA_UNSUPPORTED, "needs a tensor in a format private to oneDNN (" +
                                                   format_text(desc).value_or("opaque") + ")");
  }
  return layout_name(*format, desc.get_dims());
}

std::optional<std::string> format_text(const memory::desc& desc) {
  if (desc.get_format_kind() != memory::format_kind::blocked) return std::nullopt;
  std::string text;
  const auto append = [&text](char mark, const memory::dims& numbers) {
    for (const int64_t number : numbers) {
      text += mark;
      text += std::to_string(number);
    }
  };
  append('x', desc.get_dims());
  append('p', desc.get_padded_dims());
  append('s', desc.get_strides());
  append('b', desc.get_inner_blks());
  append('i', desc.get_inner_idxs());
  return text + "t" + std::to_string(static_cast<int>(desc.get_data_type()));
}

std::optional<std::string> explain_unusable(const plugin::Value& value) {
  const plugin::Type type = value.type();
  const std::string name = "'" + value.name() + "'";
  if (type.data_type != TESSERA_FLOAT32) return "takes float32 only, which " + name + " is not";
  if (!type.is_known()) return "the shape of " + name + " is not known before running";
  if (type.elements() == 0) return name + " has no elements";
  if (type.rank > DNNL_MAX_NDIMS) return name + " has too many dimensions";
  return std::nullopt;
}

void check_usable(const plugin::Value& value) {
  if (const auto reason = explain_unusable(value)) {
    throw plugin::Failure(TESSERA_UNSUPPORTED, *reason);
  }
}

}  // namespace tessera::onednn
