/* Copies and fills: their ends are checked, they carry bytes, and slow ones carry them only when they are due. */
#include "stub.h"
#include <string.h>

static unsigned char *host_of(CUdeviceptr address) {
    Allocation *found = allocation_of(address, 1);
    return found ? found->bytes + (address - found->address) : (unsigned char *)address;
}

void copy_bytes(CUdeviceptr to, CUdeviceptr from, size_t size) { memmove(host_of(to), host_of(from), size); }

void set_bytes(CUdeviceptr to, uint32_t value, int width, size_t count) {
    unsigned char *at = host_of(to);
    if (width == 1)
        memset(at, (int)value, count);
    else
        for (size_t i = 0; i < count; i++) memcpy(at + i * (size_t)width, &value, (size_t)width);
}

enum End { OF_HOST, OF_DEVICE, OF_EITHER };

/* Is [address, size) what the call says it is? A device end must lie in one live allocation. */
static bool sound(const char *name, const char *end, CUdeviceptr address, size_t size, enum End wanted) {
    bool device = in_device_range(address);
    if (device && wanted != OF_HOST) {
        if (allocation_of(address, size)) return true;
        complain("%s: %s %#llx + %zu bytes is not inside one live allocation", name, end, (unsigned long long)address, size);
        return false;
    }
    if (device || wanted == OF_DEVICE) {
        if (!device && is_pinned(address, size)) return true;
        complain("%s: %s %#llx is %s address", name, end, (unsigned long long)address, device ? "a device" : "no device");
        return false;
    }
    if (!address) complain("%s: %s is NULL", name, end);
    return address != 0;
}

static bool reachable(const char *name, CUdeviceptr to, CUdeviceptr from, CUcontext of) {
    Allocation *a = allocation_of(to, 1), *b = allocation_of(from, 1);
    if ((!a && !b) || (a && a->device == of->device) || (b && b->device == of->device)) return true;
    complain("%s: the memory is device %d's, the context is device %d's", name, (a ? a : b)->device, of->device);
    return false;
}

/* stream NULL: the call that waits, on the legacy stream. */
static CUresult transfer(const char *name, CUdeviceptr to, enum End to_end, CUdeviceptr from, enum End from_end, size_t size, bool waits,
                         CUstream given) {
    CONTEXT(it);
    if (waits) {
        CUresult status = unsafe_call();
        if (status) return status;
    }
    if (!size) return CUDA_SUCCESS;
    bool slow;
    {
        LOCKED;
        CUstream stream = stream_of(given, it);
        if (!stream) return CUDA_ERROR_INVALID_HANDLE;
        if (!sound(name, "destination", to, size, to_end) || !sound(name, "source", from, size, from_end) || !reachable(name, to, from, it))
            return CUDA_ERROR_INVALID_VALUE;
        Node node = {.kind = NODE_COPY, .to = to, .from = from, .size = size};
        bool captured;
        CUresult status = queue_work(stream, it, stub_slow_copy, &node, &captured);
        if (status || captured) return status;
        /* Pageable memory: the source is staged before the call returns, a destination is filled before it returns. */
        bool into_pageable = !in_device_range(to) && !is_pinned(to, size);
        slow = stream->busy_until > now();
        if (slow && (in_device_range(from) || is_pinned(from, size))) {
            status = copy_later(stream, it, to, from, size);
            if (status) return status;
            waits = waits || into_pageable;
        } else {
            copy_bytes(to, from, size);
        }
        given = stream;
    }
    return waits && slow ? wait_for(it, given) : CUDA_SUCCESS;
}

#define H(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

DRIVER cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
    ENTER(cuMemcpyHtoD);
    return transfer("cuMemcpyHtoD", to, OF_DEVICE, H(from), OF_HOST, size, true, NULL);
}

DRIVER cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    ENTER(cuMemcpyHtoDAsync);
    return transfer("cuMemcpyHtoDAsync", to, OF_DEVICE, H(from), OF_HOST, size, false, stream);
}

DRIVER cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
    ENTER(cuMemcpyDtoH);
    return transfer("cuMemcpyDtoH", H(to), OF_HOST, from, OF_DEVICE, size, true, NULL);
}

DRIVER cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    ENTER(cuMemcpyDtoHAsync);
    return transfer("cuMemcpyDtoHAsync", H(to), OF_HOST, from, OF_DEVICE, size, false, stream);
}

DRIVER cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
    ENTER(cuMemcpyDtoD);
    return transfer("cuMemcpyDtoD", to, OF_DEVICE, from, OF_DEVICE, size, true, NULL);
}

DRIVER cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    ENTER(cuMemcpyDtoDAsync);
    return transfer("cuMemcpyDtoDAsync", to, OF_DEVICE, from, OF_DEVICE, size, false, stream);
}

DRIVER cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    ENTER(cuMemcpy);
    return transfer("cuMemcpy", to, OF_EITHER, from, OF_EITHER, size, true, NULL);
}

DRIVER cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    ENTER(cuMemcpyAsync);
    return transfer("cuMemcpyAsync", to, OF_EITHER, from, OF_EITHER, size, false, stream);
}

/* The contexts say whose memory each end is; held to it. */
static CUresult peer(const char *name, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size, bool waits,
                     CUstream stream) {
    if (!to_context || !from_context) return CUDA_ERROR_INVALID_CONTEXT;
    {
        LOCKED;
        Allocation *a = allocation_of(to, size), *b = allocation_of(from, size);
        if (size && (!a || !b || a->device != to_context->device || b->device != from_context->device)) {
            complain("%s: %#llx is not device %d's or %#llx not device %d's", name, (unsigned long long)to, to_context->device,
                     (unsigned long long)from, from_context->device);
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return transfer(name, to, OF_DEVICE, from, OF_DEVICE, size, waits, stream);
}

DRIVER cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size) {
    ENTER(cuMemcpyPeer);
    return peer("cuMemcpyPeer", to, to_context, from, from_context, size, true, NULL);
}

DRIVER cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size, CUstream stream) {
    ENTER(cuMemcpyPeerAsync);
    return peer("cuMemcpyPeerAsync", to, to_context, from, from_context, size, false, stream);
}

static CUresult fill(const char *name, CUdeviceptr to, uint32_t value, int width, size_t count, bool waits, CUstream given) {
    CONTEXT(it);
    if (waits) {
        CUresult status = unsafe_call();
        if (status) return status;
    }
    if (!count) return CUDA_SUCCESS;
    LOCKED;
    CUstream stream = stream_of(given, it);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    size_t size = count * (size_t)width;
    if (to % (size_t)width || !sound(name, "destination", to, size, OF_DEVICE) || !reachable(name, to, to, it)) return CUDA_ERROR_INVALID_VALUE;
    Node node = {.kind = NODE_SET, .to = to, .size = count, .value = value, .width = width};
    bool captured;
    CUresult status = queue_work(stream, it, 0, &node, &captured);
    if (status || captured) return status;
    copy_later(stream, it, 0, 0, 0);  /* in order: what the stream still has to copy comes first */
    set_bytes(to, value, width, count);
    return CUDA_SUCCESS;
}

DRIVER cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
    ENTER(cuMemsetD8);
    return fill("cuMemsetD8", to, value, 1, count, true, NULL);
}

DRIVER cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    ENTER(cuMemsetD8Async);
    return fill("cuMemsetD8Async", to, value, 1, count, false, stream);
}

DRIVER cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
    ENTER(cuMemsetD16);
    return fill("cuMemsetD16", to, value, 2, count, true, NULL);
}

DRIVER cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    ENTER(cuMemsetD16Async);
    return fill("cuMemsetD16Async", to, value, 2, count, false, stream);
}

DRIVER cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
    ENTER(cuMemsetD32);
    return fill("cuMemsetD32", to, value, 4, count, true, NULL);
}

DRIVER cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    ENTER(cuMemsetD32Async);
    return fill("cuMemsetD32Async", to, value, 4, count, false, stream);
}
