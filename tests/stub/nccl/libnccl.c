/* A stub of NCCL, libnccl.so.2, over the stub CUDA driver: notes every call in order, checks it as NCCL would, injects faults.
 *
 * NOTHING IS SENT. A process holds one rank of a communicator, or several; a call touches the memory that NCCL would read and write, on
 * its stream (so that the stub driver finds wild pointers, and slow copies keep the stream busy), and moves this rank's own part alone.
 * Whether the calls of several ranks of this process fit together control.py finds out from the notes.
 *
 * Communicators are nonblocking, as NCCL's are with config.blocking = 0: a call answers ncclInProgress, and has happened when
 * ncclCommGetAsyncError has been asked LOOKS times; until then every other call on the communicator is refused.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS, CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR, IN_PROGRESS };
#define LOOKS 2
#define NO_COLOR (-1)
#define MOST_NOTES 4096
#define MOST_COMMS 64
#define MOST_QUEUED 256

typedef struct { char internal[128]; } UniqueId;
typedef struct { size_t size; unsigned magic, version; int blocking; } Config;  /* the fields that are looked at */
typedef struct {
    char name[32];
    uint64_t send, receive, count, comm, stream;
    int32_t datatype, op, peer, depth, group, rank, size, device, busy, extra;
} Note;
typedef struct Comm {
    uint64_t id;
    int rank, size, device, state, looks, waiting, color, key;
    bool live, finalized, stuck;
    CUcontext context;
    struct Comm *child, **slot;
    Note queued[MOST_QUEUED];
} Comm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static inline int lock_all(void) { return pthread_mutex_lock(&lock); }
static inline void unlock_all(int *held) { (void)held; pthread_mutex_unlock(&lock); }
#define LOCKED __attribute__((cleanup(unlock_all), unused)) int held_ = lock_all()

static Comm *comms[MOST_COMMS];
static int comm_count, note_count, group_count;
static Note notes[MOST_NOTES];
static char complaints[1 << 14], last_error[512];
static _Thread_local int depth, group_error;
static uint64_t ids = 1;
static const int sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

static struct { char name[32]; int left, status; } fault;
static char never[32];

static __attribute__((format(printf, 1, 2))) void complain(const char *format, ...) {
    size_t used = strlen(complaints);
    va_list words;
    va_start(words, format);
    if (used + 2 < sizeof complaints) {
        vsnprintf(complaints + used, sizeof complaints - used - 1, format, words);
        strcat(complaints, "\n");
    }
    va_end(words);
}

/* The stub driver, which the process has loaded. */
static void *driver(const char *name) {
    static void *library;
    if (!library) library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) complain("the stub driver has no %s", name);
    return found;
}
#define DRIVER_CALL(name, ...) ((__typeof__(&name))driver(TEXT(name)))(__VA_ARGS__)
#define TEXT(name) TEXT_(name)
#define TEXT_(name) #name

static int refusal(const char *name) {
    if (strcmp(fault.name, name) || --fault.left > 0) return SUCCESS;
    snprintf(last_error, sizeof last_error, "the stub was told to fail %s", name);
    fault.name[0] = 0;
    return fault.status;
}

static Note *put(const char *name, const Comm *comm) {
    static Note spare;
    Note *note = note_count < MOST_NOTES ? &notes[note_count++] : &spare;
    *note = (Note){.comm = (uintptr_t)comm, .depth = depth, .group = depth ? group_count : 0, .datatype = -1, .op = -1, .peer = -1};
    if (comm) {
        note->rank = comm->rank;
        note->size = comm->size;
        note->device = comm->device;
    }
    snprintf(note->name, sizeof note->name, "%s", name);
    return note;
}

static bool is_live(const Comm *comm) {
    for (int i = 0; i < comm_count; i++)
        if (comms[i] == comm) return comm->live;
    return false;
}

/* Opens a call on a communicator that must be there and ready. */
static int open_call(const char *name, Comm *comm) {
    if (!is_live(comm)) {
        complain("%s: %p is no communicator, or one that was destroyed", name, (void *)comm);
        return INVALID_ARGUMENT;
    }
    int status = refusal(name);
    if (status) return comm->state = status;
    if (comm->state == IN_PROGRESS && !depth) {
        complain("%s: the communicator is still busy with the call before", name);
        return INVALID_ARGUMENT;
    }
    return comm->state == IN_PROGRESS ? SUCCESS : comm->state;
}

static int begun(const char *name, Comm *comm) {
    comm->state = IN_PROGRESS;
    comm->looks = LOOKS;
    comm->stuck = !strcmp(never, name);
    return IN_PROGRESS;
}

static Comm *made(int size, int rank, uint64_t id) {
    if (comm_count == MOST_COMMS) abort();
    Comm *comm = comms[comm_count++] = calloc(1, sizeof *comm);
    comm->id = id;
    comm->size = size;
    comm->rank = rank;
    comm->live = true;
    CUdevice device = -1;
    DRIVER_CALL(cuCtxGetCurrent, &comm->context);
    if (!comm->context)
        complain("no device is current where the communicator is made");
    else
        DRIVER_CALL(cuCtxGetDevice, &device);
    comm->device = device;
    return comm;
}

/* Touch memory in the stream's order, as a kernel of NCCL would. */
static void touch(const Comm *comm, uint64_t to, uint64_t from, size_t bytes, uint64_t stream) {
    if (!bytes) return;
    DRIVER_CALL(cuCtxPushCurrent, comm->context);
    CUresult status = DRIVER_CALL(cuMemcpyDtoDAsync, to, from, bytes, (CUstream)(uintptr_t)stream);
    if (status) complain("memory at %#lx of %zu bytes cannot be used on stream %#lx: status %d", (long)to, bytes, (long)stream, status);
    CUcontext before;
    DRIVER_CALL(cuCtxPopCurrent, &before);
}

static void self_messages(const Comm *comm) {
    for (int i = 0; i < comm->waiting; i++) {
        const Note *one = &comm->queued[i];
        if (one->peer != comm->rank || strcmp(one->name, "ncclSend")) continue;
        bool found = false;
        for (int j = 0; j < comm->waiting && !found; j++) {
            Note *other = (Note *)&comm->queued[j];
            if (strcmp(other->name, "ncclRecv") || other->peer != comm->rank || other->extra) continue;
            found = other->extra = 1;
            if (other->count != one->count || other->datatype != one->datatype) complain("ncclSend to itself and its ncclRecv differ");
            touch(comm, other->receive, one->send, one->count * (size_t)sizes[one->datatype], one->stream);
        }
        if (!found) complain("ncclSend of rank %d to itself has no ncclRecv in its group", comm->rank);
    }
    for (int j = 0; j < comm->waiting; j++)
        if (!strcmp(comm->queued[j].name, "ncclRecv") && comm->queued[j].peer == comm->rank && !comm->queued[j].extra)
            complain("ncclRecv of rank %d from itself has no ncclSend in its group", comm->rank);
}

/* The calls that were begun happen. */
static void carry_out(Comm *comm) {
    self_messages(comm);
    for (int i = 0; i < comm->waiting; i++) {
        const Note *it = &comm->queued[i];
        size_t bytes = it->count * (size_t)sizes[it->datatype], whole = bytes * (size_t)comm->size, own = bytes * (size_t)comm->rank;
        bool scattered = !strcmp(it->name, "ncclReduceScatter"), gathered = !strcmp(it->name, "ncclAllGather");
        if (it->send) touch(comm, it->send, it->send, scattered ? whole : bytes, it->stream);
        if (it->receive) touch(comm, it->receive, it->receive, gathered ? whole : bytes, it->stream);
        if (it->send && it->receive) touch(comm, it->receive + (gathered ? own : 0), it->send + (scattered ? own : 0), bytes, it->stream);
    }
    comm->waiting = 0;
}

static int queue(const char *name, const void *send, void *receive, size_t count, int datatype, int op, int peer, Comm *comm, void *stream) {
    LOCKED;
    int status = open_call(name, comm);
    if (!is_live(comm)) return status;
    Note *note = put(name, comm);
    note->send = (uintptr_t)send;
    note->receive = (uintptr_t)receive;
    note->count = count;
    note->datatype = datatype;
    note->op = op;
    note->peer = peer;
    note->stream = (uintptr_t)stream;
    note->busy = DRIVER_CALL(cuStreamQuery, stream) == CUDA_ERROR_NOT_READY;
    CUcontext of = NULL;
    if (!DRIVER_CALL(cuStreamGetCtx, stream, &of) && of != comm->context) {
        complain("%s: the stream belongs to another device than the communicator's, cuda:%d", name, comm->device);
        status = INVALID_ARGUMENT;
    }
    if (datatype < 0 || datatype >= 12 || op > 4 || peer >= comm->size) {
        complain("%s: datatype %d, op %d, root or peer %d of %d", name, datatype, op, peer, comm->size);
        status = INVALID_ARGUMENT;
    }
    if (!depth && peer == comm->rank && (!strcmp(name, "ncclSend") || !strcmp(name, "ncclRecv")))
        complain("%s: to itself outside of a group waits for ever", name);
    if (status) return depth ? group_error = status : status;
    if (comm->waiting == MOST_QUEUED) abort();
    comm->queued[comm->waiting++] = *note;
    return depth ? SUCCESS : begun(name, comm);
}

EXPORT int ncclAllReduce(const void *s, void *r, size_t n, int type, int op, Comm *comm, void *stream) {
    return queue("ncclAllReduce", s, r, n, type, op, -1, comm, stream);
}
EXPORT int ncclReduce(const void *s, void *r, size_t n, int type, int op, int root, Comm *comm, void *stream) {
    return queue("ncclReduce", s, r, n, type, op, root, comm, stream);
}
EXPORT int ncclBroadcast(const void *s, void *r, size_t n, int type, int root, Comm *comm, void *stream) {
    return queue("ncclBroadcast", s, r, n, type, -1, root, comm, stream);
}
EXPORT int ncclAllGather(const void *s, void *r, size_t n, int type, Comm *comm, void *stream) {
    return queue("ncclAllGather", s, r, n, type, -1, -1, comm, stream);
}
EXPORT int ncclReduceScatter(const void *s, void *r, size_t n, int type, int op, Comm *comm, void *stream) {
    return queue("ncclReduceScatter", s, r, n, type, op, -1, comm, stream);
}
EXPORT int ncclSend(const void *s, size_t n, int type, int peer, Comm *comm, void *stream) {
    return queue("ncclSend", s, NULL, n, type, -1, peer, comm, stream);
}
EXPORT int ncclRecv(void *r, size_t n, int type, int peer, Comm *comm, void *stream) {
    return queue("ncclRecv", NULL, r, n, type, -1, peer, comm, stream);
}

EXPORT int ncclGroupStart(void) {
    LOCKED;
    int status = refusal("ncclGroupStart");
    if (status) return status;
    put("ncclGroupStart", NULL);
    if (!depth++) {
        group_count++;
        group_error = SUCCESS;
    }
    return SUCCESS;
}

EXPORT int ncclGroupEnd(void) {
    LOCKED;
    if (!depth) {
        complain("ncclGroupEnd without ncclGroupStart");
        return INVALID_USAGE;
    }
    depth--;
    put("ncclGroupEnd", NULL);
    int status = refusal("ncclGroupEnd");
    if (depth) return status;
    if (!status) status = group_error;
    for (int i = 0; i < comm_count; i++) {
        Comm *comm = comms[i];
        if (!comm->live || !comm->waiting || comm->state == IN_PROGRESS) continue;
        if (status) {
            comm->waiting = 0;
            comm->state = status;
        } else {
            status = begun("ncclGroupEnd", comm);
        }
    }
    return status;
}

EXPORT int ncclGetVersion(int *version) {
    const char *told = getenv("STUB_NCCL_VERSION");
    *version = told ? atoi(told) : 22809;
    return SUCCESS;
}

EXPORT int ncclGetUniqueId(UniqueId *id) {
    LOCKED;
    put("ncclGetUniqueId", NULL);
    int status = refusal("ncclGetUniqueId");
    memset(id, 0x5b, sizeof *id);
    uint64_t number = ids++;
    memcpy(id->internal, &number, sizeof number);
    return status;
}

EXPORT int ncclCommInitRankConfig(Comm **slot, int size, UniqueId id, int rank, Config *config) {
    LOCKED;
    uint64_t number;
    memcpy(&number, id.internal, sizeof number);
    *slot = NULL;
    int status = refusal("ncclCommInitRankConfig");
    Note *note = put("ncclCommInitRankConfig", NULL);
    note->rank = rank;
    note->size = size;
    note->extra = config ? config->blocking : -1;
    note->count = number;
    if (status) return status;
    if (rank < 0 || rank >= size) {
        complain("rank %d of %d", rank, size);
        return INVALID_ARGUMENT;
    }
    for (int i = 0; i < comm_count; i++)
        if (comms[i]->live && comms[i]->id == number && (comms[i]->size != size || comms[i]->rank == rank))
            complain("rank %d of %d: rank %d of %d has the same unique id", rank, size, comms[i]->rank, comms[i]->size);
    Comm *comm = *slot = made(size, rank, number);
    note->comm = (uintptr_t)comm;
    note->device = comm->device;
    return begun("ncclCommInitRankConfig", comm);
}

/* A rank of the child is what the Python side told: the place of its key among the ranks, which this process may not hold. */
static int child_size = 1;
EXPORT void stub_nccl_child_size(int size) { child_size = size; }

EXPORT int ncclCommSplit(Comm *comm, int color, int key, Comm **slot, Config *config) {
    LOCKED;
    int status = open_call("ncclCommSplit", comm);
    if (!is_live(comm)) return status;
    Note *note = put("ncclCommSplit", comm);
    note->op = color;
    note->peer = key;
    note->extra = config ? config->blocking : -1;
    *slot = NULL;
    if (status) return status;
    comm->slot = slot;  /* written when the split is done, as NCCL does */
    comm->child = color == NO_COLOR ? NULL : made(child_size, key, ids++);
    if (comm->child) {  /* on the same device, whichever is current */
        comm->child->context = comm->context;
        comm->child->device = comm->device;
    }
    return begun("ncclCommSplit", comm);
}

EXPORT int ncclCommFinalize(Comm *comm) {
    LOCKED;
    int status = open_call("ncclCommFinalize", comm);
    if (!is_live(comm)) return status;
    put("ncclCommFinalize", comm);
    if (status) return status;
    if (comm->finalized) complain("ncclCommFinalize twice");
    comm->finalized = true;
    return begun("ncclCommFinalize", comm);
}

static int end(const char *name, Comm *comm) {
    LOCKED;
    int status = !strcmp(name, "ncclCommAbort") ? (is_live(comm) ? SUCCESS : INVALID_ARGUMENT) : open_call(name, comm);
    if (!is_live(comm)) {
        if (!strcmp(name, "ncclCommAbort")) complain("ncclCommAbort: %p is no communicator, or one that was destroyed", (void *)comm);
        return status;
    }
    put(name, comm);
    comm->live = false;
    if (comm->slot && comm->child) comm->child->live = false;  /* it was not yet done */
    return status;
}
EXPORT int ncclCommDestroy(Comm *comm) { return end("ncclCommDestroy", comm); }
EXPORT int ncclCommAbort(Comm *comm) { return end("ncclCommAbort", comm); }

EXPORT int ncclCommGetAsyncError(Comm *comm, int *found) {
    LOCKED;
    if (!is_live(comm)) {
        complain("ncclCommGetAsyncError: %p is no communicator, or one that was destroyed", (void *)comm);
        return INVALID_ARGUMENT;
    }
    int status = refusal("ncclCommGetAsyncError");
    if (status) return status;
    if (comm->state == IN_PROGRESS && !comm->stuck && !comm->looks--) {
        comm->state = SUCCESS;
        carry_out(comm);
        if (comm->slot) *comm->slot = comm->child;
        comm->slot = NULL;
    }
    *found = comm->state;
    return SUCCESS;
}

#define ASK(name, field)                          \
    EXPORT int name(const Comm *comm, int *found) { \
        LOCKED;                                   \
        if (!is_live(comm)) return INVALID_ARGUMENT; \
        *found = comm->field;                     \
        return SUCCESS;                           \
    }
ASK(ncclCommCount, size)
ASK(ncclCommCuDevice, device)
ASK(ncclCommUserRank, rank)

EXPORT const char *ncclGetErrorString(int status) {
    static const char *words[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument",
                                  "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
    return status >= 0 && status < 8 ? words[status] : "unknown result code";
}
EXPORT const char *ncclGetLastError(const Comm *comm) {
    (void)comm;
    return last_error;
}

/* What control.py calls. */
EXPORT int stub_nccl_notes(void) { return note_count; }
EXPORT const Note *stub_nccl_note(int i) { return &notes[i]; }
EXPORT int stub_nccl_note_bytes(void) { return sizeof(Note); }
EXPORT void stub_nccl_forget(void) { note_count = 0; }
EXPORT void stub_nccl_fail_at(const char *name, int nth, int status) {
    LOCKED;
    snprintf(fault.name, sizeof fault.name, "%s", name);
    fault.left = nth;
    fault.status = status;
}
EXPORT void stub_nccl_never(const char *name) { snprintf(never, sizeof never, "%s", name); }
/* Something goes wrong at some time that is no call's. */
EXPORT void stub_nccl_async(int rank, int status, const char *words) {
    LOCKED;
    snprintf(last_error, sizeof last_error, "%s", words);
    for (int i = 0; i < comm_count; i++)
        if (comms[i]->live && comms[i]->rank == rank) comms[i]->state = status;
}
EXPORT int stub_nccl_live(void) {
    LOCKED;
    int found = 0;
    for (int i = 0; i < comm_count; i++) found += comms[i]->live;
    return found;
}
EXPORT void stub_nccl_complaints(char *into, size_t room) {
    LOCKED;
    snprintf(into, room, "%s", complaints);
    complaints[0] = 0;
}
