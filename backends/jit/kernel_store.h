// Compiled kernels by their text: each is compiled once, kept in this process and as a blob of the
// host, and loaded in later processes without LLVM.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "blobs.h"
#include "code_image.h"
#include "llvm_library.h"
#include "processor.h"

namespace tessera::jit {

// What is kept of a kernel, also of one that cannot be compiled.
struct KernelRecord {
  std::string text;
  std::string compiler;          // which LLVM made it, for people
  int32_t failure = TESSERA_OK;  // else `log` says why there is no image
  std::string log;
  CodeImage image;
};

std::string bytes_of_record(const KernelRecord& record);
// Throws Failure (TESSERA_CORRUPT) if the bytes are damaged.
KernelRecord record_of_bytes(std::string_view bytes);

// A kernel that can run.
struct ReadyKernel {
  explicit ReadyKernel(KernelRecord given) : record(std::move(given)), code(record.image) {}

  KernelRecord record;
  LoadedCode code;
};

// Thread-safe.
class KernelStore {
 public:
  // `revision` names everything besides text and target on which machine code depends.
  KernelStore(const Target& target, Blobs blobs, const std::string& revision);

  const Target& target() const { return target_; }

  // The kernel with this text. Threads that ask for the same one at once wait for one compilation.
  // Throws Failure if it cannot be compiled; the same one again for the same text, unless LLVM was
  // missing.
  std::shared_ptr<const ReadyKernel> get(const std::string& text);
  // Whether get() needs no compiler.
  bool has(const std::string& text);
  // Adds a kernel that an earlier process made. Throws Failure if its code cannot be loaded.
  std::shared_ptr<const ReadyKernel> accept(KernelRecord record);

  // The kernel in assembly. Throws Failure as get() does.
  std::string assembly(const std::string& text);
  // Why nothing can be compiled, or "".
  std::string explain_missing_compiler() { return llvm_.explain_missing(); }
  // Counts a kernel that a group was built into.
  void count_kernel() { ++kernels_; }
  plugin::CompileCounts counts() const;

 private:
  struct Entry {
    std::mutex mutex;  // held while the kernel is looked up or compiled
    std::shared_ptr<const ReadyKernel> ready;
    std::optional<plugin::Failure> failure;
  };

  std::shared_ptr<Entry> entry_of(const std::string& text);
  std::string key_of(const std::string& text) const;
  std::optional<KernelRecord> stored(const std::string& text) const;
  KernelRecord compile_record(const std::string& text);
  void drop_unused();

  Target target_;
  Blobs blobs_;
  std::string identity_;
  LlvmLibrary llvm_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // by text
  std::atomic<int64_t> kernels_ = 0;
  std::atomic<int64_t> compiled_ = 0;
  std::atomic<int64_t> compile_nanoseconds_ = 0;
  std::atomic<int64_t> loaded_ = 0;
  std::atomic<int64_t> unique_ = 0;
};

}  // namespace tessera::jit
