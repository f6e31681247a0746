// The owner of a kernel that a plug-in built.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backend/contract/run_context.h"
#include "backend/contract/status.h"
#include "tessera/backend_abi.h"

namespace tessera {

class Kernel {
 public:
  Kernel() = default;
  // Takes ownership of `abi`. `backend` appears in errors; `source`, from which the kernel was
  // built, is kept alive as long as the kernel.
  Kernel(const tessera_kernel& abi, std::string backend,
         std::shared_ptr<const void> source = nullptr)
      : abi_(abi), backend_(std::move(backend)), source_(std::move(source)) {}
  Kernel(Kernel&& other) noexcept
      : abi_(std::exchange(other.abi_, {})),
        backend_(std::move(other.backend_)),
        source_(std::move(other.source_)) {}
  Kernel& operator=(Kernel&& other) noexcept {
    std::swap(abi_, other.abi_);
    std::swap(backend_, other.backend_);
    std::swap(source_, other.source_);
    return *this;
  }
  ~Kernel() {
    if (abi_.release != nullptr) abi_.release(abi_.self);
  }

  int64_t workspace_bytes() const { return abi_.workspace_bytes; }

  bool can_be_saved() const { return abi_.save != nullptr; }
  // The bytes from which its candidate's `load` restores the kernel. Throws the plug-in's failure.
  std::string save() const;
  // The text of a compiled kernel in a form of TESSERA_KERNEL_; nullopt if it has none.
  std::optional<std::string> describe(int32_t form) const;

  // Runs the kernel on buffers in the order of its candidate's ports. Throws the kernel's failure
  // at `location`, naming the backend.
  void run(const std::string& location, RunContext& context, const tessera_buffer* inputs,
           const tessera_buffer* outputs) const {
    tessera_error error;
    error.struct_size = sizeof(error);
    error.message[0] = '\0';
    error.kind = TESSERA_INTERNAL;
    int32_t status = TESSERA_INTERNAL;
    try {
      status = abi_.run(abi_.self, context.abi(), inputs, outputs, &error);
    } catch (...) {
      report(&error, TESSERA_INTERNAL, "an exception left its kernel");
    }
    status = context.checked(status, &error);
    if (status != TESSERA_OK) fail(location, error);
  }

  // Throws the failure of a run, described by `error`, at `location`, naming the backend.
  [[noreturn]] void fail(const std::string& location, const tessera_error& error) const;

  const tessera_kernel& abi() const { return abi_; }

 private:
  tessera_kernel abi_ = {};
  std::string backend_;
  std::shared_ptr<const void> source_;
};

}  // namespace tessera
