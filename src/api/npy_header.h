// The header of a .npy file: a Python dictionary that says what the bytes after it are.
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

// The header that `text`, e.g. "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
// stands for. `where` is the file, for errors. Throws InvalidArgument on anything else, and on
// elements that are no DataType or not little-endian (naming them).
NpyHeader parse_npy_header(std::string_view text, const std::string& where);

// The inverse of parse_npy_header() for C order. `type` must not be Undefined or String.
std::string npy_header_text(DataType type, const std::vector<int64_t>& dims);

}  // namespace tessera
