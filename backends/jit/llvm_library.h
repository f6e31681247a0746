// The functions of libLLVM's C interface that compile.cc uses. The library is opened when it is
// first needed, and never closed. Its headers are not needed: the interface keeps its binary form.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace tessera::jit {

// LLVM's objects, and the numbers of its enumerations that are used.
struct LlvmContext;
struct LlvmModule;
struct LlvmBuffer;
struct LlvmTarget;
struct LlvmTargetMachine;
struct LlvmTargetData;
struct LlvmPassOptions;
struct LlvmError;
struct LlvmDiagnostic;
using LlvmDiagnosticHandler = void (*)(LlvmDiagnostic*, void*);

constexpr int kLlvmOptimizeDefault = 2;
constexpr int kLlvmRelocationPic = 2;
constexpr int kLlvmCodeModelDefault = 0;
constexpr int kLlvmAssemblyFile = 0;
constexpr int kLlvmObjectFile = 1;
constexpr int kLlvmReturnStatus = 2;
constexpr int kLlvmSeverityError = 0;

// X(result, name, parameters): the functions.
#define TESSERA_JIT_LLVM_FUNCTIONS(X)                                                            \
  X(LlvmContext*, LLVMContextCreate, ())                                                         \
  X(void, LLVMContextDispose, (LlvmContext*))                                                    \
  X(void, LLVMContextSetDiagnosticHandler, (LlvmContext*, LlvmDiagnosticHandler, void*))         \
  X(char*, LLVMGetDiagInfoDescription, (LlvmDiagnostic*))                                        \
  X(int, LLVMGetDiagInfoSeverity, (LlvmDiagnostic*))                                             \
  X(LlvmBuffer*, LLVMCreateMemoryBufferWithMemoryRangeCopy, (const char*, size_t, const char*))  \
  X(int, LLVMParseIRInContext, (LlvmContext*, LlvmBuffer*, LlvmModule**, char**))                \
  X(int, LLVMVerifyModule, (LlvmModule*, int, char**))                                           \
  X(void, LLVMDisposeModule, (LlvmModule*))                                                      \
  X(void, LLVMDisposeMessage, (char*))                                                           \
  X(void, LLVMInitializeX86TargetInfo, ())                                                       \
  X(void, LLVMInitializeX86Target, ())                                                           \
  X(void, LLVMInitializeX86TargetMC, ())                                                         \
  X(void, LLVMInitializeX86AsmPrinter, ())                                                       \
  X(int, LLVMGetTargetFromTriple, (const char*, LlvmTarget**, char**))                           \
  X(LlvmTargetMachine*, LLVMCreateTargetMachine,                                                 \
    (LlvmTarget*, const char*, const char*, const char*, int, int, int))                         \
  X(void, LLVMDisposeTargetMachine, (LlvmTargetMachine*))                                        \
  X(LlvmTargetData*, LLVMCreateTargetDataLayout, (LlvmTargetMachine*))                           \
  X(void, LLVMSetModuleDataLayout, (LlvmModule*, LlvmTargetData*))                               \
  X(void, LLVMDisposeTargetData, (LlvmTargetData*))                                              \
  X(LlvmPassOptions*, LLVMCreatePassBuilderOptions, ())                                          \
  X(void, LLVMDisposePassBuilderOptions, (LlvmPassOptions*))                                     \
  X(LlvmError*, LLVMRunPasses, (LlvmModule*, const char*, LlvmTargetMachine*, LlvmPassOptions*)) \
  X(char*, LLVMGetErrorMessage, (LlvmError*))                                                    \
  X(void, LLVMDisposeErrorMessage, (char*))                                                      \
  X(int, LLVMTargetMachineEmitToMemoryBuffer,                                                    \
    (LlvmTargetMachine*, LlvmModule*, int, char**, LlvmBuffer**))                                \
  X(const char*, LLVMGetBufferStart, (LlvmBuffer*))                                              \
  X(size_t, LLVMGetBufferSize, (LlvmBuffer*))                                                    \
  X(void, LLVMDisposeMemoryBuffer, (LlvmBuffer*))

// The names are those of LLVM; a name cannot be put into parentheses where it is declared.
// NOLINTBEGIN(readability-identifier-naming, bugprone-macro-parentheses)
struct LlvmFunctions {
#define TESSERA_JIT_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  TESSERA_JIT_LLVM_FUNCTIONS(TESSERA_JIT_DECLARE)
#undef TESSERA_JIT_DECLARE
  std::string library;  // the name by which it was found
};
// NOLINTEND(readability-identifier-naming, bugprone-macro-parentheses)

// Opens libLLVM on demand. Thread-safe.
class LlvmLibrary {
 public:
  // Throws Failure (TESSERA_UNSUPPORTED) with what to install if there is no accepted version.
  const LlvmFunctions& get();
  // Why get() fails, or "". Opens the library, which takes 26 ms.
  std::string explain_missing();
  // Same as explain_missing(), but does not open a library that is in one of the usual folders. If
  // that library is damaged, get() fails although this returns "".
  std::string explain_absent();

 private:
  std::mutex mutex_;
  std::optional<LlvmFunctions> functions_;
  std::string missing_;
  std::optional<bool> is_present_;  // in one of the usual folders
};

}  // namespace tessera::jit
