#include "ops/movement_test.h"

namespace tessera::ops {
namespace {}
}  // namespace tessera::ops
