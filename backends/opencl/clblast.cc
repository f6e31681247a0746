#include "clblast.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "devices.h"
#include "products.h"
#include "stage.h"

namespace tessera::opencl {

using plugin::DevicePosition;
using plugin::Failure;

namespace {

constexpr const char* kClblastLibrary = "libclblast.so.1";
constexpr int64_t kMaxOffset = int64_t{1} << 30;  // leaves room for the matrix behind it

Clblast load_clblast() {
  // Never closed: it keeps programs of OpenCL until the process ends.
  void* library = dlopen(kClblastLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw Failure(TESSERA_UNSUPPORTED, std::string("CLBlast cannot be loaded: ") +
                                           (reason ? reason : "?") +
                                           " (Debian: apt-get install libclblast1)");
  }
  Clblast functions;
  const auto resolve = [&]<class Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function != nullptr) return;
    throw Failure(TESSERA_UNSUPPORTED, std::string(kClblastLibrary) + " has no " + name +
                                           "; expected CLBlast 1.5 or newer");
  };
  resolve(functions.gemm, "CLBlastSgemm");
  resolve(functions.gemm_with_workspace, "CLBlastSgemmWithTempBuffer");
  resolve(functions.gemm_batched, "CLBlastSgemmStridedBatched");
  resolve(functions.gemm_workspace_bytes, "CLBlastSGemmTempBufferSize");
  return functions;
}

void check_clblast(CLBlastStatusCode status, const char* function) {
  if (status == CLBlastSuccess) return;
  const bool is_memory =
      status == CLBlastTempBufferAllocFailure || status == CLBlastOpenCLOutOfHostMemory;
  throw Failure(is_memory ? TESSERA_OUT_OF_MEMORY : TESSERA_DEVICE_FAILED,
                std::string(function) + " failed with status " + std::to_string(status));
}

CLBlastTranspose transposition(bool is_transposed) {
  return is_transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
}

std::string compiled_key(const DeviceFacts& device) {
  return "clblast/" + digest(device.name + "\n" + device.driver);
}

size_t size(int64_t number) { return static_cast<size_t>(number); }

// Locked in every call: CLBlast 1.5 sets up its table of devices without a lock of its own, and
// crashes if two threads do that at once.
std::mutex& clblast_mutex() {
  static std::mutex mutex;
  return mutex;
}

// A matrix for one call, with its offset in elements.
struct Matrix {
  cl_mem memory = nullptr;
  size_t offset = 0;
  Shared<cl_mem> part = nullptr;  // keeps `memory` if it is a part of another
};

class ProductStage {
 public:
  ProductStage(std::shared_ptr<OpenedDevice> device, Product product)
      : device_(std::move(device)), product_(std::move(product)), clblast_(open_clblast()) {
    const Shared<cl_command_queue> queue =
        shared(device_->runtime, device_->create_queue(), &Functions::clReleaseCommandQueue);
    const std::lock_guard lock(clblast_mutex());
    workspace_bytes_ = find_workspace(queue.get());
    if (workspace_bytes_ > size(product_workspace(product_))) {
      throw Failure(TESSERA_UNSUPPORTED, "CLBlast needs more scratch memory than expected");
    }
    // Entries that need the workspace take turns. The others run at once.
    if (workspace_bytes_ == 0 && product_.batch.size() > 1) step_ = batch_step(product_.batch);
    compile(queue.get());
  }

  void enqueue(const RunBuffers& buffers) const {
    cl_command_queue queue = buffers.queue;
    const std::lock_guard lock(clblast_mutex());
    if (step_) return enqueue_batch(buffers, queue);
    const Shared<cl_mem> workspace = workspace_of(buffers);
    for (const BatchEntry& offsets : product_.batch) {
      enqueue_one(buffers, offsets, queue, workspace.get());
    }
  }

 private:
  // At any offset: CLBlast needs less for a matrix at offset 0.
  size_t find_workspace(cl_command_queue queue) const {
    size_t bytes = 0;
    check_clblast(clblast_.gemm_workspace_bytes(
                      CLBlastLayoutRowMajor, transposition(product_.is_a_transposed),
                      transposition(product_.is_b_transposed), size(product_.m), size(product_.n),
                      size(product_.k), 1, size(product_.lda), 1, size(product_.ldb), 1,
                      size(product_.ldc), &queue, &bytes),
                  "CLBlastSGemmTempBufferSize");
    return bytes;
  }

  // CLBlast compiles its programs when it is first called: a tiny product does it now, so that
  // runs only enqueue. It keeps the programs for the context and the whole process.
  void compile(cl_command_queue queue) const {
    cl_int status = CL_SUCCESS;
    const Functions& cl = device_->runtime->cl;
    cl_mem made = cl.clCreateBuffer(device_->context.get(), CL_MEM_READ_WRITE, 4 * sizeof(float),
                                    nullptr, &status);
    check(status, "clCreateBuffer");
    const Shared<cl_mem> memory = shared(device_->runtime, made, &Functions::clReleaseMemObject);
    if (step_) {
      check_clblast(clblast_.gemm_batched(CLBlastLayoutRowMajor, CLBlastTransposeNo,
                                          CLBlastTransposeNo, 1, 1, 1, 1, made, 0, 1, 0, made, 1, 1,
                                          0, 0, made, 2, 1, 1, 2, &queue, nullptr),
                    "CLBlastSgemmStridedBatched");
    } else {
      check_clblast(clblast_.gemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, 1,
                                  1, 1, 1, made, 0, 1, made, 1, 1, 0, made, 2, 1, &queue, nullptr),
                    "CLBlastSgemm");
    }
    check(cl.clFinish(queue), "clFinish");
    device_->blobs.put(compiled_key(device_->facts), "compiled");
  }

  // The bytes from `begin` on as a memory object of its own. Enqueued work keeps it alive.
  Shared<cl_mem> part_of(cl_mem memory, int64_t begin, size_t bytes) const {
    const cl_buffer_region region = {size(begin), bytes};
    cl_int status = CL_SUCCESS;
    cl_mem part = device_->runtime->cl.clCreateSubBuffer(
        memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    check(status, "clCreateSubBuffer");
    return shared(device_->runtime, part, &Functions::clReleaseMemObject);
  }

  // Null if CLBlast needs none.
  Shared<cl_mem> workspace_of(const RunBuffers& buffers) const {
    if (workspace_bytes_ == 0) return nullptr;
    const DevicePosition position = buffers.find(product_.workspace);
    return part_of(static_cast<cl_mem>(position.handle), position.offset_bytes, workspace_bytes_);
  }

  // CLBlast passes offsets to its kernels as int.
  Matrix matrix_at(const RunBuffers& buffers, const Place& place, int64_t first) const {
    const DevicePosition position = buffers.find(place.plus(first * kFloatBytes));
    auto* memory = static_cast<cl_mem>(position.handle);
    const int64_t offset = position.offset_bytes / kFloatBytes;
    if (offset <= kMaxOffset) return {memory, size(offset)};
    const int64_t begin =
        position.offset_bytes / device_->facts.alignment_bytes * device_->facts.alignment_bytes;
    size_t all = 0;
    check(device_->runtime->cl.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(all), &all, nullptr),
          "clGetMemObjectInfo");
    Shared<cl_mem> part = part_of(memory, begin, all - size(begin));
    cl_mem handle = part.get();
    return {handle, size((position.offset_bytes - begin) / kFloatBytes), std::move(part)};
  }

  void enqueue_one(const RunBuffers& buffers, const BatchEntry& offsets, cl_command_queue& queue,
                   cl_mem workspace) const {
    const Matrix a = matrix_at(buffers, product_.a, offsets.a);
    const Matrix b = matrix_at(buffers, product_.b, offsets.b);
    const Matrix c = matrix_at(buffers, product_.c, offsets.c);
    const auto call = [&](auto function, auto... last) {
      return function(CLBlastLayoutRowMajor, transposition(product_.is_a_transposed),
                      transposition(product_.is_b_transposed), size(product_.m), size(product_.n),
                      size(product_.k), product_.alpha, a.memory, a.offset, size(product_.lda),
                      b.memory, b.offset, size(product_.ldb), product_.beta, c.memory, c.offset,
                      size(product_.ldc), &queue, nullptr, last...);
    };
    check_clblast(
        workspace == nullptr ? call(clblast_.gemm) : call(clblast_.gemm_with_workspace, workspace),
        "CLBlastSgemm");
  }

  void enqueue_batch(const RunBuffers& buffers, cl_command_queue& queue) const {
    const BatchEntry& first = product_.batch.front();
    const Matrix a = matrix_at(buffers, product_.a, first.a);
    const Matrix b = matrix_at(buffers, product_.b, first.b);
    const Matrix c = matrix_at(buffers, product_.c, first.c);
    check_clblast(clblast_.gemm_batched(
                      CLBlastLayoutRowMajor, transposition(product_.is_a_transposed),
                      transposition(product_.is_b_transposed), size(product_.m), size(product_.n),
                      size(product_.k), product_.alpha, a.memory, a.offset, size(product_.lda),
                      size(step_->a), b.memory, b.offset, size(product_.ldb), size(step_->b),
                      product_.beta, c.memory, c.offset, size(product_.ldc), size(step_->c),
                      product_.batch.size(), &queue, nullptr),
                  "CLBlastSgemmStridedBatched");
  }

  std::shared_ptr<OpenedDevice> device_;
  Product product_;
  const Clblast& clblast_;
  size_t workspace_bytes_ = 0;
  std::optional<BatchEntry> step_;  // of a batch that runs at once
};

}  // namespace

const Clblast& open_clblast() {
  // Initialised again by the next call if it throws.
  static const Clblast kOpened = load_clblast();
  return kOpened;
}

std::string explain_no_clblast() {
  try {
    open_clblast();
    return "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

double clblast_build_seconds(const DeviceFacts& device, const plugin::Blobs& blobs) {
  constexpr double kSeconds = 6;
  return blobs.get(compiled_key(device)) ? 0 : kSeconds;
}

int64_t product_workspace(const Product& product) {
  // CLBlast copies matrices into padded ones if their sizes are no multiples of its tiles. These
  // are the largest tiles of its table of devices.
  constexpr int64_t kTile = 128;
  const auto padded = [](int64_t count) { return (count + kTile - 1) / kTile * kTile; };
  const int64_t m = padded(product.m);
  const int64_t n = padded(product.n);
  const int64_t k = padded(product.k);
  return (m * k + k * n + m * n) * kFloatBytes;
}

Stage make_product(const std::shared_ptr<OpenedDevice>& device, const Product& product) {
  const auto stage = std::make_shared<const ProductStage>(device, product);
  return [stage](const RunBuffers& buffers) { stage->enqueue(buffers); };
}

}  // namespace tessera::opencl
