/* Streams and capture. A stream is a clock: work on it is done at `busy_until`, which lies ahead only when copies or launches are slow. */
#include "stub.h"
#include <string.h>
#include <stdlib.h>
#include <time.h>

atomic_int stub_captures;
int64_t stub_slow_copy, stub_slow_launch;
static CUstream default_streams[MOST_DEVICES];
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static Capture *captures[CAPTURE_STREAMS];
static uint64_t capture_ids;

typedef struct {
    int64_t due;
    CUstream stream;
    CUdeviceptr to, from;
    size_t size;
} Pending;
static Pending *pending;
static size_t pending_count, pending_room;

int64_t now(void) {
    struct timespec it;
    clock_gettime(CLOCK_MONOTONIC, &it);
    return it.tv_sec * 1000000000ll + it.tv_nsec;
}

bool is_default(CUstream stream) { return stream == default_streams[stream->context->device]; }

CUstream stream_of(CUstream given, CUcontext of) {
    if ((uintptr_t)given <= 2) {
        CUstream *found = &default_streams[of->device];
        if (!*found) {
            *found = handle_new(STREAM);
            (*found)->context = of;
        }
        return *found;
    }
    if (!handle_is(given, STREAM)) {
        complain("%p is no stream", (void *)given);
        return NULL;
    }
    if (given->context != of && !is_default(given)) {
        complain("the stream is device %d's, the context is device %d's", given->context->device, of->device);
        return NULL;
    }
    return given;
}

/* Slow copies, carried out when they are due; of one stream at once where its order asks for it. */
static void carry_out(CUstream stream, int64_t until) {
    size_t kept = 0;
    for (size_t i = 0; i < pending_count; i++) {
        Pending it = pending[i];
        if (it.due > until && it.stream != stream)
            pending[kept++] = it;
        else if ((in_device_range(it.to) && !allocation_of(it.to, it.size)) || (in_device_range(it.from) && !allocation_of(it.from, it.size)))
            complain("memory was freed before the copy of %zu bytes that used it was done", it.size);
        else
            copy_bytes(it.to, it.from, it.size);
    }
    pending_count = kept;
}

void settle(void) {
    if (pending_count) carry_out(NULL, now());
}

CUresult copy_later(CUstream stream, CUcontext of, CUdeviceptr to, CUdeviceptr from, size_t size) {
    (void)of;
    if (!size) {
        if (pending_count) carry_out(stream, now());
        return CUDA_SUCCESS;
    }
    if (pending_count == pending_room) {
        pending_room = pending_room ? 2 * pending_room : 16;
        pending = realloc(pending, pending_room * sizeof *pending);
        if (!pending) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pending[pending_count++] = (Pending){stream->busy_until, stream, to, from, size};
    return CUDA_SUCCESS;
}

void spoil(Capture *capture) { capture->invalid = true; }

CUresult unsafe_call(void) {
    if (!atomic_load(&stub_captures) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    LOCKED;
    int thread = thread_number();
    CUresult status = CUDA_SUCCESS;
    for (int i = 0; i < CAPTURE_STREAMS; i++) {
        Capture *it = captures[i];
        if (!it) continue;
        bool mine = it->thread == thread && it->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool any = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && it->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!mine && !any) continue;
        spoil(it);
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return status;
}

/* A wait for a whole context, whatever the modes: it covers the captured streams, which cannot be waited for. */
static CUresult whole_context(CUcontext of) {
    if (!atomic_load(&stub_captures)) return CUDA_SUCCESS;
    LOCKED;
    CUresult status = CUDA_SUCCESS;
    for (int i = 0; i < CAPTURE_STREAMS; i++)
        for (int j = 0; captures[i] && j < captures[i]->stream_count; j++) {
            if (!handle_is(captures[i]->streams[j], STREAM) || captures[i]->streams[j]->context != of) continue;
            spoil(captures[i]);
            status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return status;
}

static CUresult add_node(CUstream stream, const Node *node) {
    CUgraph graph = stream->capture->graph;
    if (graph->count == graph->room) {
        graph->room = graph->room ? 2 * graph->room : 64;
        graph->nodes = realloc(graph->nodes, (size_t)graph->room * sizeof *graph->nodes);
        if (!graph->nodes) return CUDA_ERROR_OUT_OF_MEMORY;
    }
    Node *made = &graph->nodes[graph->count++];
    *made = *node;
    if (node->launch) {
        made->launch = malloc(sizeof *made->launch);
        if (!made->launch) return CUDA_ERROR_OUT_OF_MEMORY;
        *made->launch = *node->launch;
    }
    stream->clock.done[stream->slot]++;
    return CUDA_SUCCESS;
}

CUresult queue_work(CUstream stream, CUcontext of, int64_t takes, const Node *node, bool *captured) {
    *captured = stream->capture != NULL;
    if (stream->capture) {
        if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        return add_node(stream, node);
    }
    bool legacy = is_default(stream);
    int64_t start = 0;
    if (stub_captures && legacy)  /* the default stream waits for every blocking one, which a capture cannot do */
        for (CUstream other = NULL; (other = handle_next(other, STREAM));)
            if (other->context == of && other->capture && !(other->flags & CU_STREAM_NON_BLOCKING)) {
                spoil(other->capture);
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            }
    if (!takes && !stub_slow_copy && !stub_slow_launch && !stream->busy_until && !pending_count) return CUDA_SUCCESS;
    start = now();
    if (legacy) {
        for (CUstream other = NULL; (other = handle_next(other, STREAM));)
            if (other->context == of && !(other->flags & CU_STREAM_NON_BLOCKING) && other->busy_until > start) start = other->busy_until;
    } else if (!(stream->flags & CU_STREAM_NON_BLOCKING)) {
        int64_t first = default_streams[of->device] ? default_streams[of->device]->busy_until : 0;
        if (first > start) start = first;
    }
    if (stream->busy_until < start) stream->busy_until = start;
    stream->busy_until += takes;
    return CUDA_SUCCESS;
}

void sleep_until(int64_t then) {
    for (int64_t left; (left = then - now()) > 0;) {
        struct timespec nap = {left / 1000000000ll, left % 1000000000ll};
        nanosleep(&nap, NULL);
    }
}

/* When is the work done? All of the context's for stream NULL or the default stream. */
static int64_t done_at(CUcontext of, CUstream stream) {
    if (stream && !is_default(stream)) return stream->busy_until;
    int64_t latest = 0;
    for (CUstream it = NULL; (it = handle_next(it, STREAM));)
        if (it->context == of && (!stream || !(it->flags & CU_STREAM_NON_BLOCKING)) && it->busy_until > latest) latest = it->busy_until;
    return latest;
}

CUresult wait_for(CUcontext of, CUstream stream) {
    int64_t then;
    {
        LOCKED;
        then = done_at(of, stream);
    }
    sleep_until(then);
    LOCKED;
    settle();
    memory_synchronized(of->device);
    return CUDA_SUCCESS;
}

void streams_reset(CUcontext of) {
    for (CUstream it = NULL; (it = handle_next(it, STREAM));)
        if (it->context == of && it != default_streams[of->device]) handle_end(it);
    for (CUevent it = NULL; (it = handle_next(it, EVENT));)
        if (it->context == of) handle_end(it);
}

DRIVER cuCtxSynchronize(void) {
    ENTER(cuCtxSynchronize);
    CONTEXT(it);
    CUresult status = whole_context(it);
    return status ? status : wait_for(it, NULL);
}

DRIVER cuCtxSynchronize_v2(CUcontext of) {
    ENTER(cuCtxSynchronize_v2);
    CUcontext it = of ? of : context();
    if (!it) return CUDA_ERROR_INVALID_CONTEXT;
    CUresult status = whole_context(it);
    return status ? status : wait_for(it, NULL);
}

DRIVER cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER(cuCtxGetStreamPriorityRange);
    CONTEXT(it);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_SUCCESS;
}

static CUresult create(CUstream *made, unsigned flags, int priority) {
    CONTEXT(it);
    if (!made || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    LOCKED;
    *made = handle_new(STREAM);
    (*made)->context = it;
    (*made)->flags = flags;
    (*made)->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    return CUDA_SUCCESS;
}

DRIVER cuStreamCreate(CUstream *made, unsigned flags) {
    ENTER(cuStreamCreate);
    return create(made, flags, 0);
}

DRIVER cuStreamCreateWithPriority(CUstream *made, unsigned flags, int priority) {
    ENTER(cuStreamCreateWithPriority);
    return create(made, flags, priority);
}

DRIVER cuStreamDestroy(CUstream given) {
    ENTER(cuStreamDestroy);
    LOCKED;
    if (!handle_is(given, STREAM)) return CUDA_ERROR_INVALID_HANDLE;
    if (given->capture) spoil(given->capture);
    carry_out(given, now());
    handle_end(given);
    return CUDA_SUCCESS;
}

DRIVER cuStreamSynchronize(CUstream given) {
    ENTER(cuStreamSynchronize);
    CONTEXT(it);
    CUstream stream;
    {
        LOCKED;
        stream = stream_of(given, it);
        if (!stream) return CUDA_ERROR_INVALID_HANDLE;
        if (stream->capture) {
            spoil(stream->capture);
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return wait_for(it, stream);
}

DRIVER cuStreamQuery(CUstream given) {
    ENTER(cuStreamQuery);
    STREAM_OF(stream, given);
    if (stream->capture) {
        spoil(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    settle();
    return done_at(current_, stream) > now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

DRIVER cuStreamGetPriority(CUstream given, int *priority) {
    ENTER(cuStreamGetPriority);
    STREAM_OF(stream, given);
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

DRIVER cuStreamGetFlags(CUstream given, unsigned *flags) {
    ENTER(cuStreamGetFlags);
    STREAM_OF(stream, given);
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

DRIVER cuStreamGetCtx(CUstream given, CUcontext *found) {
    ENTER(cuStreamGetCtx);
    STREAM_OF(stream, given);
    *found = stream->context;
    return CUDA_SUCCESS;
}

DRIVER cuStreamGetId(CUstream given, unsigned long long *id) {
    ENTER(cuStreamGetId);
    STREAM_OF(stream, given);
    *id = (uintptr_t)stream;
    return CUDA_SUCCESS;
}

/* Capture */
void clock_merge(Clock *into, const Clock *from) {
    for (int i = 0; i < CAPTURE_STREAMS; i++)
        if (from->done[i] > into->done[i]) into->done[i] = from->done[i];
}

CUresult capture_join(CUstream stream, Capture *capture) {
    if (capture->stream_count == CAPTURE_STREAMS) return CUDA_ERROR_NOT_SUPPORTED;
    stream->capture = capture;
    stream->slot = capture->stream_count;
    stream->clock = (Clock){0};
    capture->streams[capture->stream_count++] = stream;
    return CUDA_SUCCESS;
}

DRIVER cuStreamBeginCapture(CUstream given, CUstreamCaptureMode mode) {
    ENTER(cuStreamBeginCapture);
    STREAM_OF(stream, given);
    if (is_default(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
    for (int i = 0; i < CAPTURE_STREAMS; i++) {
        if (captures[i]) continue;
        Capture *it = captures[i] = calloc(1, sizeof *it);
        if (!it) return CUDA_ERROR_OUT_OF_MEMORY;
        *it = (Capture){.graph = handle_new(GRAPH), .mode = mode, .origin = stream, .thread = thread_number(), .id = ++capture_ids};
        atomic_fetch_add(&stub_captures, 1);
        return capture_join(stream, it);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

DRIVER cuStreamEndCapture(CUstream given, CUgraph *graph) {
    CUresult refusal = enter(ID_cuStreamEndCapture);
    STREAM_OF(stream, given);
    Capture *it = stream->capture;
    if (graph) *graph = NULL;
    if (!it) return refusal ? refusal : CUDA_ERROR_ILLEGAL_STATE;
    if (it->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (it->thread != thread_number() && it->mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    /* Whatever it answers, an injected fault included, the capture is over. */
    CUresult status = refusal ? refusal : it->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    for (int i = 1; i < it->stream_count && !status; i++)
        if (stream->clock.done[i] < it->streams[i]->clock.done[i]) status = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    for (int i = 0; i < it->stream_count; i++)
        if (handle_is(it->streams[i], STREAM)) it->streams[i]->capture = NULL;
    if (status || !graph)
        handle_end(it->graph);
    else
        *graph = it->graph;
    for (int i = 0; i < CAPTURE_STREAMS; i++)
        if (captures[i] == it) captures[i] = NULL;
    atomic_fetch_sub(&stub_captures, 1);
    free(it);
    return status;
}

bool capture_is_live(const Capture *capture, uint64_t id) {
    for (int i = 0; i < CAPTURE_STREAMS; i++)
        if (captures[i] && captures[i] == capture && captures[i]->id == id) return true;
    return false;
}

static CUstreamCaptureStatus capture_status(CUstream stream) {
    if (!stream->capture) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Asking about the default stream while a blocking one captures is itself forbidden. */
static CUresult asked(CUstream stream) {
    if (stub_captures && is_default(stream))
        for (CUstream other = NULL; (other = handle_next(other, STREAM));)
            if (other->context == stream->context && other->capture && !(other->flags & CU_STREAM_NON_BLOCKING))
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return CUDA_SUCCESS;
}

DRIVER cuStreamIsCapturing(CUstream given, CUstreamCaptureStatus *status) {
    ENTER(cuStreamIsCapturing);
    STREAM_OF(stream, given);
    *status = capture_status(stream);
    return asked(stream);
}

static CUresult capture_info(CUstream given, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                             const CUgraphEdgeData **edges, size_t *count) {
    STREAM_OF(stream, given);
    *status = capture_status(stream);
    if (id) *id = stream->capture ? stream->capture->id : 0;
    if (graph) *graph = stream->capture ? stream->capture->graph : NULL;
    if (nodes) *nodes = NULL;
    if (edges) *edges = NULL;
    if (count) *count = 0;
    return asked(stream);
}

CUresult CUDAAPI capture_info_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                                 size_t *count) {
    ENTER(capture_info_v2);
    return capture_info(stream, status, id, graph, nodes, NULL, count);
}

CUresult CUDAAPI capture_info_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                                 const CUgraphEdgeData **edges, size_t *count) {
    ENTER(capture_info_v3);
    return capture_info(stream, status, id, graph, nodes, edges, count);
}

DRIVER cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    ENTER(cuThreadExchangeStreamCaptureMode);
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
