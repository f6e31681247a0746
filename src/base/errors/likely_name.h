// Suggests a known name for a mistyped one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// The number of letters to change, insert, delete, or swap with their successor to turn `left` into
// `right` ("optimal string alignment" distance). Ignores case.
size_t edit_distance(std::string_view left, std::string_view right);

// The name in `known` nearest to `name`: by edit distance, at most a third of the letters of
// `name`; or a name that begins with `name`. Ties go to the shortest, then to the first. nullopt if
// none is near.
std::optional<std::string> likely_name(std::string_view name,
                                       const std::vector<std::string>& known);

// "; did you mean 'Conv'?" for the end of a message; "" if none of `known` is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace tessera
