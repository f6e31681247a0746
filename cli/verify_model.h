// `tessera verify MODEL`: checks every candidate for a model against the reference.
#pragma once

#include "cli/bound_model.h"
#include "cli/command.h"

namespace tessera::cli {

// Exit code 1 where a candidate is refused. Throws Error where the model cannot be loaded or bound.
CommandResult verify_model(const ModelArguments& arguments, bool is_json);

}  // namespace tessera::cli
