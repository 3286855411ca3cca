/* Pinned host memory, and what an address is. */
#include "stub.h"
#include <stdlib.h>

typedef struct {
    uintptr_t start;
    size_t size;
    bool registered;
    unsigned flags;
} Pinned;
static Pinned *pinned;
static size_t pinned_count, pinned_room;

static Pinned *pinned_of(uintptr_t address, size_t size) {
    for (size_t i = 0; i < pinned_count; i++)
        if (address - pinned[i].start < pinned[i].size && size <= pinned[i].size - (address - pinned[i].start)) return &pinned[i];
    return NULL;
}

bool is_pinned(CUdeviceptr address, size_t size) { return pinned_of((uintptr_t)address, size) != NULL; }

static void pin(void *start, size_t size, bool registered, unsigned flags) {
    if (pinned_count == pinned_room) {
        pinned_room = pinned_room ? 2 * pinned_room : 16;
        pinned = realloc(pinned, pinned_room * sizeof *pinned);
    }
    pinned[pinned_count++] = (Pinned){(uintptr_t)start, size, registered, flags};
}

static CUresult unpin(void *start, bool registered, CUresult otherwise) {
    CONTEXT(it);
    CUresult status = unsafe_call();
    if (!status) status = wait_for(it, NULL);
    if (status) return status;
    LOCKED;
    Pinned *found = pinned_of((uintptr_t)start, 1);
    if (!found || found->start != (uintptr_t)start || found->registered != registered) return otherwise;
    *found = pinned[--pinned_count];
    if (!registered) free(start);
    return CUDA_SUCCESS;
}

static CUresult host_alloc(void **found, size_t size, unsigned flags) {
    CONTEXT(it);
    CUresult status = unsafe_call();
    if (status) return status;
    if (!size || !found) return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    *found = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (!*found) return CUDA_ERROR_OUT_OF_MEMORY;
    pin(*found, size, false, flags);
    return CUDA_SUCCESS;
}

DRIVER cuMemAllocHost(void **found, size_t size) {
    ENTER(cuMemAllocHost);
    return host_alloc(found, size, 0);
}

DRIVER cuMemHostAlloc(void **found, size_t size, unsigned flags) {
    ENTER(cuMemHostAlloc);
    return host_alloc(found, size, flags);
}

DRIVER cuMemFreeHost(void *start) {
    ENTER(cuMemFreeHost);
    return unpin(start, false, CUDA_ERROR_INVALID_VALUE);
}

DRIVER cuMemHostRegister(void *start, size_t size, unsigned flags) {
    ENTER(cuMemHostRegister);
    CONTEXT(it);
    LOCKED;
    if (!start || !size) return CUDA_ERROR_INVALID_VALUE;
    if (pinned_of((uintptr_t)start, 1)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    pin(start, size, true, flags);
    return CUDA_SUCCESS;
}

DRIVER cuMemHostUnregister(void *start) {
    ENTER(cuMemHostUnregister);
    return unpin(start, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

DRIVER cuMemHostGetDevicePointer(CUdeviceptr *found, void *start, unsigned flags) {
    ENTER(cuMemHostGetDevicePointer);
    CONTEXT(it);
    LOCKED;
    if (flags || !is_pinned((CUdeviceptr)start, 1)) return CUDA_ERROR_INVALID_VALUE;
    *found = (CUdeviceptr)start;
    return CUDA_SUCCESS;
}

DRIVER cuMemHostGetFlags(unsigned *flags, void *start) {
    ENTER(cuMemHostGetFlags);
    LOCKED;
    Pinned *found = pinned_of((uintptr_t)start, 1);
    if (!found) return CUDA_ERROR_INVALID_VALUE;
    *flags = found->flags;
    return CUDA_SUCCESS;
}

/* What is an address? */
DRIVER cuMemGetAddressRange(CUdeviceptr *start, size_t *size, CUdeviceptr address) {
    ENTER(cuMemGetAddressRange);
    LOCKED;
    Allocation *found = allocation_of(address, 1);
    if (!found) return CUDA_ERROR_NOT_FOUND;
    if (start) *start = found->address;
    if (size) *size = found->size;
    return CUDA_SUCCESS;
}

static CUresult pointer_attribute(void *value, CUpointer_attribute which, CUdeviceptr address) {
    Allocation *found = allocation_of(address, 1);
    Pinned *host = found ? NULL : pinned_of((uintptr_t)address, 1);
    if (!found && !host) return CUDA_ERROR_INVALID_VALUE;
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = context(); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)value = found ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = address; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (found) return CUDA_ERROR_INVALID_VALUE;
        *(void **)value = (void *)address;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)value = 0; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = found ? found->device : context() ? context()->device : 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)value = found ? found->address : host->start; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = found ? found->size : host->size; break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)value = found ? found->pool : NULL; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned char *)value = 1; break;
    default:
        complain("cuPointerGetAttribute: the stub has no value for attribute %d; add it to tests/stub/memory.c", (int)which);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

DRIVER cuPointerGetAttribute(void *value, CUpointer_attribute which, CUdeviceptr address) {
    ENTER(cuPointerGetAttribute);
    LOCKED;
    return pointer_attribute(value, which, address);
}

DRIVER cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **values, CUdeviceptr address) {
    ENTER(cuPointerGetAttributes);
    LOCKED;
    if (!allocation_of(address, 1) && !pinned_of((uintptr_t)address, 1)) {  /* an unknown pointer is answered with zeros */
        for (unsigned i = 0; i < count; i++) *(unsigned char *)values[i] = 0;
        return CUDA_SUCCESS;
    }
    for (unsigned i = 0; i < count; i++) {
        CUresult status = pointer_attribute(values[i], which[i], address);
        if (status) return status;
    }
    return CUDA_SUCCESS;
}

EXPORT int stub_pinned(uint64_t *bytes) {
    LOCKED;
    *bytes = 0;
    for (size_t i = 0; i < pinned_count; i++) *bytes += pinned[i].size;
    return (int)pinned_count;
}
