// The worker's side of verify_in_worker.h.
#pragma once

#include "base/message_channel.h"

namespace tessera::tuning {

// Judges the plug-in that the request names, and tells of each step before it is made. Returns when
// that is done, or nobody listens any more.
void serve_verify(MessageChannel channel);

}  // namespace tessera::tuning
