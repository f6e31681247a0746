// The worker's side of worker_bench.h.
#pragma once

#include "base/message_channel.h"

namespace tessera::tuning {

// Answers requests, one after the other, until nobody is at the other end any more, or what comes
// is no request.
void serve_bench(MessageChannel channel);

}  // namespace tessera::tuning
