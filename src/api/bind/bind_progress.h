// Reports the progress of bind() to the callback of the user.
#pragma once

#include "api/state/stage_clock.h"
#include "tessera/tessera.h"

namespace tessera {

// Returns `options` with an on_progress that keeps returning false after it has returned false
// once.
BindOptions with_lasting_stop(BindOptions options);

// A watcher for StageClock, which reports to options.on_progress the phase of each stage. The stage
// "tune" is not reported, because it reports phases of its own. options.on_progress must outlive
// the watcher.
StageClock::Watcher stage_reporter(const BindOptions& options);

}  // namespace tessera
