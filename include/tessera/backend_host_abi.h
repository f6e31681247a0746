/* The second half of tessera/backend_abi.h, which includes it: the services that the host provides
 * to a plug-in, and the functions that a plug-in exports. */
#ifndef TESSERA_BACKEND_HOST_ABI_H
#define TESSERA_BACKEND_HOST_ABI_H

#include "tessera/backend_abi.h" /* NOLINT(misc-header-include-cycle): halves of one */
#include "tessera/backend_fusion_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Provided by the host --------------------------------------------------------------------- */

/* Valid as long as the plug-in is open. Every function may be called from any thread. */
typedef struct tessera_host tessera_host;
struct tessera_host {
  uint32_t struct_size;
  uint32_t contract_version;
  const char* version; /* Tessera's version */
  void* host_state;

  int32_t (*node_count)(const tessera_graph* graph);
  int32_t (*value_count)(const tessera_graph* graph);
  /* Null if there is no such node or value. */
  const tessera_node* (*node)(const tessera_graph* graph, int32_t node);
  const tessera_value* (*value)(const tessera_graph* graph, int32_t value);
  /* Null if the node has no such attribute. Default values are filled in. */
  const tessera_attribute* (*attribute)(const tessera_graph* graph, int32_t node, const char* name);

  /* Calls `visitor` for each match of `pattern`; docs/backends.md describes the pattern language.
   * Fails with TESSERA_INVALID_ARGUMENT if the pattern cannot be parsed. */
  int32_t (*match)(const tessera_graph* graph, const char* pattern, tessera_match_visitor visitor,
                   void* user, tessera_error* error);
  /* Passes the nodes to `visitor` as the bytes of an ONNX model, whose inputs and outputs are those
   * of the group. */
  int32_t (*group_as_onnx)(const tessera_graph* graph, const int32_t* nodes, int32_t node_count,
                           tessera_bytes_visitor visitor, void* user, tessera_error* error);

  /* Creates the reference kernel of a node, which takes row-major buffers in the node's order. The
   * kernel outlives the graph. It may also run with a tessera_run_context that the plug-in made,
   * whose host_state is null: then on the calling thread alone. Fails with TESSERA_UNSUPPORTED if
   * the op has no reference kernel. */
  int32_t (*reference_kernel)(const tessera_graph* graph, int32_t node, tessera_kernel* kernel,
                              tessera_error* error);

  void* (*allocate)(size_t bytes, size_t alignment); /* null: no memory left */
  void (*deallocate)(void* memory, size_t alignment);
  /* Runs body(argument) inside the host's pool, so that a library which starts threads by itself
   * uses those of the host. For building kernels. `body` must not throw. */
  void (*run_in_pool)(const tessera_host* host, int32_t threads, void (*body)(void* argument),
                      void* argument);

  /* Shows a message to users; each distinct message once. */
  void (*log)(const tessera_host* host, const char* message);

  /* A store of bytes by key for this backend, such as compiled programs. get_blob calls `visitor`
   * and returns 1 if it has bytes for the key, else it returns 0. The host keeps them in the user's
   * folder for later processes and other models when a bind may store what it found out; so a key
   * must name everything that the bytes depend on, such as versions of compilers. Only bytes that
   * this user's processes stored come back. The store may drop bytes at any time. */
  int32_t (*get_blob)(const tessera_host* host, const char* key, tessera_bytes_visitor visitor,
                      void* user);
  void (*put_blob)(const tessera_host* host, const char* key, const void* bytes, size_t size);

  /* Like group_as_onnx, but `constants` become inputs of the model, in that order, after those of
   * the group. The model is then without these weights, which `build` gets
   * (tessera_candidate::absorbed). */
  int32_t (*open_group_as_onnx)(const tessera_graph* graph, const int32_t* nodes,
                                int32_t node_count, const int32_t* constants,
                                int32_t constant_count, tessera_bytes_visitor visitor, void* user,
                                tessera_error* error);

  /* Passes to `visitor` the groups that are worth a kernel of their own, in expressions of at most
   * this version (TESSERA_EXPRESSION_VERSION). */
  int32_t (*find_fused_groups)(const tessera_graph* graph, uint32_t expression_version,
                               tessera_fused_group_visitor visitor, void* user,
                               tessera_error* error);
  /* The group of exactly these nodes (ascending). Fails with TESSERA_UNSUPPORTED and the reason if
   * one kernel cannot compute them in one pass. */
  int32_t (*fuse_nodes)(const tessera_graph* graph, const int32_t* nodes, int32_t node_count,
                        uint32_t expression_version, tessera_fused_group_visitor visitor,
                        void* user, tessera_error* error);

  /* So that several threads and processes that want one blob make it once: claim_blob returns 1 if
   * the caller alone may make the blob of this key now. It then asks get_blob again, because
   * another one may have made it meanwhile, makes and puts the blob if it is still missing, and
   * calls release_blob, also after a failure. Until then, others that claim the key wait: threads
   * of this process, and other processes of this user if the host stores the blob for them. If a
   * process ends, its claims end too. Returns 0 if waiting takes too long or claims are impossible:
   * then the caller makes the blob anyway and must not call release_blob. A thread must not claim a
   * key that it has. */
  int32_t (*claim_blob)(const tessera_host* host, const char* key);
  void (*release_blob)(const tessera_host* host, const char* key);
};

/* --- Exported by plug-ins --------------------------------------------------------------------- */

/* Returns TESSERA_CONTRACT_VERSION of the headers that the plug-in was built with. Called first. */
typedef uint32_t (*tessera_contract_version_function)(void);
/* Fills `backend`. May be called several times; each call creates a separate backend. */
typedef int32_t (*tessera_open_backend_function)(const tessera_host* host, tessera_backend* backend,
                                                 tessera_error* error);
#define TESSERA_CONTRACT_VERSION_SYMBOL "tessera_contract_version"
#define TESSERA_OPEN_BACKEND_SYMBOL "tessera_open_backend"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_BACKEND_HOST_ABI_H */
