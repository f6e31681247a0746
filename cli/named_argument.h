// Values of options: NAME=VALUE, where NAME is an input or output of the model, shapes, numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tessera.h"

namespace tessera::cli {

struct NamedArgument {
  std::string name;
  std::string value;
};

// Splits at the last '=', because names in models may hold one. `option`, e.g. "--input", is for
// errors. Throws InvalidArgument where there is no '=', or nothing on one side of it.
NamedArgument split_named_argument(std::string_view option, const std::string& text);

// "1x3x224x224" or "scalar". Throws InvalidArgument on anything else.
std::vector<int64_t> parse_dims(std::string_view option, const std::string& text);

// A decimal number of at most 64 bits, without a sign. Throws InvalidArgument on anything else.
uint64_t parse_whole_number(std::string_view option, const std::string& text);

// The same between `least` and `most`.
uint64_t parse_whole_number(std::string_view option, const std::string& text, uint64_t least,
                            uint64_t most);

// Bytes: "1048576", or with a unit of 1024, 1024^2, ...: "512M", "1.5G", "1GiB". Units are K, M, G
// and T, with or without "iB", in upper or lower case; parts of a byte are left out. Throws
// InvalidArgument on anything else, and for less than `least` or more than 63 bits.
int64_t parse_byte_count(std::string_view option, const std::string& text, int64_t least);

// A finite number of at least 0. Throws InvalidArgument on anything else.
double parse_tolerance(std::string_view option, const std::string& text);

// The index of `text` in `choices`. Throws InvalidArgument listing them, with the likely one.
size_t parse_choice(std::string_view option, const std::string& text,
                    const std::vector<std::string>& choices);

// A number above 0, such as 2 or 0.5, of at most `most`. Throws InvalidArgument on anything else.
double parse_positive_number(std::string_view option, const std::string& text, double most);

// The index of the value called `name` or, where none is called that, "#<index>". Throws
// InvalidArgument listing what there is; `kind` is "input" or "output".
size_t find_value_index(std::string_view option, std::string_view kind, const std::string& name,
                        const std::vector<ValueDescription>& values);

}  // namespace tessera::cli
