#include "llvm_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include "tessera/backend.h"

namespace tessera::jit {

using plugin::Failure;

namespace {

// The best version first.
constexpr const char* kLibraries[] = {
    "libLLVM.so.19.1", "libLLVM-19.so.1", "libLLVM.so.18.1", "libLLVM-18.so.1",
    "libLLVM-17.so.1", "libLLVM-16.so.1", "libLLVM-15.so.1",
};
constexpr const char* kFolders[] = {"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu",
                                    "/usr/lib64", "/usr/lib", "/usr/local/lib"};
constexpr const char* kNoLibrary =
    "no LLVM of versions 15 to 19 can be loaded (Debian: apt-get install libllvm19)";

bool is_in_usual_folder() {
  for (const char* folder : kFolders) {
    for (const char* name : kLibraries) {
      if (access((std::string(folder) + "/" + name).c_str(), R_OK) == 0) return true;
    }
  }
  return false;
}

// Says which function the library lacks, or "".
std::string resolve(void* library, LlvmFunctions& functions) {
  std::string missing;
  const auto find = [&]<class Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
#define TESSERA_JIT_RESOLVE(result, name, parameters) find(functions.name, #name);
  TESSERA_JIT_LLVM_FUNCTIONS(TESSERA_JIT_RESOLVE)
#undef TESSERA_JIT_RESOLVE
  return missing;
}

// LLVM's list of targets is global in its library, and plug-ins of several instances share that.
void register_target(const LlvmFunctions& functions) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  functions.LLVMInitializeX86TargetInfo();
  functions.LLVMInitializeX86Target();
  functions.LLVMInitializeX86TargetMC();
  functions.LLVMInitializeX86AsmPrinter();
}

}  // namespace

const LlvmFunctions& LlvmLibrary::get() {
  const std::string missing = explain_missing();
  if (!missing.empty()) throw Failure(TESSERA_UNSUPPORTED, missing);
  return *functions_;
}

std::string LlvmLibrary::explain_absent() {
  {
    const std::lock_guard lock(mutex_);
    if (functions_ || !missing_.empty()) return missing_;
    if (!is_present_) is_present_ = is_in_usual_folder();
    if (*is_present_) return "";
  }
  return explain_missing();
}

std::string LlvmLibrary::explain_missing() {
  const std::lock_guard lock(mutex_);
  if (functions_ || !missing_.empty()) return missing_;
  for (const char* name : kLibraries) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    LlvmFunctions functions;
    const std::string lacking = resolve(library, functions);
    if (!lacking.empty()) {
      missing_ = std::string(name) + " has no " + lacking;
      continue;
    }
    register_target(functions);
    functions.library = name;
    functions_ = std::move(functions);
    missing_.clear();
    return "";
  }
  if (missing_.empty()) missing_ = kNoLibrary;
  return missing_;
}

}  // namespace tessera::jit
