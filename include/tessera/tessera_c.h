/* Tessera's C interface: load a model, bind it to shapes, run it. C99; from C++, tessera/tessera.h
 * is more convenient.
 *
 *   tessera_failure failure = {sizeof failure};
 *   tessera_model* model = NULL;
 *   tessera_executor* executor = NULL;
 *   if (tessera_load("squeezenet.onnx", NULL, &model, &failure) != TESSERA_OK ||
 *       tessera_bind(model, NULL, &executor, &failure) != TESSERA_OK ||
 *       tessera_executor_run(executor, &picture, 1, &failure) != TESSERA_OK)
 *     fprintf(stderr, "%s: %s\n", failure.where, failure.message);
 *
 * Rules that hold for all functions:
 *  - A function that can fail returns TESSERA_OK or the kind of its failure (tessera_kind_name()).
 * If it fails, it writes the details into `failure`, which may be NULL, and does nothing else. If
 * it succeeds, `failure` is unchanged.
 *  - No exception leaves a function, and NULL for an argument that is needed is a failure.
 *  - Every struct begins with struct_size, which the caller sets to sizeof of the struct before a
 *    call. Later versions add members at the end. A program and a library of different versions
 * work together; only a member that the library does not know must stay zero.
 *  - Strings are UTF-8 and end with a zero byte. Names of files are the bytes that the system uses.
 *  - What a _create, _load or _bind function returns is freed by the _destroy function of its type,
 *    which accepts NULL. A model may be destroyed before its executors.
 *  - "Thread-safe": several threads may call it at the same time with the same object. "One thread
 * at a time": per object; different objects are independent. */
#ifndef TESSERA_TESSERA_C_H
#define TESSERA_TESSERA_C_H

#include <stddef.h>
#include <stdint.h>

/* The status codes, TESSERA_OK to TESSERA_INTERNAL, and the types of elements, TESSERA_BOOL to
 * TESSERA_UINT2. */
#include "tessera/backend_types_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Version and failures --------------------------------------------------------------------- */

/* The version of this header. tessera_c_version() returns that of the library. A newer library has
 * all functions of an older header. */
#define TESSERA_C_VERSION 1u

/* Further status codes. */
enum {
  TESSERA_CANCELLED = 8, /* tessera_executor_cancel(), or the time limit of a run */
  TESSERA_CACHE_MISS = 9 /* the option "frozen", and no cache has what is needed */
};

/* Why a function failed. Longer texts are cut. */
typedef struct tessera_failure {
  size_t struct_size;
  int32_t kind;       /* what the function returned */
  char where[512];    /* "node 'conv1' (Conv), input 'W'", "argument 'model'" */
  char message[2048]; /* what was expected and what was found */
} tessera_failure;

/* Thread-safe. */
uint32_t tessera_c_version(void);
/* "0.1.0". Thread-safe. */
const char* tessera_version(void);
/* "InvalidArgument"; "OK" for TESSERA_OK, "unknown" for other numbers. Thread-safe. */
const char* tessera_kind_name(int32_t kind);

/* --- Tensors ---------------------------------------------------------------------------------- */

/* Further values of data_type of tessera_tensor: a list of tensors, and a map. */
enum { TESSERA_SEQUENCE = 15, TESSERA_MAP = 26 };

/* An element of a tensor of strings. */
typedef struct tessera_string {
  const char* text; /* UTF-8; no zero byte is needed at the end, but results have one */
  size_t bytes;     /* without it */
} tessera_string;

/* A dense row-major tensor in memory of the host. In calls, several tensors are an array whose
 * elements have the struct_size of the first.
 *
 * Elements of TESSERA_STRING are structs tessera_string. Those of TESSERA_SEQUENCE, which has one
 * dimension, are structs tessera_tensor, whose names are ignored; lists may contain lists. The one
 * dimension of TESSERA_MAP is 2: the first struct tessera_tensor has the keys, which are of
 * TESSERA_INT64 or TESSERA_STRING, the second one as many values. Inputs of these kinds are copied.
 * An optional without a content has the type TESSERA_UNDEFINED, rank 0 and no data. */
typedef struct tessera_tensor {
  size_t struct_size;
  const char* name;    /* of the input or output */
  int32_t data_type;   /* TESSERA_FLOAT32, ... */
  int32_t rank;        /* 0: a scalar, which has one element */
  const int64_t* dims; /* `rank` numbers; may be NULL if rank is 0 */
  void* data;          /* aligned to the size of an element; inputs are never written */
  size_t bytes;        /* the product of dims and the size of an element */
} tessera_tensor;

/* An input or output. */
typedef struct tessera_value_description {
  size_t struct_size;
  const char* name;
  int32_t data_type;
  int32_t rank;        /* -1: not known */
  const int64_t* dims; /* -1: not known */
  /* For each dimension the name that the model gives to an unknown one; "" if it is a number. */
  const char* const* symbols;
  int32_t is_read;  /* 0: nothing reads this input, so it may be left out */
  const char* text; /* "float32 1x3xHx224" */
} tessera_value_description;

/* --- Models ----------------------------------------------------------------------------------- */

typedef struct tessera_model tessera_model;

/* Receives a message for people, without a line end. It is called from the thread that calls
 * Tessera or from one of Tessera's own threads, and must not throw. */
typedef void (*tessera_log)(void* user, const char* message);

/* Options of loading; 0 and NULL mean the default. */
typedef struct tessera_load_options {
  size_t struct_size;
  int32_t threads;          /* for loading; 0: all cores */
  int32_t is_strict;        /* a wrong declared shape of an inner value is a failure */
  int32_t keeps_all_values; /* every value of the file can be fetched; costs speed and memory */
  int32_t copies_weights;   /* copy weights of external files instead of mapping these files */
  /* Plug-ins, or folders of plug-ins, to use beside those that were installed with the library;
   * separated by ':'. A file that is called like one that was installed replaces it. */
  const char* backend_paths;
  /* Of a model in memory: the folder of its external data; NULL: the working folder. */
  const char* folder;
  tessera_log log; /* receives warnings; NULL: they go to stderr */
  void* log_user;  /* the first argument of `log` */
} tessera_load_options;

/* Loads an ONNX file. `options` may be NULL. Thread-safe. */
int32_t tessera_load(const char* file, const tessera_load_options* options, tessera_model** model,
                     tessera_failure* failure);
/* Loads a model from `size` bytes of an ONNX file, which are copied. Thread-safe. */
int32_t tessera_load_bytes(const void* bytes, size_t size, const tessera_load_options* options,
                           tessera_model** model, tessera_failure* failure);
/* One thread at a time, and no other call with this model may be running. */
void tessera_model_destroy(tessera_model* model);

/* The number of inputs, without those that have a value in the file; 0 for NULL. Thread-safe. */
size_t tessera_model_input_count(const tessera_model* model);
size_t tessera_model_output_count(const tessera_model* model);
/* As the model declares it. The pointers in `description` are valid as long as the model. Fails
 * with TESSERA_INVALID_ARGUMENT if there is no such input. Thread-safe. */
int32_t tessera_model_input(const tessera_model* model, size_t index,
                            tessera_value_description* description, tessera_failure* failure);
int32_t tessera_model_output(const tessera_model* model, size_t index,
                             tessera_value_description* description, tessera_failure* failure);

/* --- Options of binding ----------------------------------------------------------------------- */

typedef struct tessera_bind_options tessera_bind_options;

/* Thread-safe. */
int32_t tessera_bind_options_create(tessera_bind_options** options, tessera_failure* failure);
void tessera_bind_options_destroy(tessera_bind_options* options);

/* Sets an option, by the name that docs/options.md has in its first column, without the group:
 * "threads", "nan", "cache_dir", "tune_budget_seconds". How a value is written:
 *   a number           "2", "0.5"; bytes also "512M"
 *   a bool             "true" or "false"
 *   one of several     "behind", as the option's text lists them
 *   a list of names    "native,reference"
 *   a shape or layout  "data_0=1x3x224x224", "x=csr:4000"; of "shape_ranges": "tokens=1x8..128"
 *   a pin, an exclusion, a state pair  "conv1=native:winograd", "native:Conv", "past=present"
 * A later call replaces a value. For shapes, layouts, pins, exclusions and state pairs, which are
 * several, it adds one; a shape or layout of the same name is replaced.
 * Fails with TESSERA_INVALID_ARGUMENT for an unknown name (suggesting the likely one), and for a
 * text that is no value of the option; then the options are unchanged. One thread at a time. */
int32_t tessera_bind_options_set(tessera_bind_options* options, const char* name, const char* text,
                                 tessera_failure* failure);
/* Adds values of an input on which candidates are compared with the reference while measuring; the
 * elements are copied. One thread at a time. */
int32_t tessera_bind_options_add_tuning_input(tessera_bind_options* options,
                                              const tessera_tensor* tensor,
                                              tessera_failure* failure);

/* The names that tessera_bind_options_set() knows, and a text for each; NULL beyond the last. Valid
 * as long as the library is loaded. Thread-safe. */
size_t tessera_bind_option_count(void);
const char* tessera_bind_option_name(size_t index);
const char* tessera_bind_option_text(size_t index);

/* --- Executors -------------------------------------------------------------------------------- */

typedef struct tessera_executor tessera_executor;

/* Plans for the given shapes. `options` may be NULL; they are copied. The first bind of a model may
 * measure for some seconds (option "optimize"). If shapes are missing that the model leaves open,
 * the first run plans instead, for those of its inputs. Thread-safe. */
int32_t tessera_bind(const tessera_model* model, const tessera_bind_options* options,
                     tessera_executor** executor, tessera_failure* failure);
/* One thread at a time, and no run may be going on. */
void tessera_executor_destroy(tessera_executor* executor);

/* Inputs and outputs with the shapes of the newest run, or with the bound shapes before the first
 * run; fetched values follow the outputs. The pointers are valid until the next call with this
 * executor that runs, loads a cache or destroys it. One thread at a time. */
size_t tessera_executor_input_count(const tessera_executor* executor);
size_t tessera_executor_output_count(const tessera_executor* executor);
int32_t tessera_executor_input(tessera_executor* executor, size_t index,
                               tessera_value_description* description, tessera_failure* failure);
int32_t tessera_executor_output(tessera_executor* executor, size_t index,
                                tessera_value_description* description, tessera_failure* failure);

/* Runs on `count` inputs, in any order, which are read where they are. Inputs that are bound, and
 * those that nothing reads, may be left out. Inputs of new shapes are planned for first, if the
 * model leaves shapes open. One thread at a time. */
int32_t tessera_executor_run(tessera_executor* executor, const tessera_tensor* inputs, size_t count,
                             tessera_failure* failure);
/* An output of the newest tessera_executor_run(), whose size may be known only now. Its memory is
 * the executor's, or what the output is bound to, and is valid until the next call that runs, loads
 * a cache or destroys the executor. Fails with TESSERA_INVALID_ARGUMENT if there was no run, or if
 * the newest one failed. One thread at a time. */
int32_t tessera_executor_result(tessera_executor* executor, size_t index, tessera_tensor* result,
                                tessera_failure* failure);

/* Binds an input or output to memory of the caller, which all later runs read or write in place,
 * until another call replaces it. The memory must stay valid until then. Outputs whose size is
 * known only in the run cannot be bound. One thread at a time. */
int32_t tessera_executor_bind_input(tessera_executor* executor, const tessera_tensor* input,
                                    tessera_failure* failure);
int32_t tessera_executor_bind_output(tessera_executor* executor, const tessera_tensor* output,
                                     tessera_failure* failure);
/* Removes all bindings. One thread at a time. */
int32_t tessera_executor_clear_bindings(tessera_executor* executor, tessera_failure* failure);
/* The fastest run: all inputs and outputs are bound, and nothing is allocated. It leaves no result
 * for tessera_executor_result(). One thread at a time. */
int32_t tessera_executor_run_bound(tessera_executor* executor, tessera_failure* failure);

/* Cancels the current run, if there is one, which then fails with TESSERA_CANCELLED. Thread-safe,
 * also during a run, and may be called in a signal handler. Ignores NULL. */
void tessera_executor_cancel(tessera_executor* executor);
/* Cancels every later run that takes longer; 0: no limit. One thread at a time. */
int32_t tessera_executor_set_time_limit(tessera_executor* executor, double seconds,
                                        tessera_failure* failure);
/* Waits for the faster plan that is built in the background, which the next run then uses; returns
 * at once if there is none. One thread at a time. */
int32_t tessera_executor_wait_for_swap(tessera_executor* executor, tessera_failure* failure);

/* --- Caches ----------------------------------------------------------------------------------- */

/* Saves the results of the bind. `type`: "all" (also for NULL), "plan", or the name of a
 * backend. With `include_packs` also the packed weights. One thread at a time. */
int32_t tessera_executor_save_cache(const tessera_executor* executor, const char* file,
                                    const char* type, int32_t include_packs,
                                    tessera_failure* failure);
/* Plans again with the contents of the file. Bindings are lost. One thread at a time. */
int32_t tessera_executor_load_cache(tessera_executor* executor, const char* file, const char* type,
                                    tessera_failure* failure);
/* Save the newest bind of a model with "optimize"; load for its later binds. Thread-safe. */
int32_t tessera_model_save_cache(const tessera_model* model, const char* file, const char* type,
                                 int32_t include_packs, tessera_failure* failure);
int32_t tessera_model_load_cache(tessera_model* model, const char* file, const char* type,
                                 tessera_failure* failure);
/* Writes a bundle: one file with the model, its weights, and the results of `count` binds with
 * these options, which take place first. Without options (0), one bind with default options.
 * tessera_load() and tessera_load_bytes() accept a bundle in place of a model. Thread-safe. */
int32_t tessera_model_save_bundle(const tessera_model* model, const char* file,
                                  const tessera_bind_options* const* options, size_t count,
                                  tessera_failure* failure);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_TESSERA_C_H */
