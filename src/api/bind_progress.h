// Telling whoever waits what a bind is doing.
#pragma once

#include "api/stage_clock.h"
#include "tessera/tessera.h"

namespace tessera {

// `options` with an on_progress that goes on to give false once it has.
BindOptions with_lasting_stop(BindOptions options);

// For StageClock: tells options.on_progress, which must outlive it, of the phase that each stage
// belongs to, but for "tune", which tells of its own phases.
StageClock::Watcher stage_teller(const BindOptions& options);

}  // namespace tessera
