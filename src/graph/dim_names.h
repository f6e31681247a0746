// The names that a model's file gives to dimensions ("batch").
//
// A file may give one name to several dimensions. They are mostly equal, but not always: exporters
// write "N" or "unk" for all dimensions that they do not know. So each dimension with a name is a
// symbol of its own: "N", and for the next ones of that name "N'2", "N'3". Code that assumes that
// they are equal, or shows them to people, uses the name.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "graph/dim.h"

namespace tessera {

// Whether `text` is a name: an identifier, in which letters need not be ASCII. Exporters also write
// "?", "-1", "*" or an expression for dimensions that they do not know, which says nothing about
// other dimensions.
bool is_dim_name(std::string_view text);

// Numbers the dimensions of each name in a model.
class DimNames {
 public:
  // The symbol of the next dimension that the model calls `name`, which must be a name.
  Dim next(const std::string& name);

 private:
  std::map<std::string, int> counts_;
};

// `name`, in quotes if it has characters that are operators in expressions. Without quotes, a value
// named "a+b" would give a symbol with the text of a sum.
std::string quoted_for_symbol(std::string_view name);

// The name that the model gives to `dim`: "N" for N'2; "" for a number, and for a symbol that the
// model did not name, such as an expression.
std::string name_of(const Dim& dim);

// The symbol or number of `dim` for people: "(N*2)" for (N'2*2).
std::string shown_text(const Dim& dim);

}  // namespace tessera
