#include "base/process/module_folder.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <utility>

namespace tessera {

namespace {

// The file that is mapped at `address`; "" if the system does not tell. Lines of maps(5) are
// "<begin>-<end> <permissions> <offset> <device> <inode>  <path>".
std::filesystem::path mapped_file(uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR "", &begin, &end) != 2) continue;
    if (address < begin || address >= end) continue;
    const size_t path = line.find('/');
    return path == std::string::npos ? "" : line.substr(path);
  }
  return {};
}

}  // namespace

std::filesystem::path module_file() {
  Dl_info found = {};
  link_map* module = nullptr;
  const auto* const code = reinterpret_cast<const void*>(&module_file);
  if (::dladdr1(code, &found, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0) return {};
  // A relative name is of no use: it was relative to a folder that may no longer be the current
  // one, and the current one may have a file of this name that somebody else put there. The caller
  // of a program can write any name for it.
  std::filesystem::path file = module->l_name;
  if (file.empty()) file = "/proc/self/exe";
  if (file.is_relative()) file = mapped_file(reinterpret_cast<uintptr_t>(code));
  std::error_code failure;
  file = std::filesystem::canonical(file, failure);
  return failure ? std::filesystem::path() : file;
}

std::filesystem::path module_folder() { return module_file().parent_path(); }

FoundCode find_program(const std::string& name) {
  const std::filesystem::path folder = module_folder();
  FoundCode none = {{}, "expected it in '" + folder.string() + "', found none"};
  if (folder.empty()) return none;
  bool is_refused = false;
  for (const std::filesystem::path& location :
       {folder, folder / ".." / "bin", folder / ".." / ".." / "bin"}) {
    const std::filesystem::path program = location / name;
    if (::access(program.c_str(), X_OK) != 0) continue;
    FoundCode found = look_at_code(program, trusted_owners());
    if (found.refusal.empty()) return found;
    if (!std::exchange(is_refused, true)) none.refusal = "is not started: " + found.refusal;
  }
  return none;
}

}  // namespace tessera
