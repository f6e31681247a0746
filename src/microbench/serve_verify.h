// The worker's side of verify_in_worker.h.
#pragma once

#include "base/message_channel.h"

namespace tessera::tuning {

// Verifies the plug-in that the request names and announces each step in advance. Returns when
// finished, or when the other end is closed.
void serve_verify(MessageChannel channel);

}  // namespace tessera::tuning
