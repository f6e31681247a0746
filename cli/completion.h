// Descriptions of the program for shells and `man`: completion scripts and the manual page.
#pragma once

#include <string>

#include "cli/program_description.h"

namespace tessera::cli {

// Scripts that complete commands, options, their values if a fixed set of them exists, and file
// names. For bash: to be sourced, or put into share/bash-completion/completions/tessera.
std::string bash_completion(const CommandDescription& program);
// For zsh: a file _tessera in a folder of its fpath.
std::string zsh_completion(const CommandDescription& program);

// The manual page tessera(1), in the macros of man(7).
std::string manual_page(const CommandDescription& program, const std::string& version);

}  // namespace tessera::cli
