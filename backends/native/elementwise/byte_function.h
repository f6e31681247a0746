// Programs that are functions of single bytes: 256 results say everything.
#pragma once

#include <memory>
#include <optional>

#include "elementwise/program.h"

namespace tessera::native {

// The same program as one step that looks results up in a table, which the program itself computes,
// so that both have equal results. nullopt unless it has several steps, results of one byte, and
// one operand of bytes beside constants of one element.
std::optional<Program> table_program(const Program& text);

// The program of a function of single bytes from port 0 to a result of the same dimensions.
Program table_program(const plugin::Type& result, std::shared_ptr<const ByteTable> table);

}  // namespace tessera::native
