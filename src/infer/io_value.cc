#include "infer/io_value.h"

#include <algorithm>
#include <vector>

#include "base/errors/likely_name.h"
#include "graph/type.h"
#include "tessera/error.h"

namespace tessera {

Value& io_value(Graph& graph, const std::string& name, const std::string& where) {
  const ValueId id = find_value(graph, name);
  const auto contains = [&](const std::vector<ValueId>& list) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  if (id.is_none() || (!contains(graph.inputs) && !contains(graph.outputs))) {
    std::string known;
    std::vector<std::string> names;
    for (const auto* list : {&graph.inputs, &graph.outputs}) {
      for (const ValueId each : *list) {
        known += (known.empty() ? "'" : ", '") + graph[each].name + "'";
        names.push_back(graph[each].name);
      }
    }
    throw Error(ErrorKind::InvalidArgument, where,
                "expected an input or output of the model (" + known +
                    "), found none of that name" + did_you_mean(name, names));
  }
  return graph[id];
}

void mark_io_devices(Graph& graph, const std::map<std::string, std::string>& devices) {
  for (const auto& [name, device] : devices) {
    const std::string where = "layout of '" + name + "'";
    Value& value = io_value(graph, name, where);
    if (!value.type.is_known_tensor() || value.type.element == DataType::String) {
      throw Error(ErrorKind::InvalidArgument, where,
                  "expected a tensor of numbers whose size is known, for memory of device '" +
                      device + "', found " + text(value.type));
    }
    value.io_device = device;
  }
}

}  // namespace tessera
