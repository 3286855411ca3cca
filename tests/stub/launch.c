/* Launches. Nothing runs: a launch is checked and noted. */
#include "stub.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static Launch ring[RING_LAUNCHES];
static uint64_t launches;

void ring_put(const Launch *launch) {
    Launch *slot = &ring[launches % RING_LAUNCHES];
    *slot = *launch;
    slot->number = launches++;
}

#define REFUSE(status, ...)       \
    do {                          \
        complain(__VA_ARGS__);    \
        return status;            \
    } while (0)

static CUresult check_shape(const Launch *it, const struct CUfunc_st *function) {
    const Kernel *kernel = it->kernel;
    const char *name = kernel->name;
    const uint32_t *grid = it->grid, *block = it->block, *cluster = it->cluster;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535)
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: grid (%u, %u, %u)", name, grid[0], grid[1], grid[2]);
    if (!threads || threads > 1024 || block[2] > 64 || threads > kernel->most_threads)
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: block (%u, %u, %u); at most %u threads", name, block[0], block[1], block[2], kernel->most_threads);
    if (kernel->required[0] && memcmp(kernel->required, block, sizeof kernel->required))
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: block (%u, %u, %u), compiled for (%u, %u, %u)", name, block[0], block[1], block[2],
               kernel->required[0], kernel->required[1], kernel->required[2]);
    if (threads % 32) REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: %llu threads are no whole number of warps", name, (unsigned long long)threads);
    if (it->shared > (uint32_t)function->dynamic_shared)
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: %u bytes of dynamic shared memory, opted in are %d", name, it->shared, function->dynamic_shared);
    uint32_t size = cluster[0] * cluster[1] * cluster[2];
    if (!size || size > (function->nonportable ? 16u : 8u) || grid[0] % cluster[0] || grid[1] % cluster[1] || grid[2] % cluster[2])
        REFUSE(CUDA_ERROR_INVALID_CLUSTER_SIZE, "%s: clusters of (%u, %u, %u) in a grid of (%u, %u, %u)", name, cluster[0], cluster[1], cluster[2],
               grid[0], grid[1], grid[2]);
    if (size > 1 && stub_capability < 90) REFUSE(CUDA_ERROR_NOT_SUPPORTED, "%s: clusters on sm_%d", name, stub_capability);
    int room = resident(kernel, (uint32_t)threads, it->shared);
    if (!room) REFUSE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "%s: %u registers x %llu threads", name, kernel->registers, (unsigned long long)threads);
    if (it->cooperative && (uint64_t)grid[0] * grid[1] * grid[2] > (uint64_t)room * PROCESSORS)
        REFUSE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "%s: a cooperative grid of more than %d blocks", name, room * PROCESSORS);
    return CUDA_SUCCESS;
}

/* Is there memory of this process? (PROT_NONE counts as there; device addresses are asked about before.) The answers for two pages are
 * kept during one launch, because asking is a system call and the parameters lie side by side. */
static uintptr_t known_pages[2];
static bool mapped(const void *address) {
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)address / size * size;
    unsigned char resident_page;
    if (page && (page == known_pages[0] || page == known_pages[1])) return true;
    if (!page || mincore((void *)page, 1, &resident_page)) return false;
    known_pages[0] = known_pages[1];
    known_pages[1] = page;
    return true;
}

static bool readable(const void *start, size_t size) {
    return !in_device_range((CUdeviceptr)start) && mapped(start) && mapped((const char *)start + size - 1);
}

#define TENSOR_MAP_MARK 0x50414d425554535full
typedef struct {
    uint64_t mark, flags, address, strides[4];  /* bit 21 of the second word is the one that a runtime clears for old drivers */
    uint32_t dims[5], box[5], rank, type, swizzle, interleave, fill;
} StubTensorMap;
_Static_assert(sizeof(StubTensorMap) <= sizeof(CUtensorMap), "a tensor map has 128 bytes");

static CUresult check_parameter(const Launch *it, int i, CUcontext of) {
    const Parameter *parameter = &it->kernel->parameters[i];
    const unsigned char *at = it->parameters + parameter->offset;
    uint64_t value = 0;
    if (parameter->size == sizeof(CUtensorMap)) {
        const StubTensorMap *map = (const void *)at;
        if (map->mark != TENSOR_MAP_MARK) REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: parameter %d is no encoded tensor map", it->kernel->name, i);
        value = map->address;
    } else if (parameter->size == 8) {
        memcpy(&value, at, sizeof value);
        if (!parameter->pointer && !in_device_range(value)) return CUDA_SUCCESS;
    } else {
        return CUDA_SUCCESS;
    }
    if (!value || is_pinned(value, 1)) return CUDA_SUCCESS;  /* scratch that is not needed; the word for errors */
    const Allocation *found = allocation_of(value, 1);
    if (!found)
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: parameter %d is %#llx, which is in no live allocation", it->kernel->name, i, (unsigned long long)value);
    if (found->device != of->device && !(of->peers >> found->device & 1))
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: parameter %d is memory of device %d, the launch is on device %d", it->kernel->name, i, found->device,
               of->device);
    return CUDA_SUCCESS;
}

/* Gather the parameters, from the array of their addresses or from one packed block. */
static CUresult gather(Launch *it, void **parameters, void **extra) {
    const Kernel *kernel = it->kernel;
    if (kernel->parameter_bytes > RING_BYTES)
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: %u bytes of parameters; raise RING_BYTES of the stub", kernel->name, kernel->parameter_bytes);
    it->bytes = kernel->parameter_bytes;
    memset(it->parameters, 0, it->bytes);
    const void *block = NULL;
    known_pages[0] = known_pages[1] = 0;
    if (extra && readable(extra, sizeof *extra)) {
        size_t size = 0;
        for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
            if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) block = extra[i + 1];
            if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[i + 1];
        }
        if (size < kernel->parameter_bytes)
            REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: a block of %zu parameter bytes, the kernel takes %u", kernel->name, size, kernel->parameter_bytes);
        if (block && !readable(block, size)) REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: the parameter block is not readable", kernel->name);
    } else if (kernel->count && !readable(parameters, sizeof *parameters * (size_t)kernel->count)) {
        REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: no %d parameters at %p", kernel->name, kernel->count, (void *)parameters);
    }
    for (int i = 0; i < kernel->count; i++) {
        const Parameter *each = &kernel->parameters[i];
        const void *from = block ? (const char *)block + each->offset : parameters[i];
        if (!readable(from, each->size)) REFUSE(CUDA_ERROR_INVALID_VALUE, "%s: parameter %d is not readable at %p", kernel->name, i, from);
        memcpy(it->parameters + each->offset, from, each->size);
    }
    return CUDA_SUCCESS;
}

static CUresult launch(Launch *it, CUfunction function, CUstream given, void **parameters, void **extra) {
    if (!stub_checking && !atomic_load_explicit(&stub_captures, memory_order_relaxed) && !stub_slow_launch) return CUDA_SUCCESS;
    CONTEXT(of);
    LOCKED;
    if (!handle_is(function, FUNCTION)) REFUSE(CUDA_ERROR_INVALID_HANDLE, "%p is no function of a loaded module", (void *)function);
    if (function->context && function->context != of)
        REFUSE(CUDA_ERROR_INVALID_HANDLE, "%s: loaded on device %d, launched on device %d", function->kernel->name, function->context->device, of->device);
    CUstream stream = stream_of(given, of);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    it->kernel = function->kernel;
    it->device = (uint32_t)of->device;
    it->stream = (uintptr_t)given;
    CUresult status = stub_checking ? check_shape(it, function) : CUDA_SUCCESS;
    if (!status && stub_checking) status = gather(it, parameters, extra);
    for (int i = 0; i < it->kernel->count && !status && stub_checking; i++) status = check_parameter(it, i, of);
    bool captured = false;
    if (!status) status = queue_work(stream, of, stub_slow_launch, &(Node){.kind = NODE_LAUNCH, .launch = it}, &captured);
    if (!status && !captured && stub_checking) ring_put(it);
    return status;
}

static CUresult plain(CUfunction function, const uint32_t *shape, unsigned shared, CUstream stream, void **parameters, void **extra, bool cooperative) {
    Launch it;
    memcpy(it.grid, shape, sizeof it.grid);
    memcpy(it.block, shape + 3, sizeof it.block);
    it.cluster[0] = it.cluster[1] = it.cluster[2] = 1;
    it.shared = shared;
    it.cooperative = cooperative;
    it.programmatic = it.from_graph = 0;
    return launch(&it, function, stream, parameters, extra);
}

DRIVER cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                      CUstream stream, void **parameters, void **extra) {
    ENTER(cuLaunchKernel);
    return plain(function, (uint32_t[]){gx, gy, gz, bx, by, bz}, shared, stream, parameters, extra, false);
}

DRIVER cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                 unsigned shared, CUstream stream, void **parameters) {
    ENTER(cuLaunchCooperativeKernel);
    return plain(function, (uint32_t[]){gx, gy, gz, bx, by, bz}, shared, stream, parameters, NULL, true);
}

DRIVER cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    ENTER(cuLaunchKernelEx);
    Launch it;
    it.grid[0] = config->gridDimX, it.grid[1] = config->gridDimY, it.grid[2] = config->gridDimZ;
    it.block[0] = config->blockDimX, it.block[1] = config->blockDimY, it.block[2] = config->blockDimZ;
    it.cluster[0] = it.cluster[1] = it.cluster[2] = 1;
    it.shared = config->sharedMemBytes;
    it.cooperative = it.programmatic = it.from_graph = 0;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *given = &config->attrs[i];
        if (given->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            it.cluster[0] = given->value.clusterDim.x, it.cluster[1] = given->value.clusterDim.y, it.cluster[2] = given->value.clusterDim.z;
        else if (given->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            it.cooperative = given->value.cooperative != 0;
        else if (given->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            it.programmatic = given->value.programmaticStreamSerializationAllowed != 0;
    }
    return launch(&it, function, config->hStream, parameters, extra);
}

/* The function is called before the stream's earlier slow work is done: the stub has no thread of its own. */
DRIVER cuLaunchHostFunc(CUstream given, CUhostFn function, void *with) {
    ENTER(cuLaunchHostFunc);
    CONTEXT(of);
    bool captured;
    {
        LOCKED;
        CUstream stream = stream_of(given, of);
        if (!stream || !function) return stream ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
        CUresult status = queue_work(stream, of, 0, &(Node){.kind = NODE_OTHER}, &captured);
        if (status) return status;
    }
    if (!captured) function(with);
    return CUDA_SUCCESS;
}

DRIVER cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dims,
                              const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
                              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    ENTER(cuTensorMapEncodeTiled);
    (void)promotion;
    static const int bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    static const uint32_t spans[] = {0, 32, 64, 128};
    LOCKED;
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16 || rank < 1 || rank > 5 || (size_t)type >= sizeof bytes / sizeof *bytes)
        REFUSE(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: map %p (of 64), address %p (of 16), rank %u, type %d", (void *)map, address, rank, (int)type);
    if (!allocation_of((CUdeviceptr)address, 1)) REFUSE(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: %p is in no live allocation", address);
    for (cuuint32_t i = 0; i < rank; i++) {
        if (!dims[i] || dims[i] > 1ull << 32 || !box[i] || box[i] > 256 || !steps[i] || steps[i] > 8)
            REFUSE(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: dimension %u: size %llu, box %u, step %u", i, (unsigned long long)dims[i], box[i], steps[i]);
        if (i + 1 < rank && (strides[i] % 16 || strides[i] >= 1ull << 40))
            REFUSE(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: stride %llu is no multiple of 16", (unsigned long long)strides[i]);
    }
    uint32_t inner = box[0] * (uint32_t)bytes[type];
    if (interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && (inner % 16 || ((unsigned)swizzle >= 1 && (unsigned)swizzle <= 3 && inner > spans[swizzle])))
        REFUSE(CUDA_ERROR_INVALID_VALUE, "cuTensorMapEncodeTiled: a box row of %u bytes with swizzle %d", inner, (int)swizzle);
    StubTensorMap made = {.mark = TENSOR_MAP_MARK, .flags = ~0ull, .address = (uintptr_t)address, .rank = rank, .type = type, .swizzle = swizzle,
                          .interleave = interleave, .fill = fill};
    for (cuuint32_t i = 0; i < rank; i++) made.dims[i] = (uint32_t)dims[i], made.box[i] = box[i];
    for (cuuint32_t i = 0; i + 1 < rank; i++) made.strides[i] = strides[i];
    memset(map, 0, sizeof *map);
    memcpy(map, &made, sizeof made);
    return CUDA_SUCCESS;
}

/* What control.py reads. */
EXPORT uint64_t stub_launches(void) { return launches; }
EXPORT int stub_launch_bytes(void) { return (int)sizeof(Launch); }
EXPORT int stub_launch(uint64_t number, void *into) {
    LOCKED;
    if (number >= launches || number + RING_LAUNCHES < launches) return -1;
    memcpy(into, &ring[number % RING_LAUNCHES], sizeof(Launch));
    return 0;
}
EXPORT const char *stub_kernel_name(const Kernel *kernel) { return kernel->name; }
EXPORT int stub_kernel_parameters(const Kernel *kernel, uint32_t *offsets, uint32_t *sizes, uint32_t *pointers) {
    for (int i = 0; i < kernel->count; i++) {
        offsets[i] = kernel->parameters[i].offset;
        sizes[i] = kernel->parameters[i].size;
        pointers[i] = kernel->parameters[i].pointer;
    }
    return kernel->count;
}
EXPORT void stub_forget_launches(void) {
    LOCKED;
    launches = 0;
}
