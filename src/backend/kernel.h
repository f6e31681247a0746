// The owner of a kernel that a plug-in built.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backend/run_context.h"
#include "backend/status.h"
#include "tessera/backend_abi.h"

namespace tessera {

class Kernel {
 public:
  Kernel() = default;
  // Takes ownership of `face`. `backend` appears in errors; `source`, from which the kernel was
  // built, is kept alive as long as the kernel.
  Kernel(const tessera_kernel& face, std::string backend,
         std::shared_ptr<const void> source = nullptr)
      : face_(face), backend_(std::move(backend)), source_(std::move(source)) {}
  Kernel(Kernel&& other) noexcept
      : face_(std::exchange(other.face_, {})),
        backend_(std::move(other.backend_)),
        source_(std::move(other.source_)) {}
  Kernel& operator=(Kernel&& other) noexcept {
    std::swap(face_, other.face_);
    std::swap(backend_, other.backend_);
    std::swap(source_, other.source_);
    return *this;
  }
  ~Kernel() {
    if (face_.release != nullptr) face_.release(face_.self);
  }

  int64_t workspace_bytes() const { return face_.workspace_bytes; }

  bool can_be_saved() const { return face_.save != nullptr; }
  // The bytes from which its candidate's `load` restores the kernel. Throws the plug-in's failure.
  std::string save() const;

  // Runs the kernel on buffers in the order of its candidate's ports. Throws the kernel's failure
  // at `place`, naming the backend.
  void run(const std::string& place, RunContext& context, const tessera_buffer* inputs,
           const tessera_buffer* outputs) const {
    tessera_error error;
    error.struct_size = sizeof(error);
    error.message[0] = '\0';
    error.kind = TESSERA_INTERNAL;
    int32_t status = TESSERA_INTERNAL;
    try {
      status = face_.run(face_.self, context.face(), inputs, outputs, &error);
    } catch (...) {
      report(&error, TESSERA_INTERNAL, "an exception left its kernel");
    }
    status = context.checked(status, &error);
    if (status != TESSERA_OK) fail(place, error);
  }

  // Throws the failure of a run, described by `error`, at `place`, naming the backend.
  [[noreturn]] void fail(const std::string& place, const tessera_error& error) const;

  const tessera_kernel& face() const { return face_; }

 private:
  tessera_kernel face_ = {};
  std::string backend_;
  std::shared_ptr<const void> source_;
};

}  // namespace tessera
