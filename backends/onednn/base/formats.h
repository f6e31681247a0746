// The layouts of the contract as memory descriptors of oneDNN, and those that this backend
// provides.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dnnl.hpp"
#include "tessera/backend.h"

namespace tessera::onednn {

using Tag = dnnl::memory::format_tag;

// The layouts of the contract that this backend reads and writes.
enum class Format { RowMajor, Nhwc, Nchw8c, Nchw16c };

inline constexpr std::array kFormats = {Format::RowMajor, Format::Nhwc, Format::Nchw8c,
                                        Format::Nchw16c};

const char* layout_name(Format format);
std::optional<Format> format_named(std::string_view layout);

// Whether `format` supports tensors of this rank: row-major all, the others 3 to 5.
bool can_hold(Format format, size_t rank);

// A float32 tensor in `format`, which must support its rank. oneDNN has no tensors without
// dimensions, so a scalar becomes {1}. If nhwc has the bytes of row-major (one channel or one
// pixel), the descriptor is row-major.
dnnl::memory::desc describe(Format format, const std::vector<int64_t>& dims);

// The result `dims` of a pooling of `source`, both in `format`. Unlike describe() it keeps the
// strides of nhwc if only channels are left, without which the library has no fast code. All
// poolings must use it, so that no two of their descriptors differ only in the strides of axes of
// length 1.
dnnl::memory::desc describe_pooled(Format format, const std::vector<int64_t>& source,
                                   const std::vector<int64_t>& dims);

// A float32 tensor in a format that the primitive chooses.
dnnl::memory::desc describe_any(const std::vector<int64_t>& dims);

// The first of kFormats that `desc` has; nullopt if it has none.
std::optional<Format> format_of(const dnnl::memory::desc& desc);

// The name of the layout in which the host keeps a tensor of these sizes: row-major if the bytes
// are the same (one channel, or one pixel and whole blocks), so that nothing is converted.
const char* layout_name(Format format, const std::vector<int64_t>& dims);

// Same as layout_name(), for a descriptor. Throws Failure if it is in no layout of the contract.
const char* layout_of(const dnnl::memory::desc& desc);

// Sizes, strides and blocks as text, such as "64x3x7x7:f32:o16i3...". Descriptors with equal text
// store equal elements in the same order. nullopt for an opaque format of the library.
std::optional<std::string> format_text(const dnnl::memory::desc& desc);

// The reason why oneDNN cannot compute with `value` as a float32 tensor; nullopt if it can.
std::optional<std::string> explain_unusable(const plugin::Value& value);
// Throws Failure (TESSERA_UNSUPPORTED) with this reason, if there is one.
void check_usable(const plugin::Value& value);

// The layouts that this backend provides, with conversions between them (layouts.cc).
std::vector<plugin::Layout> all_layouts();

// Conversions between two of them that do not pass through row-major.
std::vector<plugin::Conversion> direct_conversions();

}  // namespace tessera::onednn
