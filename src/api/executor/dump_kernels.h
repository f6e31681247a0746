// Writes what was compiled to files, for people who want to read it.
#pragma once

#include <filesystem>

#include "base/errors/log.h"
#include "engine/built_plan.h"

namespace tessera {

// The folder in TESSERA_DUMP_KERNELS; empty if that is not set.
std::filesystem::path dump_folder();

// Writes the texts of each compiled kernel of `built`, also of those in branches, to files in
// `folder`, which it creates: STEM.expr has the expression, STEM.s the assembly, and the extension
// of the source is that of its language. STEM consists of backend, ops and a digest of the texts;
// so equal kernels have equal names, and files of different contents different ones. A file that
// exists is never changed. `log` gets one warning if not everything can be written, `information`
// how much was written. Never throws, except if memory is exhausted.
void dump_kernels(const BuiltPlan& built, const std::filesystem::path& folder, const Log& log,
                  const Log& information);

}  // namespace tessera
