/* A stub of the CUDA driver, libcuda.so.1, for machines without a GPU: answers what a runtime calls, checks it, counts it, injects faults.
 *
 * KERNELS DO NOT EXECUTE. A launch is checked against the kernel's signature in the cubin (parameters, grid, block, shared memory,
 * pointers into live allocations) and noted in a ring; device memory keeps what it held. Everything else is done for real: allocations
 * are accounted and hold bytes (fresh ones 0xFF: float NaN), copies and memsets move them, streams and events keep a clock, captures
 * become graphs whose copies run at each launch. Device addresses lie in a reserved range that the host cannot touch.
 *
 * Environment, read by cuInit: STUB_DEVICES (1), STUB_MEMORY (bytes per device, 80 GB), STUB_CAPABILITY (90), STUB_DRIVER_VERSION
 * (13000), STUB_INIT_STATUS (what cuInit answers), STUB_CHECK (1; 0 in benchmarks: launches are only counted), STUB_NO_PEERS.
 *
 * The pieces: functions.h lists the entry points; libcuda.c counts, injects and looks up; device.c, memory.c, host.c, copy.c,
 * stream.c, event.c, graph.c, module.c, launch.c, cubin.c, handles.c do what their names say. Python's side is control.py; build.py builds it. Not part of any wheel.
 */
#include "stub.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Atomic long stub_counts[FUNCTION_COUNT];
atomic_int stub_armed = 1;  /* cuInit has not been called */
pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct {
    const char *name;
    int since, flags;
    void *function;
} Entry;
#define X_ENTRY(name, since, flags) {#name, since, flags, (void *)name},
#define Y_ENTRY(function, name, since, flags) {name, since, flags, (void *)function},
static const Entry entries[] = {FUNCTIONS(X_ENTRY, Y_ENTRY)};

/* Faults: the nth call of a name (of any, for "*") from now on answers a status, `times` times in a row. */
typedef struct {
    char name[64];
    long left, times;
    CUresult status;
    bool sticky;
} Fault;
#define MOST_FAULTS 16
static Fault faults[MOST_FAULTS];
static int fault_count;
static CUresult lost;  /* every later call answers this, as after a fault on the device */
static bool started;
static bool forked;  /* from a process that had started the driver: nothing is answered here, as the real driver does */
static CUresult start_status = CUDA_ERROR_NOT_INITIALIZED;
static char complaints[1 << 16];

static void rearm(void) { atomic_store(&stub_armed, !started || fault_count || lost); }

CUresult stub_refusal(int id) {
    const Entry *entry = &entries[id];
    if (entry->flags == ALWAYS && id != ID_cuInit) return CUDA_SUCCESS;
    LOCKED;
    for (int i = 0; i < fault_count; i++) {
        Fault *fault = &faults[i];
        if (strcmp(fault->name, "*") && strcmp(fault->name, entry->name)) continue;
        if (--fault->left > 0) continue;
        CUresult status = fault->status;
        if (fault->sticky) lost = status;
        if (--fault->times <= 0) *fault = faults[--fault_count];
        rearm();
        return status;
    }
    if (!started && id != ID_cuInit) return start_status;
    return lost && entry->flags == ANY ? lost : CUDA_SUCCESS;
}

void complain(const char *format, ...) {
    size_t used = strlen(complaints);
    va_list words;
    va_start(words, format);
    if (used + 2 < sizeof complaints) {
        vsnprintf(complaints + used, sizeof complaints - used - 1, format, words);
        strcat(complaints, "\n");
    }
    va_end(words);
}

static void in_child(void) {
    pthread_mutex_init(&stub_lock, NULL);
    forked = true;
    started = false;
    start_status = CUDA_ERROR_NOT_INITIALIZED;
    rearm();
}

DRIVER cuInit(unsigned flags) {
    ENTER(cuInit);
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    if (forked) return CUDA_ERROR_NOT_INITIALIZED;
    if (started) return CUDA_SUCCESS;
    start_status = stub_start();
    started = start_status == CUDA_SUCCESS;
    if (started) pthread_atfork(NULL, NULL, in_child);
    rearm();
    return start_status;
}

static const Entry *find(const char *name, int version) {
    const Entry *best = NULL;
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (!strcmp(entries[i].name, name) && entries[i].since <= version && (!best || entries[i].since > best->since)) best = &entries[i];
    return best;
}

/* The form of cuGetProcAddress that names why a symbol is missing. */
#undef cuGetProcAddress
EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                            CUdriverProcAddressQueryResult *found) {
    (void)flags;
    atomic_fetch_add(&stub_counts[ID_cuGetProcAddress], 1);
    if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
    if (version > driver_version()) {  /* asked in the words of a newer driver than this one says it is */
        *function = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Entry *entry = find(name, version);
    *function = !strcmp(name, "cuGetProcAddress") && version >= 12000 ? (void *)cuGetProcAddress_v2 : entry ? entry->function : NULL;
    if (found) {
        bool old = !entry && find(name, 1 << 30);
        *found = entry ? CU_GET_PROC_ADDRESS_SUCCESS : old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult CUDAAPI cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) {
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}

/* What control.py calls. */
EXPORT int stub_function_count(void) { return FUNCTION_COUNT; }
EXPORT const char *stub_function_name(int id) { return entries[id].name; }
EXPORT long stub_calls(int id) { return stub_counts[id]; }
EXPORT void stub_reset_calls(void) {
    for (int i = 0; i < FUNCTION_COUNT; i++) stub_counts[i] = 0;
}

EXPORT int stub_fail_at(const char *name, long nth, int status, long times, int sticky) {
    LOCKED;
    if (strcmp(name, "*") && !find(name, 1 << 30)) return -1;
    if (fault_count == MOST_FAULTS) return -2;
    Fault *fault = &faults[fault_count++];
    snprintf(fault->name, sizeof fault->name, "%s", name);
    fault->left = nth;
    fault->times = times;
    fault->status = (CUresult)status;
    fault->sticky = sticky;
    rearm();
    return 0;
}

/* How many faults have not come yet. */
EXPORT int stub_faults_left(void) { return fault_count; }

EXPORT void stub_sticky(int status) {
    LOCKED;
    lost = (CUresult)status;
    rearm();
}

EXPORT void stub_no_faults(void) {
    LOCKED;
    fault_count = 0;
    lost = CUDA_SUCCESS;
    rearm();
}

EXPORT void stub_slow(long copy_microseconds, long launch_microseconds) {
    LOCKED;
    stub_slow_copy = copy_microseconds * 1000;
    stub_slow_launch = launch_microseconds * 1000;
}

/* Copies the complaints out and forgets them; how many bytes. */
EXPORT size_t stub_complaints(char *into, size_t room) {
    LOCKED;
    size_t length = strlen(complaints);
    snprintf(into, room, "%s", complaints);
    complaints[0] = 0;
    return length;
}
