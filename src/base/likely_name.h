// Which of the known names somebody probably meant who wrote one that is not known.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// How many letters have to be changed, added, left out, or exchanged with the letter after them to
// make `left` out of `right` ("optimal string alignment" distance). Upper and lower case are equal.
size_t edit_distance(std::string_view left, std::string_view right);

// The one of `known` that is nearest to `name`: by edit distance, at most a third of the letters of
// `name`, or one that begins with `name`. Of equally near ones the shortest, then the first.
// nullopt where none is near.
std::optional<std::string> likely_name(std::string_view name,
                                       const std::vector<std::string>& known);

// "; did you mean 'Conv'?" for the end of a message; "" where none of `known` is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace tessera
