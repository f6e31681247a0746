// How the contract's layouts and oneDNN's memory descriptors name the same bytes.
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

// The layouts of the contract that this backend reads and writes.
enum class Format { RowMajor, Nhwc, Nchw8c, Nchw16c };

inline constexpr std::array kFormats = {Format::RowMajor, Format::Nhwc, Format::Nchw8c,
                                        Format::Nchw16c};

const char* layout_name(Format format);
std::optional<Format> format_named(std::string_view layout);

// Whether a tensor of this rank can lie in `format`: row-major any, the others 3 to 5.
bool can_hold(Format format, size_t rank);

// float32 in `format`, which must be able to hold the rank; oneDNN has no tensors without
// dimensions, so a scalar becomes {1}.
// Where nhwc has the bytes of row-major (one channel, or one pixel) it is described as that.
dnnl::memory::desc describe(Format format, const std::vector<int64_t>& dims);

// The result `dims` of a pooling of `source`, both in `format`. Unlike describe() it keeps the
// strides of nhwc where only channels are left, without which the library has no fast code; all
// poolings must use it, so that no two descriptors of one differ in the strides of such axes only.
dnnl::memory::desc describe_pooled(Format format, const std::vector<int64_t>& source,
                                   const std::vector<int64_t>& dims);

// The same tensor with every format left to the primitive.
dnnl::memory::desc describe_any(const std::vector<int64_t>& dims);

// The first of kFormats that `desc` is; nullopt where it is none.
std::optional<Format> format_of(const dnnl::memory::desc& desc);

// Under which name the host keeps a tensor of these sizes in `format`: row-major where the bytes
// are the same (one channel, or one pixel and whole blocks), so that nothing is converted then.
const char* layout_name(Format format, const std::vector<int64_t>& dims);

// The same of a descriptor. Failure where it is none of the contract's layouts.
const char* layout_of(const dnnl::memory::desc& desc);

// Sizes, strides and blocks in one line, such as "64x3x7x7:f32:o16i3...". Descriptors with equal
// text lay equal elements out equally. nullopt for a format that the library keeps to itself.
std::optional<std::string> format_text(const dnnl::memory::desc& desc);

// Why oneDNN cannot compute with `value` as a float32 tensor; nullopt where it can.
std::optional<std::string> explain_unusable(const plugin::Value& value);

}  // namespace tessera::onednn
