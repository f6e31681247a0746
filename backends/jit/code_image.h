// Machine code as bytes that run at any address, and such bytes in executable memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "print_llvm.h"

namespace tessera::jit {

// The code of one kernel. Entries are positions in `code`; -1: there is no such function.
struct CodeImage {
  std::string code;
  int64_t kernel = -1;
  int64_t stream = -1;
};

// Lays out the code and the constants of an ELF object. Throws Failure (TESSERA_CORRUPT) if the
// object is damaged, or if its code needs anything outside of it (TESSERA_UNSUPPORTED).
CodeImage image_of_object(std::string_view object);

// An image in memory that may be executed and not written, until the object ends.
class LoadedCode {
 public:
  // Throws Failure: TESSERA_CORRUPT if an entry is not inside the code, TESSERA_OUT_OF_MEMORY if
  // there is no memory.
  explicit LoadedCode(const CodeImage& image);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  KernelFunction* kernel() const { return kernel_; }
  KernelFunction* stream() const { return stream_; }  // or null

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  KernelFunction* kernel_ = nullptr;
  KernelFunction* stream_ = nullptr;
};

}  // namespace tessera::jit
