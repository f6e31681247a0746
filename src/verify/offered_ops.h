// The ops for which a plug-in offers kernels.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace tessera::verification {

// The names of the ops of ONNX's own domain for which the plug-in offers a kernel on one thread, of
// the op alone or of a group with it, in at least one case of case_table() or, for ops without a
// case there, of cases_for(). Runs no kernel. Empty if the plug-in cannot be opened.
std::set<std::string> offered_ops(const std::filesystem::path& library);

}  // namespace tessera::verification
