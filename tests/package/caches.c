/* Does what its arguments say, in order, and ends at the first failure with its status code:
 *   caches MODEL [set NAME TEXT | load FILE TYPE | bind | run | save FILE TYPE | save_model FILE TYPE
 *                 | save_packs FILE TYPE | reload FILE TYPE]...
 * "load" and "save_model" are those of the model, "save" and "reload" those of the executor. TYPE "-"
 * is NULL. "run" runs on ones and prints the sum of the first output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/tessera_c.h>

typedef struct state {
  tessera_failure failure;
  tessera_model* model;
  tessera_bind_options* options;
  tessera_executor* executor;
} state;

static int32_t bind(state* now) {
  tessera_executor_destroy(now->executor);
  now->executor = NULL;
  return tessera_bind(now->model, now->options, &now->executor, &now->failure);
}

static int32_t run(state* now) {
  tessera_value_description input = {sizeof input};
  tessera_tensor given = {sizeof given};
  tessera_tensor result = {sizeof result};
  size_t elements = 1;
  size_t index;
  int32_t axis;
  float sum = 0;
  int32_t code = tessera_executor_input(now->executor, 0, &input, &now->failure);
  if (code != TESSERA_OK) return code;
  for (axis = 0; axis < input.rank; ++axis) elements *= (size_t)input.dims[axis];
  given.name = input.name;
  given.data_type = input.data_type;
  given.rank = input.rank;
  given.dims = input.dims;
  given.bytes = elements * sizeof(float);
  given.data = malloc(given.bytes);
  if (given.data == NULL) return TESSERA_OUT_OF_MEMORY;
  for (index = 0; index < elements; ++index) ((float*)given.data)[index] = 1;
  code = tessera_executor_run(now->executor, &given, 1, &now->failure);
  free(given.data);
  if (code == TESSERA_OK) code = tessera_executor_result(now->executor, 0, &result, &now->failure);
  if (code != TESSERA_OK) return code;
  for (index = 0; index < result.bytes / sizeof(float); ++index)
    sum += ((const float*)result.data)[index];
  printf("%.4f\n", sum);
  return TESSERA_OK;
}

/* One action with two arguments, of which the second is a type or a value. */
static int32_t act(state* now, const char* action, const char* one, const char* other) {
  const char* type = strcmp(other, "-") == 0 ? NULL : other;
  if (strcmp(action, "set") == 0)
    return tessera_bind_options_set(now->options, one, other, &now->failure);
  if (strcmp(action, "load") == 0)
    return tessera_model_load_cache(now->model, one, type, &now->failure);
  if (strcmp(action, "save_model") == 0)
    return tessera_model_save_cache(now->model, one, type, 0, &now->failure);
  if (strcmp(action, "save") == 0)
    return tessera_executor_save_cache(now->executor, one, type, 0, &now->failure);
  if (strcmp(action, "save_packs") == 0)
    return tessera_executor_save_cache(now->executor, one, type, 1, &now->failure);
  if (strcmp(action, "reload") == 0)
    return tessera_executor_load_cache(now->executor, one, type, &now->failure);
  fprintf(stderr, "there is no action '%s'\n", action);
  return -1;
}

int main(int argc, char** argv) {
  state now;
  int32_t code;
  int index = 2;
  memset(&now, 0, sizeof now);
  now.failure.struct_size = sizeof now.failure;
  code = tessera_load(argv[1], NULL, &now.model, &now.failure);
  if (code == TESSERA_OK) code = tessera_bind_options_create(&now.options, &now.failure);
  while (code == TESSERA_OK && index < argc) {
    if (strcmp(argv[index], "bind") == 0) {
      code = bind(&now);
      ++index;
    } else if (strcmp(argv[index], "run") == 0) {
      code = run(&now);
      ++index;
    } else if (index + 2 < argc) {
      code = act(&now, argv[index], argv[index + 1], argv[index + 2]);
      index += 3;
    } else {
      code = -1;
    }
  }
  if (code > 0) {
    fprintf(stderr, "%s: %s: %s\n", tessera_kind_name(now.failure.kind), now.failure.where,
            now.failure.message);
    if (now.failure.kind != code) code = -1;
  }
  tessera_executor_destroy(now.executor);
  tessera_bind_options_destroy(now.options);
  tessera_model_destroy(now.model);
  return code;
}
