/* A library that answers like the driver's for one machine: an A100 in two parts, and a T4. */
#include <stdio.h>
#include <string.h>

enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
struct device { const char *uuid, *name; int minor, major_capability, minor_capability, instance; unsigned long long memory; };
static struct device devices[] = {
    {"GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77", "NVIDIA A100-SXM4-40GB", 0, 8, 0, -1, 42949672960ULL},
    {"GPU-c4a646d7-aa14-1dd1-f1b0-57288cda864d", "Tesla T4", 1, 7, 5, -1, 16106127360ULL},
    {"MIG-41b3359c-e721-56e5-8009-12e5797ed514", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 0, 8, 0, 1, 21073231872ULL},
    {"MIG-65b79fff-6d3c-5490-a288-b31ec705f310", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 0, 8, 0, 2, 21073231872ULL},
};
typedef struct device *handle;

static int said(char *to, unsigned size, const char *text)
{
    snprintf(to, size, "%s", text);
    return OK;
}
int nvmlInitWithFlags(unsigned flags) { (void)flags; return OK; }
int nvmlInit_v2(void) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code ? "not here" : "success"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return OK; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { return said(text, size, "535.129.03"); }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 12020; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *device)
{
    *device = &devices[index];
    return index < 2 ? OK : NOT_FOUND;
}
int nvmlDeviceGetUUID(handle device, char *text, unsigned size) { return said(text, size, device->uuid); }
int nvmlDeviceGetName(handle device, char *text, unsigned size) { return said(text, size, device->name); }
int nvmlDeviceGetMinorNumber(handle device, unsigned *number) { *number = (unsigned)device->minor; return OK; }
int nvmlDeviceGetMemoryInfo(handle device, unsigned long long *memory) { memory[0] = device->memory; return OK; }
int nvmlDeviceGetCudaComputeCapability(handle device, int *major, int *minor)
{
    *major = device->major_capability;
    *minor = device->minor_capability;
    return device->instance < 0 ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetEccMode(handle device, unsigned *now, unsigned *pending) { (void)device; *now = *pending = 1; return OK; }
int nvmlDeviceGetMaxClockInfo(handle device, unsigned kind, unsigned *mhz)
{
    (void)device;
    (void)kind;
    *mhz = 1410;
    return OK;
}
int nvmlDeviceGetNumGpuCores(handle device, unsigned *cores) { (void)device; *cores = 6912; return OK; }
int nvmlDeviceGetTemperature(handle device, unsigned sensor, unsigned *degrees)
{
    (void)device;
    (void)sensor;
    *degrees = 41;
    return OK;
}
int nvmlDeviceGetMigMode(handle device, unsigned *now, unsigned *pending)
{
    *now = *pending = device == devices;
    return device == devices ? OK : NOT_SUPPORTED;
}
int nvmlDeviceGetMaxMigDeviceCount(handle device, unsigned *count) { (void)device; *count = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(handle device, unsigned index, handle *part)
{
    (void)device;
    if (index > 1)
        return NOT_FOUND;
    *part = &devices[2 + index];
    return OK;
}
int nvmlDeviceGetGpuInstanceId(handle device, unsigned *number) { *number = (unsigned)device->instance; return OK; }
int nvmlDeviceGetComputeInstanceId(handle device, unsigned *number) { (void)device; *number = 0; return OK; }
