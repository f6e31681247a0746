// Half of a plug-in: it tells its version and cannot be opened.
#include "tessera/backend.h"

TESSERA_EXPORT uint32_t tessera_contract_version() { return TESSERA_CONTRACT_VERSION; }
