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
  bool is_fortran_order = false;
  std::vector<int64_t> dims;  // each at least 0
};

// Parses a header such as "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }". `where`
// names the file in errors. Throws InvalidArgument for any other text, and for elements that are
// not little-endian or have no DataType (naming their type).
NpyHeader parse_npy_header(std::string_view text, const std::string& where);

// The inverse of parse_npy_header() for C order. `type` must not be Undefined or String.
std::string npy_header_text(DataType type, const std::vector<int64_t>& dims);

}  // namespace tessera
