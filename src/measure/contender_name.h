// The names of contenders, which are the plans that a race compares (run_off.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tessera/descriptions.h"

namespace tessera {

// "chosen", "known", "solved", "greedy", "in order", "alone", "unsplit".
constexpr std::string_view name(ContenderKind kind) {
  constexpr std::string_view kNames[] = {"chosen",   "known", "solved", "greedy",
                                         "in order", "alone", "unsplit"};
  return kNames[static_cast<size_t>(kind)];
}

// ContenderDescription::name, made of kind, backend and round: "solved", "mylib alone, round 2".
inline std::string contender_name(const ContenderDescription& contender) {
  std::string text = contender.backend.empty() ? "" : contender.backend + " ";
  text += name(contender.kind);
  if (contender.round > 1) text += ", round " + std::to_string(contender.round);
  return text;
}

}  // namespace tessera
