// Shows ggml's CUDA backend one device, of compute capability 12.0 with 96 GiB, on a machine that has none: answers the calls by which
// the backend lists its devices, and nothing else. Loaded with LD_PRELOAD, also in place of the driver's library (its soname is
// libcuda.so.1), for penelope-audit, which asks what the device runs and computes nothing.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <stdio.h>
#include <string.h>

static const size_t kMemory = (size_t) 96 << 30;

cudaError_t cudaGetDeviceCount(int * count) {
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDevice(int * device) {
    *device = 0;
    return cudaSuccess;
}

// An RTX PRO 6000, as far as ggml looks.
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp * properties, int device) {
    memset(properties, 0, sizeof(*properties));
    strcpy(properties->name, "pretended device of compute capability 12.0");
    properties->major                  = 12;
    properties->minor                  = 0;
    properties->totalGlobalMem         = kMemory;
    properties->multiProcessorCount    = 188;
    properties->warpSize               = 32;
    properties->sharedMemPerBlock      = 48 << 10;
    properties->sharedMemPerBlockOptin = 99 << 10;
    return cudaSetDevice(device);
}

cudaError_t cudaDeviceGetAttribute(int * value, enum cudaDeviceAttr attribute, int device) {
    *value = attribute == cudaDevAttrCooperativeLaunch;
    return cudaSetDevice(device);
}

cudaError_t cudaDeviceGetPCIBusId(char * id, int size, int device) {
    snprintf(id, (size_t) size, "0000:01:00.0");
    return cudaSetDevice(device);
}

cudaError_t cudaMemGetInfo(size_t * free, size_t * total) {
    *free = *total = kMemory;
    return cudaSuccess;
}

CUresult cuDeviceGet(CUdevice * device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
}

// Without virtual memory management: nothing is allocated.
CUresult cuDeviceGetAttribute(int * value, CUdevice_attribute attribute, CUdevice device) {
    (void) attribute;
    (void) device;
    *value = 0;
    return CUDA_SUCCESS;
}
