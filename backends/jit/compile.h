// Compiles LLVM IR for this processor.
#pragma once

#include <string>

#include "llvm_library.h"
#include "processor.h"

namespace tessera::jit {

// Names the passes and the accepted versions of LLVM, on which code depends besides the text and
// the target.
extern const char* const kCompilerRevision;

enum class OutputForm { Object, Assembly };

// Returns the bytes of an ELF object, or text in assembly. Thread-safe. Throws Failure
// (TESSERA_INTERNAL) with LLVM's message if the text cannot be parsed or compiled.
std::string compile(const LlvmFunctions& llvm, const std::string& text, const Target& target,
                    OutputForm form = OutputForm::Object);

}  // namespace tessera::jit
