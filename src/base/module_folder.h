// Where the program or library that this code is in lies, and what was installed with it.
#pragma once

#include <filesystem>
#include <string>

#include "base/trusted_code.h"

namespace tessera {

// "" where the system does not tell.
std::filesystem::path module_folder();

// The file of it; "" where the system does not tell.
std::filesystem::path module_file();

// A program installed with this one: beside it, or in bin/ one or two folders up (a library in
// lib/, a Python package); PATH is not asked. Refused where it is nobody's that trusted_code.h
// trusts, or where there is none: the refusal says where it was expected.
FoundCode find_program(const std::string& name);

}  // namespace tessera
