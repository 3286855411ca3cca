/* Device memory and pools. Contents are host memory; device addresses are a reserved range beside it. */
#include "stub.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RANGE_BITS 42          /* address space of one device: addresses are not used twice, so a stale one is always noticed */
#define ALIGNMENT 512          /* as the real driver aligns */
#define POISONED (64ul << 20)  /* bytes of a fresh allocation that are poisoned; touching 80 GB would take for ever */
#define POOL_MARK 8

struct CUmemPoolHandle_st {
    uint32_t kind;
    int device;
    size_t used, reserved, used_high, reserved_high, threshold;
    int settings[POOL_MARK];
};

static CUdeviceptr base;
static struct Shelf {
    Allocation **all;  /* sorted by address, dead ones included until half of them are dead */
    size_t count, room, dead;
    CUdeviceptr next;
    size_t used;  /* bytes taken from the device: cuMemAlloc's and what the pools reserve */
    CUmemoryPool first_pool, pool;
} shelves[MOST_DEVICES];

static bool reserve(void) {
    if (base) return true;
    void *at = mmap((void *)0x100000000000, (size_t)MOST_DEVICES << RANGE_BITS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        complain("the stub could not reserve %d TB of address space for its devices", MOST_DEVICES << (RANGE_BITS - 40));
        return false;
    }
    base = (CUdeviceptr)at;
    return true;
}

bool in_device_range(CUdeviceptr address) { return base && address - base < (CUdeviceptr)MOST_DEVICES << RANGE_BITS; }
size_t bytes_in_use(int device) { return shelves[device].used; }

Allocation *allocation_of(CUdeviceptr address, size_t size) {
    if (!in_device_range(address)) return NULL;
    const struct Shelf *shelf = &shelves[(address - base) >> RANGE_BITS];
    size_t low = 0, high = shelf->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (shelf->all[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low) return NULL;
    Allocation *found = shelf->all[low - 1];
    size_t offset = address - found->address;
    return found->bytes && offset < found->size + !size && size <= found->size - offset ? found : NULL;
}

static void sweep(struct Shelf *shelf) {
    size_t kept = 0;
    for (size_t i = 0; i < shelf->count; i++) {
        if (shelf->all[i]->bytes)
            shelf->all[kept++] = shelf->all[i];
        else
            free(shelf->all[i]);
    }
    shelf->count = kept;
    shelf->dead = 0;
}

static unsigned char *take(size_t size) {
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return bytes == MAP_FAILED ? NULL : bytes;
}

static CUresult allocate(CUdeviceptr *address, size_t size, int device, CUmemoryPool pool) {
    if (!address || !size) return CUDA_ERROR_INVALID_VALUE;
    struct Shelf *shelf = &shelves[device];
    size_t more = !pool ? size : pool->used + size > pool->reserved ? pool->used + size - pool->reserved : 0;
    if (size > stub_memory || more > stub_memory - shelf->used) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!reserve()) return CUDA_ERROR_OPERATING_SYSTEM;
    if (!shelf->next) shelf->next = base + ((CUdeviceptr)device << RANGE_BITS) + (1ul << 21);
    if (shelf->dead > 1024 && shelf->dead > shelf->count / 2) sweep(shelf);
    if (shelf->count == shelf->room) {
        shelf->room = shelf->room ? 2 * shelf->room : 64;
        shelf->all = realloc(shelf->all, shelf->room * sizeof *shelf->all);
    }
    Allocation *made = calloc(1, sizeof *made);
    unsigned char *bytes = size < 65536 ? malloc(size) : take(size);
    if (!made || !bytes || !shelf->all) {
        complain("the machine that runs the stub has no %zu bytes left", size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memset(bytes, 0xff, size < POISONED ? size : POISONED);
    *made = (Allocation){shelf->next, size, bytes, device, pool};
    shelf->next += (size + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;  /* a gap between two, so that an overrun is noticed */
    shelf->all[shelf->count++] = made;
    shelf->used += more;
    if (pool) {
        pool->used += size;
        pool->reserved += more;
        if (pool->used > pool->used_high) pool->used_high = pool->used;
        if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
    }
    *address = made->address;
    return CUDA_SUCCESS;
}

static void release(Allocation *it) {
    struct Shelf *shelf = &shelves[it->device];
    if (it->size < 65536)
        free(it->bytes);
    else
        munmap(it->bytes, it->size);
    it->bytes = NULL;
    shelf->dead++;
    if (it->pool)
        it->pool->used -= it->size;
    else
        shelf->used -= it->size;
}

static void trim(CUmemoryPool pool, size_t keep) {
    size_t target = pool->used > keep ? pool->used : keep;
    if (target >= pool->reserved) return;
    shelves[pool->device].used -= pool->reserved - target;
    pool->reserved = target;
}

void memory_synchronized(int device) {
    for (CUmemoryPool pool = NULL; (pool = handle_next(pool, POOL));)
        if (pool->device == device) trim(pool, pool->threshold);
}

void memory_reset(int device) {
    struct Shelf *shelf = &shelves[device];
    for (size_t i = 0; i < shelf->count; i++)
        if (shelf->all[i]->bytes) release(shelf->all[i]);
    for (CUmemoryPool pool = NULL; (pool = handle_next(pool, POOL));)
        if (pool->device == device) trim(pool, 0);
}

DRIVER cuMemGetInfo(size_t *left, size_t *total) {
    ENTER(cuMemGetInfo);
    CONTEXT(it);
    LOCKED;
    *left = stub_memory - shelves[it->device].used;
    *total = stub_memory;
    return CUDA_SUCCESS;
}

DRIVER cuMemAlloc(CUdeviceptr *address, size_t size) {
    ENTER(cuMemAlloc);
    CONTEXT(it);
    CUresult status = unsafe_call();
    if (status) return status;
    LOCKED;
    return allocate(address, size, it->device, NULL);
}

DRIVER cuMemFree(CUdeviceptr address) {
    ENTER(cuMemFree);
    CONTEXT(it);
    if (!address) return CUDA_SUCCESS;
    CUresult status = unsafe_call();
    if (!status) status = wait_for(it, NULL);
    if (status) return status;
    LOCKED;
    Allocation *found = allocation_of(address, 0);
    if (!found || found->address != address) {
        complain("cuMemFree: %#llx is no live allocation", (unsigned long long)address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    release(found);
    return CUDA_SUCCESS;
}

/* Pools */
static CUmemoryPool default_pool(int device) {
    struct Shelf *shelf = &shelves[device];
    if (!shelf->first_pool) {
        shelf->first_pool = handle_new(POOL);
        shelf->first_pool->device = device;
        shelf->pool = shelf->first_pool;
    }
    return shelf->first_pool;
}

static CUresult allocate_ordered(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream given) {
    CONTEXT(it);
    LOCKED;
    CUstream stream = stream_of(given, it);
    if (!stream || (pool && !handle_is(pool, POOL))) return CUDA_ERROR_INVALID_HANDLE;
    default_pool(it->device);
    if (!pool) pool = shelves[it->device].pool;
    bool captured;
    CUresult status = queue_work(stream, it, 0, &(Node){.kind = NODE_OTHER}, &captured);
    if (status) return status;
    return allocate(address, size, pool->device, pool);  /* captured, too, it is there at once, and stays until it is freed */
}

DRIVER cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream) {
    ENTER(cuMemAllocAsync);
    return allocate_ordered(address, size, NULL, stream);
}

DRIVER cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream) {
    ENTER(cuMemAllocFromPoolAsync);
    return pool ? allocate_ordered(address, size, pool, stream) : CUDA_ERROR_INVALID_VALUE;
}

DRIVER cuMemFreeAsync(CUdeviceptr address, CUstream given) {
    ENTER(cuMemFreeAsync);
    CONTEXT(it);
    LOCKED;
    CUstream stream = stream_of(given, it);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    Allocation *found = allocation_of(address, 0);
    if (!found || found->address != address) {
        complain("cuMemFreeAsync: %#llx is no live allocation", (unsigned long long)address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool captured;
    CUresult status = queue_work(stream, it, 0, &(Node){.kind = NODE_OTHER}, &captured);
    if (status || captured) return status;
    copy_later(stream, it, 0, 0, 0);  /* what the stream still has to copy comes first */
    release(found);
    return CUDA_SUCCESS;
}

static CUresult get_pool(CUmemoryPool *pool, CUdevice device, bool current) {
    if (device < 0 || device >= stub_devices) return CUDA_ERROR_INVALID_DEVICE;
    LOCKED;
    *pool = default_pool(device);
    if (current) *pool = shelves[device].pool;
    return CUDA_SUCCESS;
}

DRIVER cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    ENTER(cuDeviceGetDefaultMemPool);
    return get_pool(pool, device, false);
}

DRIVER cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    ENTER(cuDeviceGetMemPool);
    return get_pool(pool, device, true);
}

DRIVER cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    ENTER(cuDeviceSetMemPool);
    if (device < 0 || device >= stub_devices) return CUDA_ERROR_INVALID_DEVICE;
    LOCKED;
    if (!handle_is(pool, POOL)) return CUDA_ERROR_INVALID_VALUE;
    default_pool(device);
    shelves[device].pool = pool;
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *wanted) {
    ENTER(cuMemPoolCreate);
    if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE || wanted->location.id < 0 || wanted->location.id >= stub_devices)
        return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    *pool = handle_new(POOL);
    (*pool)->device = wanted->location.id;
    return CUDA_SUCCESS;
}

/* Allocations of a destroyed pool live on; the stub keeps the pool for their sake once it is unusable. */
DRIVER cuMemPoolDestroy(CUmemoryPool pool) {
    ENTER(cuMemPoolDestroy);
    LOCKED;
    if (!handle_is(pool, POOL) || pool == shelves[pool->device].first_pool) return CUDA_ERROR_INVALID_VALUE;
    if (pool->used) complain("cuMemPoolDestroy: %zu bytes of the pool are still allocated", pool->used);
    if (shelves[pool->device].pool == pool) shelves[pool->device].pool = shelves[pool->device].first_pool;
    trim(pool, 0);
    handle_end(pool);
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    ENTER(cuMemPoolTrimTo);
    LOCKED;
    if (!handle_is(pool, POOL)) return CUDA_ERROR_INVALID_VALUE;
    trim(pool, keep);
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    ENTER(cuMemPoolSetAccess);
    LOCKED;
    return handle_is(pool, POOL) && (map || !count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult pool_attribute(CUmemoryPool pool, CUmemPool_attribute which, void *value, bool set) {
    LOCKED;
    if (!handle_is(pool, POOL) || !value) return CUDA_ERROR_INVALID_VALUE;
    size_t *field;
    switch (which) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: field = &pool->threshold; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: field = &pool->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: field = &pool->used_high; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: field = &pool->reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: field = &pool->reserved_high; break;
    default:
        if ((unsigned)which >= POOL_MARK) return CUDA_ERROR_INVALID_VALUE;
        if (set)
            pool->settings[which] = *(int *)value;
        else
            *(int *)value = pool->settings[which];
        return CUDA_SUCCESS;
    }
    if (!set)
        *(cuuint64_t *)value = *field;
    else if (field == &pool->threshold)
        *field = *(cuuint64_t *)value;
    else if ((field == &pool->used_high || field == &pool->reserved_high) && !*(cuuint64_t *)value)
        *field = field == &pool->used_high ? pool->used : pool->reserved;  /* a peak may be reset, nothing else */
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

DRIVER cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value) {
    ENTER(cuMemPoolSetAttribute);
    return pool_attribute(pool, which, value, true);
}

DRIVER cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value) {
    ENTER(cuMemPoolGetAttribute);
    return pool_attribute(pool, which, value, false);
}

EXPORT int stub_live_allocations(int device, uint64_t *addresses, uint64_t *sizes, int room) {
    LOCKED;
    int live = 0;
    for (size_t i = 0; i < shelves[device].count; i++) {
        const Allocation *it = shelves[device].all[i];
        if (!it->bytes) continue;
        if (live < room) {
            addresses[live] = it->address;
            sizes[live] = it->size;
        }
        live++;
    }
    return live;
}

EXPORT uint64_t stub_bytes_in_use(int device) {
    LOCKED;
    return bytes_in_use(device);
}
