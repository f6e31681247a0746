#include "infer/mark_io_devices.h"

#include "graph/type.h"
#include "infer/io_value.h"
#include "tessera/error.h"

namespace tessera {

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
