/* Modules, libraries, functions and how many blocks of one fit a processor. */
#include "stub.h"
#include <string.h>

struct CUmod_st {
    uint32_t kind;
    CUcontext context;
    int count;
    Kernel *kernels;  /* never freed: the ring of launches names them after the module is gone */
    CUfunction functions[32];
};
#define LIBRARY_MODULE(library) ((CUmodule)(library))

/* Modules; a library is a module of every context. */
static CUresult load(CUmodule *made, const void *image, enum Kind kind) {
    CONTEXT(it);
    CUresult status = unsafe_call();
    if (status) return status;
    LOCKED;
    int count = 0;
    Kernel *kernels = read_cubin(image, &count, &status);
    if (status) return status;
    CUmodule module = handle_new(kind);
    module->context = it;
    module->count = count;
    module->kernels = kernels;
    *made = module;
    return CUDA_SUCCESS;
}

static CUresult function_of(CUfunction *found, CUmodule module, const char *name, CUcontext of) {
    for (int i = 0; i < module->count && i < 32; i++) {
        if (strcmp(module->kernels[i].name, name)) continue;
        if (!module->functions[i]) {
            CUfunction made = module->functions[i] = handle_new(FUNCTION);
            made->context = of;
            made->module = module;
            made->kernel = &module->kernels[i];
            made->dynamic_shared = (int)STATIC_SHARED - (int)made->kernel->static_shared;
        }
        *found = module->functions[i];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
}

static void unload(CUmodule module) {
    for (int i = 0; i < 32; i++)
        if (module->functions[i]) handle_end(module->functions[i]);
    handle_end(module);
}

void modules_reset(CUcontext of) {
    for (CUmodule it = NULL; (it = handle_next(it, MODULE));)
        if (it->context == of) unload(it);
}

DRIVER cuModuleLoadData(CUmodule *made, const void *image) {
    ENTER(cuModuleLoadData);
    return load(made, image, MODULE);
}

DRIVER cuModuleLoadDataEx(CUmodule *made, const void *image, unsigned count, CUjit_option *options, void **values) {
    ENTER(cuModuleLoadDataEx);
    (void)count, (void)options, (void)values;
    return load(made, image, MODULE);
}

DRIVER cuModuleUnload(CUmodule module) {
    ENTER(cuModuleUnload);
    CONTEXT(it);
    LOCKED;
    if (!handle_is(module, MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    unload(module);
    return CUDA_SUCCESS;
}

DRIVER cuModuleGetFunction(CUfunction *found, CUmodule module, const char *name) {
    ENTER(cuModuleGetFunction);
    CONTEXT(it);
    LOCKED;
    if (!handle_is(module, MODULE)) return CUDA_ERROR_INVALID_HANDLE;
    return function_of(found, module, name, module->context);
}

DRIVER cuModuleGetGlobal(CUdeviceptr *found, size_t *size, CUmodule module, const char *name) {
    ENTER(cuModuleGetGlobal);
    (void)found, (void)size, (void)name;
    LOCKED;
    return handle_is(module, MODULE) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;  /* the stub gives no module its globals */
}

DRIVER cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    ENTER(cuModuleGetLoadingMode);
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

DRIVER cuLibraryLoadData(CUlibrary *made, const void *code, CUjit_option *options, void **values, unsigned count, CUlibraryOption *choices,
                         void **choice_values, unsigned choice_count) {
    ENTER(cuLibraryLoadData);
    (void)options, (void)values, (void)count, (void)choices, (void)choice_values, (void)choice_count;
    return load((CUmodule *)made, code, LIBRARY);
}

DRIVER cuLibraryUnload(CUlibrary library) {
    ENTER(cuLibraryUnload);
    LOCKED;
    if (!handle_is(library, LIBRARY)) return CUDA_ERROR_INVALID_HANDLE;
    unload(LIBRARY_MODULE(library));
    return CUDA_SUCCESS;
}

DRIVER cuLibraryGetKernel(CUkernel *found, CUlibrary library, const char *name) {
    ENTER(cuLibraryGetKernel);
    LOCKED;
    if (!handle_is(library, LIBRARY)) return CUDA_ERROR_INVALID_HANDLE;
    return function_of((CUfunction *)found, LIBRARY_MODULE(library), name, NULL);
}

DRIVER cuKernelGetFunction(CUfunction *found, CUkernel kernel) {
    ENTER(cuKernelGetFunction);
    CONTEXT(it);
    LOCKED;
    if (!handle_is(kernel, FUNCTION)) return CUDA_ERROR_INVALID_HANDLE;
    *found = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

/* Functions */
#define FUNCTION_IS(function)                                                   \
    LOCKED;                                                                     \
    if (!handle_is(function, FUNCTION)) return CUDA_ERROR_INVALID_HANDLE

DRIVER cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
    ENTER(cuFuncSetAttribute);
    FUNCTION_IS(function);
    if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        if (value < 0 || (uint32_t)value + function->kernel->static_shared > OPTIN_SHARED) return CUDA_ERROR_INVALID_VALUE;
        function->dynamic_shared = value;
    } else if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
        function->nonportable = value != 0;
    }
    return CUDA_SUCCESS;
}

DRIVER cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function) {
    ENTER(cuFuncGetAttribute);
    FUNCTION_IS(function);
    const Kernel *kernel = function->kernel;
    switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)kernel->most_threads; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)kernel->static_shared; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)kernel->registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = stub_capability; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = function->dynamic_shared; break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = function->nonportable; break;
    default: *value = 0;
    }
    return CUDA_SUCCESS;
}

DRIVER cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
    ENTER(cuFuncSetCacheConfig);
    (void)config;
    FUNCTION_IS(function);
    return CUDA_SUCCESS;
}

DRIVER cuFuncGetName(const char **name, CUfunction function) {
    ENTER(cuFuncGetName);
    FUNCTION_IS(function);
    *name = function->kernel->name;
    return CUDA_SUCCESS;
}

DRIVER cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
    ENTER(cuFuncGetParamInfo);
    FUNCTION_IS(function);
    if (index >= (size_t)function->kernel->count) return CUDA_ERROR_INVALID_VALUE;
    *offset = function->kernel->parameters[index].offset;
    if (size) *size = function->kernel->parameters[index].size;
    return CUDA_SUCCESS;
}

int resident(const Kernel *kernel, uint32_t threads, size_t shared) {
    uint32_t warps = (threads + 31) / 32, blocks = BLOCKS_PER_SM;
    uint32_t registers = (kernel->registers + 7) / 8 * 8 * 32 * warps;
    size_t bytes = shared + kernel->static_shared + 1024;
    if (!warps || threads > kernel->most_threads || shared + kernel->static_shared > OPTIN_SHARED) return 0;
    if (THREADS_PER_SM / (32 * warps) < blocks) blocks = THREADS_PER_SM / (32 * warps);
    if (registers && REGISTERS_PER_SM / registers < blocks) blocks = REGISTERS_PER_SM / registers;
    if (SHARED_PER_SM / bytes < blocks) blocks = (uint32_t)(SHARED_PER_SM / bytes);
    return (int)blocks;
}

DRIVER cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared) {
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    FUNCTION_IS(function);
    *blocks = resident(function->kernel, (uint32_t)threads, shared);
    return CUDA_SUCCESS;
}

DRIVER cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int threads, size_t shared, unsigned flags) {
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    (void)flags;
    FUNCTION_IS(function);
    *blocks = resident(function->kernel, (uint32_t)threads, shared);
    return CUDA_SUCCESS;
}

DRIVER cuOccupancyMaxActiveClusters(int *clusters, CUfunction function, const CUlaunchConfig *config) {
    ENTER(cuOccupancyMaxActiveClusters);
    FUNCTION_IS(function);
    int blocks = resident(function->kernel, config->blockDimX * config->blockDimY * config->blockDimZ, config->sharedMemBytes), size = 1;
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            size = (int)(config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y * config->attrs[i].value.clusterDim.z);
    *clusters = blocks * PROCESSORS / (size ? size : 1);
    return CUDA_SUCCESS;
}
