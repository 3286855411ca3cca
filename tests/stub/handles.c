/* Handles of the stub: slots of one arena, so that any number can be asked whether it is a live stream, event, ... */
#include "stub.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLOTS (1u << 18)

typedef union Slot {
    struct {
        uint32_t kind;
        union Slot *later;  /* in the queue of dead slots: the longest dead is used first, so that a stale handle is noticed */
    } dead;
    unsigned char bytes[HANDLE_BYTES];
} Slot;

static Slot *arena;
static size_t used;
static Slot *first_dead, *last_dead;

void *handle_new(enum Kind kind) {
    if (!arena) {
        arena = mmap(NULL, SLOTS * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (arena == MAP_FAILED) abort();
    }
    Slot *slot;
    if (used < SLOTS)
        slot = &arena[used++];
    else {
        slot = first_dead;
        if (!slot) abort();  /* a quarter of a million live handles: a leak in what is tested */
        first_dead = slot->dead.later;
        if (!first_dead) last_dead = NULL;
    }
    memset(slot, 0, sizeof *slot);
    slot->dead.kind = kind;
    return slot;
}

void handle_end(void *handle) {
    Slot *slot = handle;
    slot->dead.kind = DEAD;
    slot->dead.later = NULL;
    if (last_dead)
        last_dead->dead.later = slot;
    else
        first_dead = slot;
    last_dead = slot;
}

bool handle_is(const void *handle, enum Kind kind) {
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)arena;
    if (!arena || offset >= used * sizeof(Slot) || offset % sizeof(Slot)) return false;
    return ((const Slot *)handle)->dead.kind == (uint32_t)kind;
}

void *handle_next(const void *after, enum Kind kind) {
    for (size_t i = after ? (size_t)((const Slot *)after - arena) + 1 : 0; i < used; i++)
        if (arena[i].dead.kind == (uint32_t)kind) return &arena[i];
    return NULL;
}
