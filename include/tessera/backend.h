// The plug-in contract: what the owner of a library writes so that Tessera runs models with it.
// This header is all that a plug-in includes of Tessera; it needs no library to link with.
// docs/backends.md tells the contract in the order in which an author meets it.
//
//   struct MyBackend : tessera::plugin::Backend {
//     Description describe() override { ... }                       // name, layouts, ops
//     void propose(const Graph&, const ProposeOptions&, Proposals&) override { ... }
//   };
//   TESSERA_PLUGIN(MyBackend)
//
// Code here throws freely: an exception (Failure with its kind, any other as a bug of the plug-in)
// becomes a reason on the host's side. Nothing of the C++ library crosses the border, so host and
// plug-in may be built by different compilers with different standard libraries.
#pragma once

#include "tessera/backend_faces.h"
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
