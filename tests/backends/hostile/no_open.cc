// An incomplete plug-in: it reports its version but has no function to open it.
#include "tessera/backend.h"

TESSERA_EXPORT uint32_t tessera_contract_version() { return TESSERA_CONTRACT_VERSION; }
