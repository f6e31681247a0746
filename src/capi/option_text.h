// The options of Model::bind() as text, which is how the C interface sets them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/options/option_table.h"
#include "tessera/bind_options.h"

namespace tessera::capi {

// The options that can be written as text; in the table's order.
std::vector<const BindOption*> text_options();

// Sets the option called `name` as tessera_bind_options_set() documents. Throws InvalidArgument for
// an unknown name and for a text that is no value; then `options` is unchanged.
void set_option(BindOptions& options, std::string_view name, const std::string& text);

}  // namespace tessera::capi
