// Parses values of options that are given as text, on the command line or through the C interface:
// NAME=VALUE (NAME is an input or output of the model), shapes, numbers, pins. `option` is what
// errors call the option, e.g. "--input".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tessera.h"

namespace tessera {

struct NamedArgument {
  std::string name;
  std::string value;
};

// Splits at the last '=', because names in models may contain one. Throws InvalidArgument if there
// is no '=' or if either side is empty.
NamedArgument split_named_argument(std::string_view option, const std::string& text);

// "1x3x224x224" or "scalar". Throws InvalidArgument on anything else.
std::vector<int64_t> parse_dims(std::string_view option, const std::string& text);

// A decimal number of at most 64 bits, without a sign. Throws InvalidArgument on anything else.
uint64_t parse_whole_number(std::string_view option, const std::string& text);

// Same, but the number must be from `least` to `most`, both inclusive.
uint64_t parse_whole_number(std::string_view option, const std::string& text, uint64_t least,
                            uint64_t most);

// Parses bytes: "1048576", or with a unit of 1024, 1024^2, ...: "512M", "1.5G", "1GiB". Units are
// K, M, G and T, with or without "iB", in upper or lower case; fractions of a byte are dropped.
// Throws InvalidArgument on anything else, and for less than `least` or more than 63 bits.
int64_t parse_byte_count(std::string_view option, const std::string& text, int64_t least);

// A finite number of at least 0. Throws InvalidArgument on anything else.
double parse_tolerance(std::string_view option, const std::string& text);

// The index of `text` in `choices`. Throws InvalidArgument, listing the choices and suggesting a
// similar one, if there is no match.
size_t parse_choice(std::string_view option, const std::string& text,
                    const std::vector<std::string>& choices);

// A number above 0, such as 2 or 0.5, of at most `most`. Throws InvalidArgument on anything else.
double parse_positive_number(std::string_view option, const std::string& text, double most);

// The index of the value called `name`, or, if there is none, the index N if `name` is "#N". Throws
// InvalidArgument, listing the names, if there is no match; `kind` is "input" or "output".
size_t find_value_index(std::string_view option, std::string_view kind, const std::string& name,
                        const std::vector<ValueDescription>& values);

// "NODES=BACKEND" or "NODES=BACKEND:ALGORITHM". Names of nodes may contain '=', ':' and '/', so the
// last '=' ends NODES, and the first ':' after it ends BACKEND. tessera::Pin says what NODES means.
// Throws InvalidArgument if a part is missing or empty.
Pin parse_pin(std::string_view option, const std::string& text);

// "BACKEND" or "BACKEND:OP". Throws InvalidArgument if a part is empty.
Exclusion parse_exclusion(std::string_view option, const std::string& text);

// Names, separated by commas: "fast,slow". Throws InvalidArgument, with `example`, for an empty
// name and for one given twice; binding finds out whether the names exist.
std::vector<std::string> parse_name_list(std::string_view option, const std::string& text,
                                         const std::string& example);

}  // namespace tessera
