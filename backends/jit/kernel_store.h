// Compiled kernels by their source: each is compiled once, kept in this process and as a blob of
// the host, and loaded in later processes without LLVM.
//
// The source of a kernel is the canonical expression of its group and the shape of its loops
// (kernel_source() in print_llvm.h). It decides LLVM's text, which is much longer, and is printed
// only if the kernel must be compiled.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "code_image.h"
#include "llvm_library.h"
#include "processor.h"
#include "tessera/backend_blobs.h"

namespace tessera::jit {

// The stored form of a kernel, or of the failure to compile it.
struct KernelRecord {
  std::string source;
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
  KernelStore(const Target& target, plugin::Blobs blobs, const std::string& revision);

  const Target& target() const { return target_; }

  // Returns LLVM's text of a kernel; throws Failure if there is none.
  using Print = std::function<std::string()>;

  // The kernel with this source; `print` is called if it must be compiled. Threads and processes
  // that ask for the same one at once wait for one compilation, as far as the host stores blobs.
  // Throws Failure if it cannot be compiled, and the same Failure again for the same source, unless
  // LLVM was missing.
  std::shared_ptr<const ReadyKernel> get(const std::string& source, const Print& print);
  // Whether get() needs no compiler.
  bool has(const std::string& source);
  // Calls `check`, which throws Failure if the kernel has no text, unless it has one for certain:
  // models ask again and again for the same kernels.
  void check(const std::string& source, const std::function<void()>& check_printable);
  // Adds a kernel that an earlier process made. Throws Failure if its code cannot be loaded.
  std::shared_ptr<const ReadyKernel> accept(KernelRecord record);

  // LLVM's text in assembly. Throws Failure if it cannot be compiled.
  std::string assembly(const std::string& text);
  // Why nothing can be compiled, or "".
  std::string explain_missing_compiler() { return llvm_.explain_missing(); }
  // Same as explain_missing_compiler(), but does not open the compiler; see LlvmLibrary.
  std::string explain_absent_compiler() { return llvm_.explain_absent(); }
  // Counts a kernel that a group was built into.
  void count_kernel() { ++kernels_; }
  plugin::CompileCounts counts() const;

 private:
  struct Entry {
    std::mutex mutex;  // held while the kernel is looked up or compiled
    std::shared_ptr<const ReadyKernel> ready;
    std::optional<plugin::Failure> failure;
  };

  std::shared_ptr<Entry> entry_of(const std::string& source);
  std::string key_of(const std::string& source) const;
  std::optional<KernelRecord> stored(const std::string& source) const;
  // Makes the kernel of a record, or keeps its failure. Throws Failure if it cannot be loaded.
  static void take(KernelRecord record, Entry& entry);
  // Takes what the host keeps; returns false if there is nothing or it is damaged.
  bool take_stored(const std::string& source, Entry& entry);
  KernelRecord compile_record(const std::string& source, const Print& print);
  void drop_unused();

  Target target_;
  plugin::Blobs blobs_;
  std::string identity_;
  LlvmLibrary llvm_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;  // by source
  std::set<std::string> printable_;                        // sources
  std::atomic<int64_t> kernels_ = 0;
  std::atomic<int64_t> compiled_ = 0;
  std::atomic<int64_t> compile_nanoseconds_ = 0;
  std::atomic<int64_t> loaded_ = 0;
  std::atomic<int64_t> unique_ = 0;
};

}  // namespace tessera::jit
