/* Shared by the files of the stub CUDA driver; libcuda.c opens with what the stub is. */
#ifndef STUB_H
#define STUB_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define MOST_DEVICES 8
#define STATIC_SHARED (48u * 1024u)  /* bytes of shared memory that a kernel may have without opting in */
#define OPTIN_SHARED (227u * 1024u)  /* and with; both as an H100 has them */
#define SHARED_PER_SM (228u * 1024u)
#define REGISTERS_PER_SM 65536u
#define THREADS_PER_SM 2048u
#define BLOCKS_PER_SM 32u
#define PROCESSORS 132
#define MOST_PARAMETERS 128
#define RING_LAUNCHES 4096
#define RING_BYTES 1024  /* parameter bytes kept of one launch */
#define CAPTURE_STREAMS 16

/* functions.c: the list of entry points, how often each was called, and what it is told to answer. */
enum { ANY = 0, HOST = 1, ALWAYS = 2 };  /* HOST: answers when the context is lost; ALWAYS: even before cuInit */
#include "functions.h"

extern _Atomic long stub_counts[FUNCTION_COUNT];
extern atomic_int stub_armed;  /* nonzero: calls look for faults first */
CUresult stub_refusal(int id);

static inline CUresult enter(int id) {
    atomic_fetch_add_explicit(&stub_counts[id], 1, memory_order_relaxed);
    return __builtin_expect(atomic_load_explicit(&stub_armed, memory_order_relaxed), 0) ? stub_refusal(id) : CUDA_SUCCESS;
}

/* Opens every entry point: count the call, and answer a fault that was asked for. */
#define ENTER(name)                          \
    do {                                     \
        CUresult refusal_ = enter(ID_##name); \
        if (refusal_) return refusal_;       \
    } while (0)
#define EXPORT __attribute__((visibility("default")))
#define DRIVER EXPORT CUresult CUDAAPI

/* Something the real driver would have crashed on, or let through to crash a kernel; tests read and fail on it. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One lock around all state; cuda-python calls without the GIL. */
extern pthread_mutex_t stub_lock;
static inline int lock_all(void) { return pthread_mutex_lock(&stub_lock); }
static inline void unlock_all(int *held) { (void)held; pthread_mutex_unlock(&stub_lock); }
#define LOCKED __attribute__((cleanup(unlock_all), unused)) int held_ = lock_all()

/* device.c */
struct CUctx_st {
    uint32_t kind;
    int device;
    int references;
    uint32_t peers;  /* bit d: access to device d's memory is enabled */
};
extern bool stub_checking;
extern int stub_devices, stub_capability;
extern size_t stub_memory;
extern _Thread_local CUcontext stub_current;
extern _Thread_local int stub_thread;  /* never 0 after thread_number() */
int thread_number(void);
int driver_version(void);
CUresult stub_start(void);
/* The current context, or NULL: answer CUDA_ERROR_INVALID_CONTEXT. */
CUcontext context(void);
#define CONTEXT(name)                                   \
    CUcontext name = context();                         \
    if (!name) return CUDA_ERROR_INVALID_CONTEXT

/* handles.c: opaque objects, so that a wrong or destroyed handle is an answer and not a crash. */
enum Kind { DEAD, STREAM = 0x57, EVENT, MODULE, FUNCTION, GRAPH, EXEC, POOL, LIBRARY };
void *handle_new(enum Kind kind);
void handle_end(void *handle);
bool handle_is(const void *handle, enum Kind kind);
void *handle_next(const void *after, enum Kind kind);  /* walk all of a kind; NULL starts and ends */
#define HANDLE_BYTES 512

/* memory.c */
typedef struct {
    CUdeviceptr address;
    size_t size;
    unsigned char *bytes;  /* where the contents lie on the host; NULL once freed */
    int device;
    CUmemoryPool pool;  /* NULL: of cuMemAlloc */
} Allocation;
Allocation *allocation_of(CUdeviceptr address, size_t size);  /* the live one that holds all of it, or NULL */
bool in_device_range(CUdeviceptr address);
bool is_pinned(CUdeviceptr address, size_t size);
void memory_reset(int device);
void memory_synchronized(int device);  /* pools give back what is over their threshold */
void copy_bytes(CUdeviceptr to, CUdeviceptr from, size_t size);
void set_bytes(CUdeviceptr to, uint32_t value, int width, size_t count);
size_t bytes_in_use(int device);

/* stream.c */
typedef struct {
    enum NodeKind { NODE_LAUNCH, NODE_COPY, NODE_SET, NODE_OTHER } kind;
    CUdeviceptr to, from;
    size_t size;
    uint32_t value;
    int width;
    struct Launch *launch;
} Node;
struct CUgraph_st {
    uint32_t kind;
    int count, room;
    Node *nodes;
};
struct CUgraphExec_st {
    uint32_t kind;
    CUcontext context;
    int count;
    Node *nodes;
};
typedef struct Capture {
    CUgraph graph;
    CUstreamCaptureMode mode;
    CUstream origin;
    CUstream streams[CAPTURE_STREAMS];
    int stream_count, thread;
    bool invalid;
    uint64_t id;
} Capture;
typedef struct { int done[CAPTURE_STREAMS]; } Clock;  /* work of each captured stream that lies before a point */
struct CUstream_st {
    uint32_t kind;
    CUcontext context;
    unsigned flags;
    int priority, slot;  /* slot: place in the capture's list */
    int64_t busy_until;  /* nanoseconds; later than now: work is pending */
    Capture *capture;
    Clock clock;
};
struct CUevent_st {
    uint32_t kind;
    CUcontext context;
    unsigned flags;
    bool recorded;
    int64_t stamp;  /* when the work before it is done */
    Capture *capture;
    uint64_t capture_id;
    Clock clock;
};
extern atomic_int stub_captures;  /* captures under way */
int64_t now(void);
CUstream stream_of(CUstream given, CUcontext of);  /* 0, 1, 2 are the default streams; NULL: no such stream */
/* Put work of some nanoseconds on a stream, or a node into its capture. *captured tells which. Call locked. */
CUresult queue_work(CUstream stream, CUcontext of, int64_t takes, const Node *node, bool *captured);
CUresult unsafe_call(void);  /* a call that a capture forbids: refuses and spoils the capture */
CUresult wait_for(CUcontext of, CUstream stream);  /* stream NULL: all of the context. Call unlocked. */
void settle(void);  /* carry out the slow copies that are due. Call locked. */
CUresult copy_later(CUstream stream, CUcontext of, CUdeviceptr to, CUdeviceptr from, size_t size);
extern int64_t stub_slow_copy, stub_slow_launch;  /* nanoseconds each takes */
void streams_reset(CUcontext of);
void sleep_until(int64_t then);
bool is_default(CUstream stream);
void spoil(Capture *capture);  /* the capture has been broken by a call that it forbids */
CUresult capture_join(CUstream stream, Capture *capture);
bool capture_is_live(const Capture *capture, uint64_t id);
void clock_merge(Clock *into, const Clock *from);

/* Opens a call on a stream: `name` becomes the stream itself. */
#define STREAM_OF(name, given)                     \
    CONTEXT(current_);                             \
    LOCKED;                                        \
    CUstream name = stream_of(given, current_);    \
    if (!name) return CUDA_ERROR_INVALID_HANDLE

/* launch.c */
typedef struct Launch {
    uint64_t number, stream;
    const struct Kernel *kernel;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared, cooperative, programmatic, device, from_graph, bytes;
    unsigned char parameters[RING_BYTES];
} Launch;
void ring_put(const Launch *launch);

/* cubin.c */
typedef struct {
    uint16_t offset, size;
    bool pointer;
} Parameter;
typedef struct Kernel {
    char name[256];
    int count;
    Parameter parameters[MOST_PARAMETERS];
    uint32_t parameter_bytes, registers, static_shared, most_threads, required[3];
} Kernel;
/* The kernels of a cubin, for a device of this capability; NULL and a status where it is none. */
Kernel *read_cubin(const unsigned char *image, int *count, CUresult *status);

struct CUfunc_st {
    uint32_t kind;
    CUcontext context;
    CUmodule module;
    Kernel *kernel;
    int dynamic_shared;  /* opted in, bytes */
    int nonportable;
};

/* module.c */
void modules_reset(CUcontext of);
int resident(const Kernel *kernel, uint32_t threads, size_t shared);  /* blocks on one processor */

#endif
