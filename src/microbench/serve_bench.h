// The worker's side of worker_bench.h.
#pragma once

#include "base/message_channel.h"

namespace tessera::tuning {

// Answers requests until the other end is closed or a message is malformed.
void serve_bench(MessageChannel channel);

}  // namespace tessera::tuning
