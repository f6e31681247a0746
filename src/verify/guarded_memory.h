// Memory that shows who wrote beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tessera::verification {

// `bytes` of memory with guard bytes on both sides. Its start is a multiple of `alignment_bytes`
// (a power of two, at least 1) and of no larger power of two, so that a kernel which counts on more
// than it asked for fails.
class GuardedMemory {
 public:
  static constexpr int64_t kGuardBytes = 512;

  GuardedMemory(int64_t bytes, int64_t alignment_bytes, uint8_t fill);

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  std::span<const char> contents() const { return {data_, static_cast<size_t>(bytes_)}; }

  // "" where all guard bytes are as they were, else which one is not: "writes 3 bytes before its
  // start", "writes up to byte 130 of 128".
  std::string explain_damage() const;

 private:
  int64_t bytes_;
  std::unique_ptr<char[]> memory_;
  char* data_ = nullptr;
};

}  // namespace tessera::verification
