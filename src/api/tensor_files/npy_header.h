// The header of a .npy file: a Python dictionary that describes the elements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data_type.h"

namespace tessera {

struct NpyHeader {
  DataType type = DataType::Undefined;
  bool is_untold = false;  // elements of some small type, each a byte; `type` is Undefined
  bool is_fortran_order = false;
  bool is_big_endian = false;  // elements, or the characters of strings
  std::vector<int64_t> dims;   // each at least 0
  // Of strings: each takes this many bytes, as characters of `character_bytes` (4: UTF-32, 1:
  // bytes), filled up with zeros.
  int64_t string_bytes = 0;
  int64_t character_bytes = 0;
};

// Parses a header such as "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }". `where`
// names the file in errors. Throws InvalidArgument for any other text, and for elements that have
// no DataType (naming their type).
NpyHeader parse_npy_header(std::string_view text, const std::string& where);

// The inverse of parse_npy_header() for C order. The type of `header` must not be Undefined or
// Sequence; strings are of UTF-32.
std::string npy_header_text(const NpyHeader& header);

}  // namespace tessera
