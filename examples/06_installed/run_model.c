/* Runs a model on made-up inputs and prints the beginning of each output: run_model_c MODEL */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/tessera_c.h>

enum { MAX_INPUTS = 16, MAX_RANK = 8, MAX_TEXT = 4096 };

/* The inputs of the model, in memory of this program. */
typedef struct inputs {
  tessera_tensor tensors[MAX_INPUTS];
  int64_t dims[MAX_INPUTS][MAX_RANK];
  size_t count;
} inputs;

static int fail(const tessera_failure* failure) {
  fprintf(stderr, "%s: %s: %s\n", tessera_kind_name(failure->kind), failure->where,
          failure->message);
  return 1;
}

static size_t element_bytes(int32_t data_type) {
  switch (data_type) {
    case TESSERA_BOOL:
    case TESSERA_INT8:
    case TESSERA_UINT8:
      return 1;
    case TESSERA_INT16:
    case TESSERA_UINT16:
    case TESSERA_FLOAT16:
    case TESSERA_BFLOAT16:
      return 2;
    case TESSERA_INT32:
    case TESSERA_UINT32:
    case TESSERA_FLOAT32:
      return 4;
    default:
      return 8;
  }
}

/* A tensor of 0, 0.01, 0.02, ... if it has floats, otherwise of zeros. Unknown dimensions become 1.
 * Returns 0 if there is no memory. */
static int make_input(const tessera_value_description* input, int64_t* dims,
                      tessera_tensor* tensor) {
  size_t elements = 1;
  int32_t axis;
  const int32_t rank = input->rank > 0 ? input->rank : 0;
  if (rank > MAX_RANK) return 0;
  for (axis = 0; axis < rank; ++axis) {
    dims[axis] = input->dims[axis] < 0 ? 1 : input->dims[axis];
    elements *= (size_t)dims[axis];
  }
  memset(tensor, 0, sizeof *tensor);
  tensor->struct_size = sizeof *tensor;
  tensor->name = input->name;
  tensor->data_type = input->data_type;
  tensor->rank = rank;
  tensor->dims = dims;
  tensor->bytes = elements * element_bytes(input->data_type);
  tensor->data = calloc(tensor->bytes + 1, 1);
  if (tensor->data == NULL) return 0;
  if (input->data_type == TESSERA_FLOAT32) {
    float* element = tensor->data;
    float next = 0;
    size_t index;
    for (index = 0; index < elements; ++index) {
      element[index] = next;
      next = next < 1 ? next + 0.01F : 0;
    }
  }
  return 1;
}

/* Sets the option "shapes" to the dims of a tensor: "data_0=1x3x224x224". */
static int32_t set_shape(tessera_bind_options* options, const tessera_tensor* tensor,
                         tessera_failure* failure) {
  char text[MAX_TEXT];
  int32_t axis;
  int length =
      snprintf(text, sizeof text, "%s=%s", tensor->name, tensor->rank == 0 ? "scalar" : "");
  for (axis = 0; axis < tensor->rank && length < MAX_TEXT; ++axis) {
    length += snprintf(text + length, sizeof text - (size_t)length, "%s%" PRId64,
                       axis == 0 ? "" : "x", tensor->dims[axis]);
  }
  return tessera_bind_options_set(options, "shapes", text, failure);
}

static void print(const tessera_tensor* tensor) {
  const float* element = tensor->data;
  int32_t axis;
  size_t index;
  printf("%s %s ", tensor->name, tensor->data_type == TESSERA_FLOAT32 ? "float32" : "another type");
  for (axis = 0; axis < tensor->rank; ++axis)
    printf("%s%" PRId64, axis == 0 ? "" : "x", tensor->dims[axis]);
  if (tensor->rank == 0) printf("scalar");
  if (tensor->data_type == TESSERA_FLOAT32) {
    for (index = 0; index < 3 && index < tensor->bytes / sizeof(float); ++index)
      printf(" %g", element[index]);
  }
  printf("\n");
}

int main(int argc, char** argv) {
  tessera_failure failure = {sizeof failure};
  tessera_model* model = NULL;
  tessera_bind_options* options = NULL;
  tessera_executor* executor = NULL;
  static inputs given;
  size_t index;
  int code = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: run_model_c MODEL\n");
    return 2;
  }
  if (tessera_load(argv[1], NULL, &model, &failure) != TESSERA_OK ||
      tessera_bind_options_create(&options, &failure) != TESSERA_OK ||
      tessera_bind_options_set(options, "threads", "1", &failure) != TESSERA_OK) {
    code = fail(&failure);
  }
  for (index = 0; code == 0 && index < tessera_model_input_count(model); ++index) {
    tessera_value_description input = {sizeof input};
    if (index == MAX_INPUTS) {
      fprintf(stderr, "expected at most %d inputs\n", MAX_INPUTS);
      code = 1;
    } else if (tessera_model_input(model, index, &input, &failure) != TESSERA_OK) {
      code = fail(&failure);
    } else if (!make_input(&input, given.dims[index], &given.tensors[index])) {
      fprintf(stderr, "input '%s': expected at most %d dimensions, and memory for %s\n", input.name,
              MAX_RANK, input.text);
      code = 1;
    } else {
      given.count = index + 1;
      if (set_shape(options, &given.tensors[index], &failure) != TESSERA_OK) code = fail(&failure);
    }
  }
  if (code == 0 &&
      (tessera_bind(model, options, &executor, &failure) != TESSERA_OK ||
       tessera_executor_run(executor, given.tensors, given.count, &failure) != TESSERA_OK)) {
    code = fail(&failure);
  }
  /* Sizes of outputs may be known only after the run. */
  for (index = 0; code == 0 && index < tessera_executor_output_count(executor); ++index) {
    tessera_tensor result = {sizeof result};
    if (tessera_executor_result(executor, index, &result, &failure) != TESSERA_OK)
      code = fail(&failure);
    else
      print(&result);
  }
  for (index = 0; index < given.count; ++index) free(given.tensors[index].data);
  tessera_executor_destroy(executor);
  tessera_bind_options_destroy(options);
  tessera_model_destroy(model);
  return code;
}
