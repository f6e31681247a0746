// Finds the file that contains this code, and programs that were installed with it.
#pragma once

#include <filesystem>
#include <string>

#include "base/process/trusted_code.h"

namespace tessera {

// The folder of the program or library that contains this code; "" if the system does not tell.
std::filesystem::path module_folder();

// The file of that program or library; "" if the system does not tell.
std::filesystem::path module_file();

// Finds a program that was installed with this one: in the same folder, or in bin/ one or two
// folders up (for a library in lib/ or a Python package). PATH is not searched. Refused if there is
// none, or if its owner is not trusted (trusted_code.h); the refusal says where it was expected.
FoundCode find_program(const std::string& name);

}  // namespace tessera
