// The ops of ONNX Runtime's own domain.
#pragma once

#include <algorithm>
#include <exception>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "tessera/backend.h"

namespace tessera::native {

inline constexpr std::string_view kMicrosoftDomain = "com.microsoft";

// Same as ProposeContext::for_each(), for ops of this domain.
inline void for_each_of_microsoft(plugin::ProposeContext& context,
                                  std::initializer_list<std::string_view> ops,
                                  const std::function<void(const plugin::Node& node)>& offer) {
  for (const plugin::Node& node : context.graph().nodes()) {
    if (node.domain() != kMicrosoftDomain || std::ranges::find(ops, node.op()) == ops.end() ||
        !context.is_wanted(node)) {
      continue;
    }
    try {
      offer(node);
    } catch (const std::exception& exception) {
      context.refuse(node.id(), exception.what());
    }
  }
}

}  // namespace tessera::native
