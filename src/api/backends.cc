#include "ops/registry.h"
#include "tessera/tessera.h"

namespace tessera {

std::string version() { return TESSERA_VERSION; }

std::vector<BackendDescription> backends() {
  int64_t op_count = 0;
  for (const ops::Op* op : ops::make_registry().all()) op_count += op->kernel != nullptr ? 1 : 0;
  return {{.name = "reference", .version = version(), .devices = {"cpu"}, .op_count = op_count}};
}

}  // namespace tessera
