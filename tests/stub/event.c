/* Events: marks in a stream's time, or in a capture. */
#include "stub.h"

DRIVER cuEventCreate(CUevent *made, unsigned flags) {
    ENTER(cuEventCreate);
    CONTEXT(it);
    LOCKED;
    *made = handle_new(EVENT);
    (*made)->context = it;
    (*made)->flags = flags;
    return CUDA_SUCCESS;
}

DRIVER cuEventDestroy(CUevent event) {
    ENTER(cuEventDestroy);
    CONTEXT(it);
    LOCKED;
    if (!handle_is(event, EVENT)) return CUDA_ERROR_INVALID_HANDLE;
    handle_end(event);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream given) {
    STREAM_OF(stream, given);
    if (!handle_is(event, EVENT) || event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        event->capture = stream->capture;
        event->capture_id = stream->capture->id;
        event->clock = stream->clock;
        return CUDA_SUCCESS;
    }
    bool captured;
    CUresult status = queue_work(stream, current_, 0, &(Node){.kind = NODE_OTHER}, &captured);
    if (status) return status;
    event->capture = NULL;
    event->recorded = true;
    event->stamp = stream->busy_until > now() ? stream->busy_until : now();
    return CUDA_SUCCESS;
}

DRIVER cuEventRecord(CUevent event, CUstream stream) {
    ENTER(cuEventRecord);
    return record(event, stream);
}

DRIVER cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
    ENTER(cuEventRecordWithFlags);
    return flags > CU_EVENT_RECORD_EXTERNAL ? CUDA_ERROR_INVALID_VALUE : record(event, stream);
}

DRIVER cuStreamWaitEvent(CUstream given, CUevent event, unsigned flags) {
    ENTER(cuStreamWaitEvent);
    (void)flags;
    STREAM_OF(stream, given);
    if (!handle_is(event, EVENT)) return CUDA_ERROR_INVALID_HANDLE;
    if (event->capture) {
        if (!capture_is_live(event->capture, event->capture_id)) return CUDA_ERROR_CAPTURED_EVENT;
        if (stream->capture && stream->capture != event->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        if (is_default(stream)) {
            spoil(event->capture);
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        if (!stream->capture) {
            CUresult status = capture_join(stream, event->capture);
            if (status) return status;
        }
        clock_merge(&stream->clock, &event->clock);
        return CUDA_SUCCESS;
    }
    if (stream->capture) {  /* work outside the capture may not be waited for inside it */
        if (!event->recorded) return CUDA_SUCCESS;
        spoil(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (event->recorded && event->stamp > now() && event->stamp > stream->busy_until) stream->busy_until = event->stamp;
    return CUDA_SUCCESS;
}

/* Is the event one that may be asked? Unlocked. */
static CUresult askable(CUevent event) {
    CUresult status = unsafe_call();
    if (status) return status;
    LOCKED;
    if (!handle_is(event, EVENT)) return CUDA_ERROR_INVALID_HANDLE;
    if (!event->capture) return CUDA_SUCCESS;
    if (capture_is_live(event->capture, event->capture_id)) spoil(event->capture);
    return CUDA_ERROR_CAPTURED_EVENT;
}

DRIVER cuEventQuery(CUevent event) {
    ENTER(cuEventQuery);
    CUresult status = askable(event);
    if (status) return status;
    LOCKED;
    settle();
    return event->recorded && event->stamp > now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

DRIVER cuEventSynchronize(CUevent event) {
    ENTER(cuEventSynchronize);
    CUresult status = askable(event);
    if (status) return status;
    if (event->recorded) sleep_until(event->stamp);
    LOCKED;
    settle();
    return CUDA_SUCCESS;
}

DRIVER cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    ENTER(cuEventElapsedTime);
    LOCKED;
    if (!handle_is(start, EVENT) || !handle_is(end, EVENT)) return CUDA_ERROR_INVALID_HANDLE;
    if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
    if (start->stamp > now() || end->stamp > now()) return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)(end->stamp - start->stamp) * 1e-6f;
    return CUDA_SUCCESS;
}
