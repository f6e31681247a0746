// Prints the kernel of a fused group as LLVM IR, in text that LLVM 15 to 19 read.
//
// The kernel has explicit vectors. Its sizes and strides are arguments, so groups of other sizes
// have the same text:
//
//   void kernel(std::byte* const* bases, const int64_t* strides, const int64_t* sizes)
//
// `bases` has the first element of each access (operands, then results); `strides` has kLoopCount
// strides in bytes for each access; `sizes` has one size, at least 1, for each Loop, and after them
// the number of rows, at most kMaxBlockRows, through which each pass goes at a time if the lanes
// are reduced. If there is a kept value (kept_value.h), `bases` has the memory of its rows, too,
// and `strides` has kKeptBlockStride and kKeptRowStride, which are between blocks of rows (divided
// by the number of rows) and between the rows of a block.
#pragma once

#include <string>

#include "kernel_loops.h"
#include "processor.h"
#include "tessera/backend_fusion.h"

namespace tessera::jit {

using KernelFunction = void(std::byte* const* bases, const int64_t* strides, const int64_t* sizes);

constexpr int64_t kMaxBlockRows = 8;
constexpr size_t kKeptBlockStride = 0;
constexpr size_t kKeptRowStride = 1;

constexpr const char* kKernelName = "kernel";
// The function that writes past the caches; exists only if KernelShape::is_streaming.
constexpr const char* kStreamName = "kernel_stream";

// A short form of the arguments that decide the text that print_llvm() returns for one target: the
// bytes of the instructions, and a line about the loops.
std::string kernel_source(const plugin::FusedGroup& group, const KernelShape& shape);

// Throws Failure (TESSERA_UNSUPPORTED) if the group is too large to compile in a reasonable time.
void check_size(const plugin::FusedGroup& group);

// Throws Failure (TESSERA_UNSUPPORTED) with the reason if the group has an operation or a type that
// the target cannot compute exactly, or if it is too large to compile in a reasonable time.
std::string print_llvm(const plugin::FusedGroup& group, const KernelShape& shape,
                       const Target& target);

// Whether a kernel can be printed, without printing it (check_printable.cc): binding asks for each
// group, and few of them are compiled. Throws a Failure if print_llvm() throws one for the same
// arguments; if a group has several reasons, perhaps with another of them. Takes a small part of
// the time of print_llvm().
void check_printable(const plugin::FusedGroup& group, const KernelShape& shape,
                     const Target& target);

}  // namespace tessera::jit
