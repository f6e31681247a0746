// `tessera verify MODEL`: checks every candidate for a model against the reference.
#pragma once

#include "cli/bound_model.h"
#include "cli/command.h"

namespace tessera::cli {

// The exit code is 1 if a candidate is refused. Candidates that could not be built are not checked.
// Throws Error if the model cannot be loaded or bound.
CommandResult verify_model(const ModelArguments& arguments, bool is_json);

}  // namespace tessera::cli
