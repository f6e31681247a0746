// The plug-in contract: the code that the owner of a library writes so that Tessera can run models
// with it. A plug-in includes only this header and links with no library of Tessera.
// docs/backends.md explains the contract in the order in which an author needs it.
//
//   struct MyBackend : tessera::plugin::Backend {
//     Description describe() override { ... }                       // name, layouts, ops
//     void propose(const Graph&, const ProposeOptions&, Proposals&) override { ... }
//   };
//   TESSERA_PLUGIN(MyBackend)
//
// A plug-in may throw: an exception becomes an error of the host, with the kind of a Failure, or as
// a bug of the plug-in for any other exception. No C++ type crosses the boundary between host and
// plug-in, so they may be built by different compilers with different standard libraries.
#pragma once

#include "tessera/backend_adapters.h"
#include "tessera/backend_device.h"
#include "tessera/backend_graph.h"
#include "tessera/backend_offer.h"
#include "tessera/backend_propose.h"
#include "tessera/backend_sparse.h"

#define TESSERA_EXPORT extern "C" __attribute__((visibility("default")))

// Exports `MyBackend`, a class derived from tessera::plugin::Backend, as this library's plug-in.
#define TESSERA_PLUGIN(MyBackend)                                                                 \
  TESSERA_EXPORT uint32_t tessera_contract_version() { return TESSERA_CONTRACT_VERSION; }         \
  TESSERA_EXPORT int32_t tessera_open_backend(const tessera_host* host, tessera_backend* backend, \
                                              tessera_error* error) {                             \
    return tessera::plugin::open_backend<MyBackend>(host, backend, error);                        \
  }
