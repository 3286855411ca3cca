/* Devices and their primary contexts; every device is an H100 of the capability and memory that the environment names. */
#include "stub.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool stub_checking = true;
int stub_devices = 1, stub_capability = 90;
size_t stub_memory = 85520809984ull;
_Thread_local CUcontext stub_current;
_Thread_local int stub_thread;
static _Thread_local CUcontext beneath[32];  /* the thread's stack of contexts under the current one */
static _Thread_local int depth;
static struct CUctx_st primary[MOST_DEVICES];
static unsigned flags_of[MOST_DEVICES];

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 0) : otherwise;
}

CUresult stub_start(void) {
    stub_devices = (int)setting("STUB_DEVICES", 1);
    stub_capability = (int)setting("STUB_CAPABILITY", 90);
    stub_memory = (size_t)setting("STUB_MEMORY", 85520809984l);
    stub_checking = setting("STUB_CHECK", 1) != 0;
    for (int i = 0; i < MOST_DEVICES; i++) primary[i].device = i;
    CUresult status = (CUresult)setting("STUB_INIT_STATUS", 0);
    if (status) return status;
    if (stub_devices > MOST_DEVICES) return CUDA_ERROR_INVALID_VALUE;
    return stub_devices > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

int thread_number(void) {
    static atomic_int threads;
    if (!stub_thread) stub_thread = atomic_fetch_add(&threads, 1) + 1;
    return stub_thread;
}

static bool is_context(CUcontext it) { return it >= primary && it < primary + MOST_DEVICES && it->references > 0; }

CUcontext context(void) { return stub_current && stub_current->references > 0 ? stub_current : NULL; }

int driver_version(void) { return (int)setting("STUB_DRIVER_VERSION", 13000); }

DRIVER cuDriverGetVersion(int *version) {
    ENTER(cuDriverGetVersion);
    *version = driver_version();
    return CUDA_SUCCESS;
}

#define DEVICE(number) \
    if ((number) < 0 || (number) >= stub_devices) return CUDA_ERROR_INVALID_DEVICE

DRIVER cuDeviceGetCount(int *count) {
    ENTER(cuDeviceGetCount);
    *count = stub_devices;
    return CUDA_SUCCESS;
}

DRIVER cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER(cuDeviceGet);
    DEVICE(ordinal);
    *device = ordinal;
    return CUDA_SUCCESS;
}

DRIVER cuDeviceGetName(char *name, int length, CUdevice device) {
    ENTER(cuDeviceGetName);
    DEVICE(device);
    snprintf(name, (size_t)length, "Stub H100");
    return CUDA_SUCCESS;
}

DRIVER cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    ENTER(cuDeviceGetUuid);
    DEVICE(device);
    memset(uuid->bytes, 0x5b, sizeof uuid->bytes);
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

DRIVER cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    ENTER(cuDeviceTotalMem);
    DEVICE(device);
    *bytes = stub_memory;
    return CUDA_SUCCESS;
}

DRIVER cuDeviceGetPCIBusId(char *into, int length, CUdevice device) {
    ENTER(cuDeviceGetPCIBusId);
    DEVICE(device);
    snprintf(into, (size_t)length, "0000:%02X:00.0", 16 + device);
    return CUDA_SUCCESS;
}

static const struct { CUdevice_attribute which; int value; } attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, STATIC_SHARED},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, OPTIN_SHARED},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, SHARED_PER_SM},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, REGISTERS_PER_SM},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, REGISTERS_PER_SM},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, THREADS_PER_SM},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, BLOCKS_PER_SM},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, PROCESSORS},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 32768000},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
};

DRIVER cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
    ENTER(cuDeviceGetAttribute);
    DEVICE(device);
    bool hopper = stub_capability >= 90;
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = stub_capability / 10; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = stub_capability % 10; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: *value = 16 + device; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: *value = 1; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: *value = hopper; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED: *value = hopper; return CUDA_SUCCESS;
    default: break;
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i].which == which) {
            *value = attributes[i].value;
            return CUDA_SUCCESS;
        }
    complain("cuDeviceGetAttribute: the stub has no value for attribute %d; add it to tests/stub/device.c", (int)which);
    return CUDA_ERROR_INVALID_VALUE;
}

DRIVER cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    ENTER(cuDeviceCanAccessPeer);
    DEVICE(device);
    DEVICE(peer);
    *can = device != peer && !getenv("STUB_NO_PEERS");
    return CUDA_SUCCESS;
}

DRIVER cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute which, CUdevice device, CUdevice peer) {
    ENTER(cuDeviceGetP2PAttribute);
    DEVICE(device);
    DEVICE(peer);
    *value = which != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK && !getenv("STUB_NO_PEERS");
    return device == peer ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/* Primary contexts. The last release ends the context: what it holds goes with it. */
static void end_context(CUcontext it) {
    streams_reset(it);
    modules_reset(it);
    memory_reset(it->device);
    it->peers = 0;
}

DRIVER cuDevicePrimaryCtxRetain(CUcontext *found, CUdevice device) {
    ENTER(cuDevicePrimaryCtxRetain);
    DEVICE(device);
    LOCKED;
    primary[device].references++;
    *found = &primary[device];
    return CUDA_SUCCESS;
}

DRIVER cuDevicePrimaryCtxRelease(CUdevice device) {
    ENTER(cuDevicePrimaryCtxRelease);
    DEVICE(device);
    LOCKED;
    if (!primary[device].references) return CUDA_ERROR_INVALID_CONTEXT;
    if (!--primary[device].references) end_context(&primary[device]);
    return CUDA_SUCCESS;
}

DRIVER cuDevicePrimaryCtxReset(CUdevice device) {
    ENTER(cuDevicePrimaryCtxReset);
    DEVICE(device);
    LOCKED;
    end_context(&primary[device]);
    return CUDA_SUCCESS;
}

DRIVER cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    ENTER(cuDevicePrimaryCtxGetState);
    DEVICE(device);
    *flags = flags_of[device];
    *active = primary[device].references > 0;
    return CUDA_SUCCESS;
}

DRIVER cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
    ENTER(cuDevicePrimaryCtxSetFlags);
    DEVICE(device);
    flags_of[device] = flags;
    return CUDA_SUCCESS;
}

DRIVER cuCtxSetCurrent(CUcontext it) {
    ENTER(cuCtxSetCurrent);
    if (it && !is_context(it)) return CUDA_ERROR_INVALID_CONTEXT;
    stub_current = it;
    return CUDA_SUCCESS;
}

DRIVER cuCtxGetCurrent(CUcontext *found) {
    ENTER(cuCtxGetCurrent);
    *found = stub_current;
    return CUDA_SUCCESS;
}

DRIVER cuCtxPushCurrent(CUcontext it) {
    ENTER(cuCtxPushCurrent);
    if (!is_context(it) || depth == 32) return CUDA_ERROR_INVALID_CONTEXT;
    beneath[depth++] = stub_current;
    stub_current = it;
    return CUDA_SUCCESS;
}

DRIVER cuCtxPopCurrent(CUcontext *found) {
    ENTER(cuCtxPopCurrent);
    if (!stub_current) return CUDA_ERROR_INVALID_CONTEXT;
    if (found) *found = stub_current;
    stub_current = depth ? beneath[--depth] : NULL;
    return CUDA_SUCCESS;
}

DRIVER cuCtxGetDevice(CUdevice *device) {
    ENTER(cuCtxGetDevice);
    CONTEXT(it);
    *device = it->device;
    return CUDA_SUCCESS;
}

DRIVER cuCtxGetDevice_v2(CUdevice *device, CUcontext of) {
    ENTER(cuCtxGetDevice_v2);
    CUcontext it = of ? of : context();
    if (!is_context(it)) return CUDA_ERROR_INVALID_CONTEXT;
    *device = it->device;
    return CUDA_SUCCESS;
}

DRIVER cuCtxGetFlags(unsigned *flags) {
    ENTER(cuCtxGetFlags);
    CONTEXT(it);
    *flags = flags_of[it->device];
    return CUDA_SUCCESS;
}

DRIVER cuCtxGetApiVersion(CUcontext of, unsigned *version) {
    ENTER(cuCtxGetApiVersion);
    if (of && !is_context(of)) return CUDA_ERROR_INVALID_CONTEXT;
    *version = 3020;
    return CUDA_SUCCESS;
}

static size_t limits[16];

DRIVER cuCtxGetLimit(size_t *value, CUlimit which) {
    ENTER(cuCtxGetLimit);
    CONTEXT(it);
    if ((unsigned)which >= 16) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = limits[which];
    return CUDA_SUCCESS;
}

DRIVER cuCtxSetLimit(CUlimit which, size_t value) {
    ENTER(cuCtxSetLimit);
    CONTEXT(it);
    if ((unsigned)which >= 16) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    limits[which] = value;
    return CUDA_SUCCESS;
}

DRIVER cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
    ENTER(cuCtxEnablePeerAccess);
    CONTEXT(it);
    if (!is_context(peer) || peer == it) return CUDA_ERROR_INVALID_CONTEXT;
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    if (getenv("STUB_NO_PEERS")) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (it->peers >> peer->device & 1) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    it->peers |= 1u << peer->device;
    return CUDA_SUCCESS;
}

DRIVER cuCtxDisablePeerAccess(CUcontext peer) {
    ENTER(cuCtxDisablePeerAccess);
    CONTEXT(it);
    if (!is_context(peer) || !(it->peers >> peer->device & 1)) return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    it->peers &= ~(1u << peer->device);
    return CUDA_SUCCESS;
}

/* Errors in words. The names are those a runtime meets; the words are the real driver's where a test may look for them. */
static const struct { CUresult status; const char *name, *words; } errors[] = {
#define E(name, words) {name, #name, words},
    E(CUDA_SUCCESS, "no error")
    E(CUDA_ERROR_INVALID_VALUE, "invalid argument")
    E(CUDA_ERROR_OUT_OF_MEMORY, "out of memory")
    E(CUDA_ERROR_NOT_INITIALIZED, "initialization error")
    E(CUDA_ERROR_DEINITIALIZED, "driver shutting down")
    E(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library")
    E(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable")
    E(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected")
    E(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal")
    E(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid")
    E(CUDA_ERROR_INVALID_CONTEXT, "invalid device context")
    E(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")
    E(CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered")
    E(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices")
    E(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")
    E(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled")
    E(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain.")
    E(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture")
    E(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped")
    E(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region")
    E(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle")
    E(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")
    E(CUDA_ERROR_NOT_FOUND, "named symbol not found")
    E(CUDA_ERROR_NOT_READY, "device not ready")
    E(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")
    E(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")
    E(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated")
    E(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed")
    E(CUDA_ERROR_ASSERT, "device-side assert triggered")
    E(CUDA_ERROR_HARDWARE_STACK_ERROR, "hardware stack error")
    E(CUDA_ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered")
    E(CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address")
    E(CUDA_ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space")
    E(CUDA_ERROR_INVALID_PC, "invalid program counter")
    E(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure")
    E(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "too many blocks in cooperative launch")
    E(CUDA_ERROR_NOT_PERMITTED, "operation not permitted")
    E(CUDA_ERROR_NOT_SUPPORTED, "operation not supported")
    E(CUDA_ERROR_SYSTEM_NOT_READY, "system not yet initialized")
    E(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination")
    E(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "forward compatibility was attempted on non supported HW")
    E(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing")
    E(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture")
    E(CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences")
    E(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began")
    E(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work")
    E(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream")
    E(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream")
    E(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream")
    E(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "attempt to terminate a thread-local capture sequence from another thread")
    E(CUDA_ERROR_INVALID_CLUSTER_SIZE, "cluster misconfiguration")
    E(CUDA_ERROR_UNKNOWN, "unknown error")
#undef E
};

#define LOOK_UP(field)                                                  \
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)         \
        if (errors[i].status == status) {                               \
            *text = errors[i].field;                                    \
            return CUDA_SUCCESS;                                        \
        }                                                               \
    *text = NULL;                                                       \
    return CUDA_ERROR_INVALID_VALUE

DRIVER cuGetErrorName(CUresult status, const char **text) {
    ENTER(cuGetErrorName);
    LOOK_UP(name);
}

DRIVER cuGetErrorString(CUresult status, const char **text) {
    ENTER(cuGetErrorString);
    LOOK_UP(words);
}

DRIVER cuProfilerStart(void) {
    ENTER(cuProfilerStart);
    CONTEXT(it);
    return CUDA_SUCCESS;
}

DRIVER cuProfilerStop(void) {
    ENTER(cuProfilerStop);
    CONTEXT(it);
    return CUDA_SUCCESS;
}
