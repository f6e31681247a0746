// Loads the MODEL argument of commands from a file or from standard input.
#pragma once

#include <string>

#include "tessera/tessera.h"

namespace tessera::cli {

// The description of MODEL in `--help`.
constexpr const char* kModelHelp = "an ONNX file, or a bundle; '-': from standard input";

// Loads the file `model`, or reads the model from standard input if `model` is "-". In the latter
// case, external data is read from the working directory. Throws like tessera::load(), and
// InvalidArgument if standard input is a terminal, is empty, or is larger than an ONNX file can be.
Model load_model(const std::string& model, const LoadOptions& options);

// Reads everything from `descriptor`, up to `max_bytes`; for load_model() and its test.
std::string read_model_bytes(int descriptor, size_t max_bytes);

}  // namespace tessera::cli
