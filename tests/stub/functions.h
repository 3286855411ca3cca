/* Every entry point of the stub: X(name, first version that has it, flags) and Y(function, "name", version, flags) for a later form of one. */
#define FUNCTIONS(X, Y) \
    X(cuInit, 2000, ALWAYS) \
    X(cuDriverGetVersion, 2020, ALWAYS) \
    X(cuGetProcAddress, 11030, ALWAYS) \
    X(cuGetErrorName, 6000, ALWAYS) \
    X(cuGetErrorString, 6000, ALWAYS) \
    X(cuDeviceGetCount, 2000, HOST) \
    X(cuDeviceGet, 2000, HOST) \
    X(cuDeviceGetName, 2000, HOST) \
    X(cuDeviceGetUuid, 9020, HOST) \
    X(cuDeviceTotalMem, 3020, HOST) \
    X(cuDeviceGetAttribute, 2000, HOST) \
    X(cuDeviceGetPCIBusId, 4010, HOST) \
    X(cuDeviceCanAccessPeer, 4000, HOST) \
    X(cuDeviceGetP2PAttribute, 8000, HOST) \
    X(cuDeviceGetDefaultMemPool, 11020, HOST) \
    X(cuDeviceGetMemPool, 11020, HOST) \
    X(cuDeviceSetMemPool, 11020, HOST) \
    X(cuDevicePrimaryCtxRetain, 7000, ANY) \
    X(cuDevicePrimaryCtxRelease, 11000, HOST) \
    X(cuDevicePrimaryCtxReset, 11000, HOST) \
    X(cuDevicePrimaryCtxGetState, 7000, HOST) \
    X(cuDevicePrimaryCtxSetFlags, 11000, HOST) \
    X(cuCtxSetCurrent, 4000, HOST) \
    X(cuCtxGetCurrent, 4000, HOST) \
    X(cuCtxPushCurrent, 4000, HOST) \
    X(cuCtxPopCurrent, 4000, HOST) \
    X(cuCtxGetDevice, 2000, HOST) \
    Y(cuCtxGetDevice_v2, "cuCtxGetDevice", 13000, HOST) \
    X(cuCtxGetFlags, 7000, HOST) \
    X(cuCtxGetApiVersion, 3020, HOST) \
    X(cuCtxGetLimit, 3010, ANY) \
    X(cuCtxSetLimit, 3010, ANY) \
    X(cuCtxSynchronize, 2000, ANY) \
    Y(cuCtxSynchronize_v2, "cuCtxSynchronize", 13000, ANY) \
    X(cuCtxEnablePeerAccess, 4000, ANY) \
    X(cuCtxDisablePeerAccess, 4000, ANY) \
    X(cuCtxGetStreamPriorityRange, 5050, HOST) \
    X(cuMemGetInfo, 3020, ANY) \
    X(cuMemAlloc, 3020, ANY) \
    X(cuMemFree, 3020, ANY) \
    X(cuMemAllocAsync, 11020, ANY) \
    X(cuMemAllocFromPoolAsync, 11020, ANY) \
    X(cuMemFreeAsync, 11020, ANY) \
    X(cuMemPoolCreate, 11020, ANY) \
    X(cuMemPoolDestroy, 11020, ANY) \
    X(cuMemPoolTrimTo, 11020, ANY) \
    X(cuMemPoolSetAttribute, 11020, ANY) \
    X(cuMemPoolGetAttribute, 11020, ANY) \
    X(cuMemPoolSetAccess, 11020, ANY) \
    X(cuMemGetAddressRange, 3020, ANY) \
    X(cuMemAllocHost, 3020, ANY) \
    X(cuMemHostAlloc, 2020, ANY) \
    X(cuMemFreeHost, 2000, ANY) \
    X(cuMemHostGetDevicePointer, 3020, ANY) \
    X(cuMemHostGetFlags, 2030, ANY) \
    X(cuMemHostRegister, 6050, ANY) \
    X(cuMemHostUnregister, 4000, ANY) \
    X(cuPointerGetAttribute, 4000, ANY) \
    X(cuPointerGetAttributes, 7000, ANY) \
    X(cuMemcpy, 4000, ANY) \
    X(cuMemcpyAsync, 4000, ANY) \
    X(cuMemcpyHtoD, 3020, ANY) \
    X(cuMemcpyHtoDAsync, 3020, ANY) \
    X(cuMemcpyDtoH, 3020, ANY) \
    X(cuMemcpyDtoHAsync, 3020, ANY) \
    X(cuMemcpyDtoD, 3020, ANY) \
    X(cuMemcpyDtoDAsync, 3020, ANY) \
    X(cuMemcpyPeer, 4000, ANY) \
    X(cuMemcpyPeerAsync, 4000, ANY) \
    X(cuMemsetD8, 3020, ANY) \
    X(cuMemsetD8Async, 3020, ANY) \
    X(cuMemsetD16, 3020, ANY) \
    X(cuMemsetD16Async, 3020, ANY) \
    X(cuMemsetD32, 3020, ANY) \
    X(cuMemsetD32Async, 3020, ANY) \
    X(cuStreamCreate, 2000, ANY) \
    X(cuStreamCreateWithPriority, 5050, ANY) \
    X(cuStreamDestroy, 4000, ANY) \
    X(cuStreamSynchronize, 2000, ANY) \
    X(cuStreamQuery, 2000, ANY) \
    X(cuStreamWaitEvent, 3020, ANY) \
    X(cuStreamGetPriority, 5050, ANY) \
    X(cuStreamGetFlags, 5050, ANY) \
    X(cuStreamGetCtx, 9020, ANY) \
    X(cuStreamGetId, 12000, ANY) \
    X(cuStreamBeginCapture, 10010, ANY) \
    X(cuStreamEndCapture, 10000, ANY) \
    X(cuStreamIsCapturing, 10000, ANY) \
    Y(capture_info_v2, "cuStreamGetCaptureInfo", 11030, ANY) \
    Y(capture_info_v3, "cuStreamGetCaptureInfo", 12030, ANY) \
    X(cuThreadExchangeStreamCaptureMode, 10010, HOST) \
    X(cuEventCreate, 2000, ANY) \
    X(cuEventDestroy, 4000, ANY) \
    X(cuEventRecord, 2000, ANY) \
    X(cuEventRecordWithFlags, 11010, ANY) \
    X(cuEventQuery, 2000, ANY) \
    X(cuEventSynchronize, 2000, ANY) \
    X(cuEventElapsedTime, 2000, ANY) \
    X(cuGraphInstantiateWithFlags, 11040, ANY) \
    X(cuGraphInstantiateWithParams, 12000, ANY) \
    X(cuGraphLaunch, 10000, ANY) \
    X(cuGraphUpload, 11010, ANY) \
    X(cuGraphDestroy, 10000, ANY) \
    X(cuGraphExecDestroy, 10000, ANY) \
    X(cuGraphGetNodes, 10000, ANY) \
    X(cuModuleLoadData, 2000, ANY) \
    X(cuModuleLoadDataEx, 2010, ANY) \
    X(cuModuleUnload, 2000, ANY) \
    X(cuModuleGetFunction, 2000, ANY) \
    X(cuModuleGetGlobal, 3020, ANY) \
    X(cuModuleGetLoadingMode, 11070, HOST) \
    X(cuLibraryLoadData, 12000, ANY) \
    X(cuLibraryUnload, 12000, ANY) \
    X(cuLibraryGetKernel, 12000, ANY) \
    X(cuKernelGetFunction, 12000, ANY) \
    X(cuFuncSetAttribute, 9000, ANY) \
    X(cuFuncGetAttribute, 2020, ANY) \
    X(cuFuncSetCacheConfig, 3000, ANY) \
    X(cuFuncGetName, 12030, ANY) \
    X(cuFuncGetParamInfo, 12040, ANY) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, ANY) \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, ANY) \
    X(cuOccupancyMaxActiveClusters, 11070, ANY) \
    X(cuLaunchKernel, 4000, ANY) \
    X(cuLaunchKernelEx, 11060, ANY) \
    X(cuLaunchCooperativeKernel, 9000, ANY) \
    X(cuLaunchHostFunc, 10000, ANY) \
    X(cuTensorMapEncodeTiled, 12000, HOST) \
    X(cuProfilerStart, 4000, ANY) \
    X(cuProfilerStop, 4000, ANY)

#define X_ID(name, since, flags) ID_##name,
#define Y_ID(function, name, since, flags) ID_##function,
enum { FUNCTIONS(X_ID, Y_ID) FUNCTION_COUNT };
CUresult CUDAAPI capture_info_v2(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **, size_t *);
CUresult CUDAAPI capture_info_v3(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *, const CUgraphNode **, const CUgraphEdgeData **, size_t *);
CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *, CUcontext);
CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext);
CUresult CUDAAPI cuProfilerStart(void);  /* of cudaProfiler.h, which Triton does not bring */
CUresult CUDAAPI cuProfilerStop(void);
