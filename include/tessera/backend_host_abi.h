/* The other half of tessera/backend_abi.h, which includes it: what the host offers to a plug-in,
 * and what a plug-in exports.
 */
#ifndef TESSERA_BACKEND_HOST_ABI_H
#define TESSERA_BACKEND_HOST_ABI_H

#include "tessera/backend_abi.h" /* NOLINT(misc-header-include-cycle): halves of one */

#ifdef __cplusplus
extern "C" {
#endif

/* --- What the host offers
 * --------------------------------------------------------------------------- */

/* Valid for as long as the plug-in is open. Every function may be called from any thread. */
typedef struct tessera_host tessera_host;
struct tessera_host {
  uint32_t struct_size;
  uint32_t contract_version;
  const char* version; /* of Tessera */
  void* host_state;

  int32_t (*node_count)(const tessera_graph* graph);
  int32_t (*value_count)(const tessera_graph* graph);
  /* Null where there is no such node or value. */
  const tessera_node* (*node)(const tessera_graph* graph, int32_t node);
  const tessera_value* (*value)(const tessera_graph* graph, int32_t value);
  /* Null where the node has no such attribute. Defaults are filled in. */
  const tessera_attribute* (*attribute)(const tessera_graph* graph, int32_t node, const char* name);

  /* Calls `visitor` for every place where `pattern` occurs; see docs/backends.md for the language.
   * Fails with TESSERA_INVALID_ARGUMENT where the pattern cannot be read. */
  int32_t (*match)(const tessera_graph* graph, const char* pattern, tessera_match_visitor visitor,
                   void* user, tessera_error* error);
  /* The nodes as an ONNX model, whose inputs and outputs are those of the group. */
  int32_t (*group_as_onnx)(const tessera_graph* graph, const int32_t* nodes, int32_t node_count,
                           tessera_bytes_visitor visitor, void* user, tessera_error* error);

  /* The reference kernel of a node, as a kernel over row-major buffers in the node's order; the
   * kernel outlives the graph. Fails with TESSERA_UNSUPPORTED where the op has none. */
  int32_t (*reference_kernel)(const tessera_graph* graph, int32_t node, tessera_kernel* kernel,
                              tessera_error* error);

  void* (*allocate)(size_t bytes, size_t alignment); /* null: no memory left */
  void (*deallocate)(void* memory, size_t alignment);
  /* Runs body(argument) inside the host's pool, so that threads which a library starts of its own
   * accord there are the host's. For building kernels. `body` must not throw. */
  void (*run_in_pool)(const tessera_host* host, int32_t threads, void (*body)(void* argument),
                      void* argument);

  /* A message for people; each distinct one is shown once. */
  void (*log)(const tessera_host* host, const char* message);

  /* Bytes kept under a key for this backend. get_blob calls `visitor` and gives 1 where they are
   * there, else 0; there is no promise that what was put is still there. */
  int32_t (*get_blob)(const tessera_host* host, const char* key, tessera_bytes_visitor visitor,
                      void* user);
  void (*put_blob)(const tessera_host* host, const char* key, const void* bytes, size_t size);

  /* As group_as_onnx, but `constants` become inputs of the model, in that order, behind those of
   * the group: a model without its weights, which `build` gets (tessera_candidate::absorbed). */
  int32_t (*open_group_as_onnx)(const tessera_graph* graph, const int32_t* nodes,
                                int32_t node_count, const int32_t* constants,
                                int32_t constant_count, tessera_bytes_visitor visitor, void* user,
                                tessera_error* error);
};

/* --- What a plug-in exports
 * -------------------------------------------------------------------------- */

/* TESSERA_CONTRACT_VERSION of the headers that the plug-in was built with. Called first. */
typedef uint32_t (*tessera_contract_version_function)(void);
/* Fills `backend`. May be called several times, each giving a backend of its own. */
typedef int32_t (*tessera_open_backend_function)(const tessera_host* host, tessera_backend* backend,
                                                 tessera_error* error);
#define TESSERA_CONTRACT_VERSION_SYMBOL "tessera_contract_version"
#define TESSERA_OPEN_BACKEND_SYMBOL "tessera_open_backend"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_BACKEND_HOST_ABI_H */
