// The names of domains of operators other than ONNX's own, which is "".
#pragma once

namespace tessera::ops {

// ONNX Runtime's own ops, of which version 1 is the only one. Their documentation is
// docs/ContribOperators.md of ONNX Runtime.
inline constexpr const char* kMicrosoftDomain = "com.microsoft";

inline constexpr const char* kTrainingDomain = "ai.onnx.preview.training";

}  // namespace tessera::ops
