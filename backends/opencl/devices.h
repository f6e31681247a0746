// Which devices the plug-in offers. Asking OpenCL loads the drivers, PoCL's for example with a
// whole LLVM, and compiling a program to test them takes longer. So the answer is kept as a blob,
// and asked for again only if the installed drivers or the environment have changed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime.h"
#include "tessera/backend_blobs.h"

namespace tessera::opencl {

// The usable devices that `selection` names: all of them if it is empty; the device with this
// number; or the devices whose name or platform contains the text, in any case of letters. Throws
// Failure (TESSERA_UNSUPPORTED) if there is none, and says why.
std::vector<DeviceFacts> selected_devices(const std::vector<DeviceFacts>& all,
                                          std::string_view selection);

// All devices; one that cannot compile a program has the reason in explain_unusable. Throws Failure
// (TESSERA_UNSUPPORTED) if there is no OpenCL or no device.
std::vector<DeviceFacts> known_devices(LazyRuntime& runtime, const plugin::Blobs& blobs);

// Device facts as text and back; nullopt if the text is something else.
std::string devices_as_text(const std::vector<DeviceFacts>& devices);
std::optional<std::vector<DeviceFacts>> devices_from_text(const std::string& text);

// 32 hex digits that differ for different texts, for keys of blobs.
std::string digest(const std::string& text);

}  // namespace tessera::opencl
