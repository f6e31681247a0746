// Where a command's MODEL comes from: a file, or standard input.
#pragma once

#include <string>

#include "tessera/tessera.h"

namespace tessera::cli {

// What MODEL is, for `--help`.
constexpr const char* kModelHelp = "an ONNX file; '-': from standard input";

// Loads the file `model`, or what standard input gives where it is "-". Its external data is then
// looked for in the working folder. Throws as tessera::load() does, and InvalidArgument where
// standard input is a terminal or gives nothing, or more than an ONNX file can have.
Model load_model(const std::string& model, const LoadOptions& options);

// All that can be read from `descriptor`, at most `max_bytes`; for load_model() and its test.
std::string read_model_bytes(int descriptor, size_t max_bytes);

}  // namespace tessera::cli
