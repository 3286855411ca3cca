/* Graphs: what a stream captured, run again. Launches are noted, copies and fills are carried out. */
#include "stub.h"
#include <stdlib.h>

static CUresult instantiate(CUgraphExec *made, CUgraph graph) {
    CONTEXT(it);
    LOCKED;
    if (!made || !handle_is(graph, GRAPH)) return CUDA_ERROR_INVALID_VALUE;
    CUgraphExec exec = handle_new(EXEC);
    exec->context = it;
    exec->nodes = calloc((size_t)graph->count + 1, sizeof *exec->nodes);
    if (!exec->nodes) return CUDA_ERROR_OUT_OF_MEMORY;
    exec->count = graph->count;
    for (int i = 0; i < graph->count; i++) {
        exec->nodes[i] = graph->nodes[i];
        if (!graph->nodes[i].launch) continue;
        exec->nodes[i].launch = malloc(sizeof(Launch));
        if (!exec->nodes[i].launch) return CUDA_ERROR_OUT_OF_MEMORY;
        *exec->nodes[i].launch = *graph->nodes[i].launch;
    }
    *made = exec;
    return CUDA_SUCCESS;
}

DRIVER cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
    ENTER(cuGraphInstantiateWithFlags);
    (void)flags;
    return instantiate(made, graph);
}

DRIVER cuGraphInstantiateWithParams(CUgraphExec *made, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    ENTER(cuGraphInstantiateWithParams);
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return instantiate(made, graph);
}

DRIVER cuGraphUpload(CUgraphExec exec, CUstream given) {
    ENTER(cuGraphUpload);
    CONTEXT(it);
    LOCKED;
    return handle_is(exec, EXEC) && stream_of(given, it) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

DRIVER cuGraphLaunch(CUgraphExec exec, CUstream given) {
    ENTER(cuGraphLaunch);
    CONTEXT(it);
    LOCKED;
    CUstream stream = stream_of(given, it);
    if (!stream || !handle_is(exec, EXEC)) return CUDA_ERROR_INVALID_HANDLE;
    bool captured;
    CUresult status = queue_work(stream, it, stub_slow_launch, &(Node){.kind = NODE_OTHER}, &captured);
    if (status || captured) return status;
    copy_later(stream, it, 0, 0, 0);
    for (int i = 0; i < exec->count; i++) {
        const Node *node = &exec->nodes[i];
        size_t size = node->kind == NODE_SET ? node->size * (size_t)node->width : node->size;
        bool gone = (in_device_range(node->to) && !allocation_of(node->to, size)) || (in_device_range(node->from) && !allocation_of(node->from, size));
        if (gone)
            complain("cuGraphLaunch: memory of node %d was freed after the capture", i);
        else if (node->kind == NODE_COPY)
            copy_bytes(node->to, node->from, size);
        else if (node->kind == NODE_SET)
            set_bytes(node->to, node->value, node->width, node->size);
        if (node->launch) {
            Launch again = *node->launch;
            again.stream = (uintptr_t)given;
            again.from_graph = 1;
            ring_put(&again);
        }
    }
    return CUDA_SUCCESS;
}

DRIVER cuGraphDestroy(CUgraph graph) {
    ENTER(cuGraphDestroy);
    LOCKED;
    if (!handle_is(graph, GRAPH)) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < graph->count; i++) free(graph->nodes[i].launch);
    free(graph->nodes);
    handle_end(graph);
    return CUDA_SUCCESS;
}

DRIVER cuGraphExecDestroy(CUgraphExec exec) {
    ENTER(cuGraphExecDestroy);
    LOCKED;
    if (!handle_is(exec, EXEC)) return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < exec->count; i++) free(exec->nodes[i].launch);
    free(exec->nodes);
    handle_end(exec);
    return CUDA_SUCCESS;
}

/* Only counts: the stub's nodes have no handles. */
DRIVER cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    ENTER(cuGraphGetNodes);
    LOCKED;
    if (!handle_is(graph, GRAPH) || !count) return CUDA_ERROR_INVALID_VALUE;
    if (nodes)
        for (size_t i = 0; i < *count; i++) nodes[i] = i < (size_t)graph->count ? (CUgraphNode)&graph->nodes[i] : NULL;
    else
        *count = (size_t)graph->count;
    return CUDA_SUCCESS;
}
