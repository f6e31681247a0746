// The error bounds that ONNX's ops state. docs/accuracy.md lists them beside what each backend and
// other runtimes reach.
#pragma once

#include <string_view>

#include "ops/op.h"

namespace tessera::ops {

// The bound of an op of ONNX's own domain. Exact for names without a row.
ErrorBound error_bound_of(std::string_view op);

// `op` with that bound, unless it is of another domain.
Op with_error_bound(Op op);

}  // namespace tessera::ops
