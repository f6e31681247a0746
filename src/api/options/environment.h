// The environment variables that Tessera reads, as data: for `tessera doctor`, which says what they
// override. The code that obeys a variable is in the file of its subject, in this folder.
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct EnvironmentVariable {
  std::string name;
  std::string value;
  // The effect of the variable, a sentence without a full stop; "" if Tessera does not read it.
  std::string meaning;
  // For one that Tessera does not read: "; did you mean 'TESSERA_BACKENDS'?", or "".
  std::string hint = {};
};

// The variables of `environment` ("NAME=value" each) that are not empty, sorted by name: those that
// begin with "TESSERA_", and XDG_CACHE_HOME.
std::vector<EnvironmentVariable> describe_environment(const std::vector<std::string>& environment);

// Same, but for the environment of this process.
std::vector<EnvironmentVariable> describe_environment();

// The files and folders in TESSERA_BACKEND_PATH; empty if it is not set.
std::vector<std::string> backend_paths_of_environment();

}  // namespace tessera
