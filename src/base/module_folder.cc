#include "base/module_folder.h"

#include <dlfcn.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace tessera {

std::filesystem::path module_file() {
  Dl_info found = {};
  if (::dladdr(reinterpret_cast<const void*>(&module_file), &found) == 0) return {};
  std::error_code failure;
  std::filesystem::path module = std::filesystem::canonical(found.dli_fname, failure);
  // The module's name may be relative to a folder that is no longer the current one.
  if (failure) module = std::filesystem::canonical("/proc/self/exe", failure);
  return failure ? std::filesystem::path() : module;
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
