#include "compile.h"

#include <memory>

#include "tessera/backend.h"

namespace tessera::jit {

using plugin::Failure;

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";
// mem2reg makes registers of loop counters and accumulators; the others fold constants and remove
// what is computed twice. The text has its loops and vectors already.
constexpr const char* kPasses = "function(mem2reg,early-cse,loop-mssa(licm))";

void collect_message(LlvmDiagnostic* diagnostic, void* user);

// One module in a context of its own.
class Compilation {
 public:
  Compilation(const LlvmFunctions& llvm, const Target& target)
      : llvm_(llvm), context_(llvm.LLVMContextCreate()) {
    // Without a handler LLVM prints errors of its code generator and ends the process.
    messages_.llvm = &llvm;
    llvm.LLVMContextSetDiagnosticHandler(context_, collect_message, &messages_);
    make_machine(target);
  }
  ~Compilation() {
    if (module_ != nullptr) llvm_.LLVMDisposeModule(module_);
    if (machine_ != nullptr) llvm_.LLVMDisposeTargetMachine(machine_);
    llvm_.LLVMContextDispose(context_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  void parse(const std::string& text) {
    // The parser takes the buffer, also if it fails.
    LlvmBuffer* buffer =
        llvm_.LLVMCreateMemoryBufferWithMemoryRangeCopy(text.data(), text.size(), "kernel");
    char* message = nullptr;
    if (llvm_.LLVMParseIRInContext(context_, buffer, &module_, &message) != 0) {
      module_ = nullptr;
      fail("cannot parse a kernel", message);
    }
    if (llvm_.LLVMVerifyModule(module_, kLlvmReturnStatus, &message) != 0) {
      fail("refuses a kernel", message);
    }
    if (message != nullptr) llvm_.LLVMDisposeMessage(message);
    LlvmTargetData* layout = llvm_.LLVMCreateTargetDataLayout(machine_);
    llvm_.LLVMSetModuleDataLayout(module_, layout);
    llvm_.LLVMDisposeTargetData(layout);
  }

  void optimize() {
    LlvmPassOptions* options = llvm_.LLVMCreatePassBuilderOptions();
    LlvmError* error = llvm_.LLVMRunPasses(module_, kPasses, machine_, options);
    llvm_.LLVMDisposePassBuilderOptions(options);
    if (error == nullptr) return;
    char* message = llvm_.LLVMGetErrorMessage(error);
    const std::string text = message;
    llvm_.LLVMDisposeErrorMessage(message);
    throw Failure(TESSERA_INTERNAL, llvm_.library + " cannot optimise a kernel: " + text);
  }

  std::string emit(OutputForm form) {
    char* message = nullptr;
    LlvmBuffer* buffer = nullptr;
    const int status = llvm_.LLVMTargetMachineEmitToMemoryBuffer(
        machine_, module_, form == OutputForm::Object ? kLlvmObjectFile : kLlvmAssemblyFile,
        &message, &buffer);
    if (status != 0) fail("cannot compile a kernel", message);
    std::string bytes(llvm_.LLVMGetBufferStart(buffer), llvm_.LLVMGetBufferSize(buffer));
    llvm_.LLVMDisposeMemoryBuffer(buffer);
    if (!messages_.text.empty()) fail("cannot compile a kernel", nullptr);
    return bytes;
  }

  struct Messages {
    const LlvmFunctions* llvm = nullptr;
    std::string text;
  };

 private:
  void make_machine(const Target& target) {
    LlvmTarget* found = nullptr;
    char* message = nullptr;
    if (llvm_.LLVMGetTargetFromTriple(kTriple, &found, &message) != 0) {
      const std::string text = take(message);
      llvm_.LLVMContextDispose(context_);
      throw Failure(TESSERA_UNSUPPORTED, llvm_.library + " cannot compile for x86-64: " + text);
    }
    machine_ = llvm_.LLVMCreateTargetMachine(found, kTriple, target.level.c_str(), "",
                                             kLlvmOptimizeDefault, kLlvmRelocationPic,
                                             kLlvmCodeModelDefault);
  }

  std::string take(char* message) {
    if (message == nullptr) return "";
    std::string text = message;
    llvm_.LLVMDisposeMessage(message);
    return text;
  }

  [[noreturn]] void fail(const std::string& what, char* message) {
    throw Failure(TESSERA_INTERNAL,
                  llvm_.library + " " + what + ": " + take(message) + messages_.text);
  }

  const LlvmFunctions& llvm_;
  LlvmContext* context_;
  LlvmTargetMachine* machine_ = nullptr;
  LlvmModule* module_ = nullptr;
  Messages messages_;
};

void collect_message(LlvmDiagnostic* diagnostic, void* user) {
  auto& messages = *static_cast<Compilation::Messages*>(user);
  if (messages.llvm->LLVMGetDiagInfoSeverity(diagnostic) != kLlvmSeverityError) return;
  char* text = messages.llvm->LLVMGetDiagInfoDescription(diagnostic);
  messages.text += text;
  messages.llvm->LLVMDisposeMessage(text);
}

}  // namespace

const char* const kCompilerRevision = "LLVM 15 to 19, passes 1";

std::string compile(const LlvmFunctions& llvm, const std::string& text, const Target& target,
                    OutputForm form) {
  Compilation compilation(llvm, target);
  compilation.parse(text);
  compilation.optimize();
  return compilation.emit(form);
}

}  // namespace tessera::jit
