// Memory of any size that takes a few pages, to run a kernel on tensors that nobody has memory for.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tessera::verification {

// `bytes` of memory with guard bytes on both sides, which are checked later. All pieces of
// kPieceBytes but the last one are the same pages: what is written to one is written to all.
class RepeatedMemory {
 public:
  static constexpr int64_t kPieceBytes = int64_t{1} << 20;
  static constexpr int64_t kGuardBytes = 4096;  // on each side

  // Begins with the `pattern` of kPieceBytes, again and again. Begins at a page. Throws
  // OutOfMemory.
  RepeatedMemory(int64_t bytes, std::span<const char> pattern);
  ~RepeatedMemory();
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;

  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // "" if all guard bytes are intact, else the damage, as GuardedMemory describes it.
  std::string explain_damage() const;

 private:
  int64_t bytes_;
  int64_t mapped_bytes_;
  char* mapped_ = nullptr;
  char* data_ = nullptr;
};

}  // namespace tessera::verification
