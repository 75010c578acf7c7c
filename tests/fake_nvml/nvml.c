/* A libnvidia-ml.so.1 without a GPU: what boundby calls, scripted.
 *
 * The script is words `name=value` in FAKE_NVML, and later through fake_script():
 *   gpus=2 driver=570.86 name=H200 gpm=1 mig.0=1 lost.1=1 xid.0=79 pids.0=2 reload=1
 *   rc.FUNCTION=3         the function returns this code
 *   hang.FUNCTION=1       it does not come back until hang.FUNCTION=0
 *   field.83=5000 fieldrc.83=3 fieldtype.83=3    a field value, its return code, its type
 *   gpm.10=55 gpmrc.10=3  a GPM metric, its return code
 *   power_mw=... and so on: the numbers that number() is asked for below
 *   poison=1              a GPM sample leaves every other call with "unknown error"
 *   wrong_version=1       structures with a version are of another one
 *   wide=1                processes have 32 bytes each, as with some R535 drivers
 * An underscore in a value stands for a space; the word `clear` forgets all that was set.
 * fake_calls(FUNCTION) counts its calls; fake_functions() names all that were called; fake_samples() the GPM samples not given back.
 * Layouts and symbols are those that nvidia-ml-py expects. Symbols are hidden by the linker's
 * version script where an older driver is wanted.
 */

#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, SLOTS = 7, ENTRIES = 256 };
enum {
    OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7,
    TIMEOUT = 10, LOST = 15, OTHER_VERSION = 25, UNKNOWN = 999
};

struct device { int index; int instance; };
struct entry { char name[80]; char text[80]; };
struct point {
    const char *name;
    unsigned generation;
    int rc, hang;
    long calls;
    struct point *next;
};
struct sample { long serial; int index; };
struct event_set { int registered[MOST]; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct entry entries[ENTRIES];
static int entry_count;
static unsigned generation = 1;
static struct point *points;
static int users;
static int poisoned;
static long serial, samples;
static struct device gpus[MOST], instances[MOST][SLOTS];

/* The script. */

static struct entry *find(const char *name)
{
    for (int i = 0; i < entry_count; i++)
        if (!strcmp(entries[i].name, name))
            return &entries[i];
    return NULL;
}

static double number(const char *name, double otherwise)
{
    struct entry *entry = find(name);
    return entry ? strtod(entry->text, NULL) : otherwise;
}

static double numbered(const char *name, int index, double otherwise)
{
    char whole[80];
    snprintf(whole, sizeof whole, "%s.%d", name, index);
    return number(whole, otherwise);
}

static const char *words(const char *name, const char *otherwise)
{
    struct entry *entry = find(name);
    return entry ? entry->text : otherwise;
}

static void set(const char *name, const char *text)
{
    struct entry *entry = find(name);
    if (!entry) {
        if (entry_count == ENTRIES)
            abort();
        entry = &entries[entry_count++];
        snprintf(entry->name, sizeof entry->name, "%s", name);
    }
    snprintf(entry->text, sizeof entry->text, "%s", text);
    if (!strcmp(name, "reload"))
        users = 0;
}

void fake_script(const char *script)
{
    char *copy = strdup(script), *rest = NULL;
    pthread_mutex_lock(&lock);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        if (!strcmp(word, "clear"))
            entry_count = poisoned = 0;
        if (!equals)
            continue;
        *equals = 0;
        for (char *c = equals + 1; *c; c++)
            if (*c == '_')
                *c = ' ';
        set(word, equals + 1);
    }
    generation++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(copy);
}

long fake_calls(const char *name)
{
    long calls = 0;
    pthread_mutex_lock(&lock);
    for (struct point *point = points; point; point = point->next)
        if (!strcmp(point->name, name))
            calls = point->calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

void fake_functions(char *names, size_t room)
{
    *names = 0;
    pthread_mutex_lock(&lock);
    for (struct point *point = points; point; point = point->next) {
        strncat(names, point->name, room - strlen(names) - 2);
        strcat(names, " ");
    }
    pthread_mutex_unlock(&lock);
}

long fake_samples(void) { return samples; }

__attribute__((constructor)) static void begin(void)
{
    for (int i = 0; i < MOST; i++) {
        gpus[i] = (struct device){i, -1};
        for (int slot = 0; slot < SLOTS; slot++)
            instances[i][slot] = (struct device){i, slot == 0 ? 1 : 5};
    }
    if (getenv("FAKE_NVML"))
        fake_script(getenv("FAKE_NVML"));
}

/* Each call passes here: counted, held up, or refused. */

static void refresh(struct point *point)
{
    char name[80];
    if (point->generation == generation)
        return;
    point->generation = generation;
    snprintf(name, sizeof name, "rc.%s", point->name);
    point->rc = (int)number(name, 0);
    snprintf(name, sizeof name, "hang.%s", point->name);
    point->hang = (int)number(name, 0);
}

static int enter(struct point *point)
{
    pthread_mutex_lock(&lock);
    if (!point->calls++) {
        point->next = points;
        points = point;
    }
    refresh(point);
    while (point->hang) {
        pthread_cond_wait(&changed, &lock);
        refresh(point);
    }
    int rc = point->rc;
    int up = users > 0;
    pthread_mutex_unlock(&lock);
    if (rc)
        return rc;
    if (!strcmp(point->name, "nvmlInitWithFlags") || !strcmp(point->name, "nvmlErrorString"))
        return OK;
    if (!up)
        return UNINITIALIZED;
    if (poisoned && !strstr(point->name, "Gpm") && !strstr(point->name, "Shutdown"))
        return UNKNOWN;
    return OK;
}

static int alive(const struct device *device)
{
    if (!device || device->index >= (int)number("gpus", 1) || numbered("lost", device->index, 0))
        return LOST;
    return OK;
}

#define ENTER(function)                                 \
    static struct point point = {#function, 0, 0, 0, 0, NULL}; \
    int rc = enter(&point);                             \
    if (rc)                                             \
        return rc
#define ENTER_DEVICE(function, device) \
    ENTER(function);                   \
    if ((rc = alive(device)))          \
        return rc

/* Calls that give one number. */

#define GIVES(function, type, name, otherwise)           \
    int function(struct device *device, type *answer)    \
    {                                                    \
        ENTER_DEVICE(function, device);                  \
        *answer = (type)number(name, otherwise);         \
        return OK;                                       \
    }
#define GIVES_BY(function, type, name, otherwise)                     \
    int function(struct device *device, unsigned which, type *answer) \
    {                                                                 \
        ENTER_DEVICE(function, device);                               \
        *answer = (type)numbered(name, (int)which, otherwise);        \
        return OK;                                                    \
    }

GIVES(nvmlDeviceGetPowerUsage, unsigned, "power_mw", 650000)
GIVES(nvmlDeviceGetEnforcedPowerLimit, unsigned, "limit_mw", 700000)
GIVES(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "reasons", 4)
GIVES(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, "reasons", 4)
GIVES(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy_mj", 5000)
GIVES(nvmlDeviceGetPcieReplayCounter, unsigned, "replays", 3)
GIVES(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "width", 16)
GIVES(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "generation", 5)
GIVES(nvmlDeviceGetMaxMigDeviceCount, unsigned, "slots", SLOTS)
GIVES_BY(nvmlDeviceGetClockInfo, unsigned, "mhz", 1755)
GIVES_BY(nvmlDeviceGetMaxClockInfo, unsigned, "max_mhz", 1980)
GIVES_BY(nvmlDeviceGetTemperature, unsigned, "celsius", 61)
GIVES_BY(nvmlDeviceGetPcieThroughput, unsigned, "pcie_kb", 2000)

struct temperature { unsigned version, sensor; int celsius; };

int nvmlDeviceGetTemperatureV(struct device *device, struct temperature *answer)
{
    ENTER_DEVICE(nvmlDeviceGetTemperatureV, device);
    answer->celsius = (int)numbered("celsius", (int)answer->sensor, 61);
    return OK;
}

/* The library, and which GPUs there are. */

int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    ENTER(nvmlInitWithFlags);
    pthread_mutex_lock(&lock);
    users++;
    pthread_mutex_unlock(&lock);
    return OK;
}

int nvmlShutdown(void)
{
    ENTER(nvmlShutdown);
    pthread_mutex_lock(&lock);
    users--;
    pthread_mutex_unlock(&lock);
    return OK;
}

const char *nvmlErrorString(int code)
{
    static struct point point = {"nvmlErrorString", 0, 0, 0, 0, NULL};
    (void)code;
    enter(&point);
    return "a code that the binding does not know";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    ENTER(nvmlSystemGetDriverVersion);
    snprintf(version, length, "%s", words("driver", "570.86.15"));
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    ENTER(nvmlDeviceGetCount_v2);
    *count = (unsigned)number("gpus", 1);
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device)
{
    ENTER(nvmlDeviceGetHandleByIndex_v2);
    *device = &gpus[index % MOST];
    return alive(*device);
}

int nvmlDeviceGetUUID(struct device *device, char *uuid, unsigned length)
{
    ENTER_DEVICE(nvmlDeviceGetUUID, device);
    snprintf(uuid, length, "GPU-%08d-0000-0000-0000-000000000000", device->index);
    return OK;
}

int nvmlDeviceGetName(struct device *device, char *name, unsigned length)
{
    ENTER_DEVICE(nvmlDeviceGetName, device);
    snprintf(name, length, "%s", words("name", "NVIDIA H200"));
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(struct device *device, int *major, int *minor)
{
    ENTER_DEVICE(nvmlDeviceGetCudaComputeCapability, device);
    *major = 9, *minor = 0;
    return OK;
}

int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending)
{
    ENTER_DEVICE(nvmlDeviceGetMigMode, device);
    *current = *pending = (unsigned)numbered("mig", device->index, 0);
    return OK;
}

/* Slots 0, 2 and 3 are in use; the last two are compute instances of one GPU instance. */
int nvmlDeviceGetMigDeviceHandleByIndex(struct device *device, unsigned slot, struct device **mig)
{
    ENTER_DEVICE(nvmlDeviceGetMigDeviceHandleByIndex, device);
    if (slot != 0 && slot != 2 && slot != 3)
        return NOT_FOUND;
    *mig = &instances[device->index][slot];
    return OK;
}

int nvmlDeviceGetGpuInstanceId(struct device *device, unsigned *id)
{
    ENTER_DEVICE(nvmlDeviceGetGpuInstanceId, device);
    if (device->instance < 0)
        return NOT_SUPPORTED;
    *id = (unsigned)device->instance;
    return OK;
}

/* Structures. */

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
struct utilization { unsigned gpu, memory; };
struct violation { unsigned long long reference_us, violation_ns; };
union value { double d; unsigned ui; unsigned long ul; unsigned long long ull; long long sll; int i; };
struct field {
    unsigned id, scope;
    long long timestamp, latency;
    unsigned type, rc;
    union value value;
};

static double total(const struct device *device)
{
    return number("memory", 150e9) / (device->instance < 0 ? 1 : 4);
}

int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *answer)
{
    ENTER_DEVICE(nvmlDeviceGetMemoryInfo, device);
    answer->total = (unsigned long long)total(device);
    answer->used = (unsigned long long)(number("used", 0.5) * total(device) + 1e9);
    answer->free = answer->total - answer->used;
    return OK;
}

int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory_v2 *answer)
{
    ENTER_DEVICE(nvmlDeviceGetMemoryInfo_v2, device);
    if (answer->version != 0x02000028 || number("wrong_version", 0))
        return OTHER_VERSION;
    answer->total = (unsigned long long)total(device);
    answer->reserved = 1000000000;
    answer->used = (unsigned long long)(number("used", 0.5) * total(device));
    answer->free = answer->total - answer->used - answer->reserved;
    return OK;
}

int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *answer)
{
    ENTER_DEVICE(nvmlDeviceGetUtilizationRates, device);
    if (numbered("mig", device->index, 0))
        return NOT_SUPPORTED;
    answer->gpu = (unsigned)number("busy", 97);
    answer->memory = (unsigned)number("copying", 41);
    return OK;
}

int nvmlDeviceGetViolationStatus(struct device *device, unsigned policy, struct violation *answer)
{
    ENTER_DEVICE(nvmlDeviceGetViolationStatus, device);
    answer->reference_us = 1;
    answer->violation_ns = (unsigned long long)numbered("violation_ns", (int)policy, 2e9);
    return OK;
}

int nvmlDeviceGetTotalEccErrors(struct device *device, unsigned error, unsigned kind,
                                unsigned long long *answer)
{
    ENTER_DEVICE(nvmlDeviceGetTotalEccErrors, device);
    if (error != 1 || kind != 0)
        return INVALID;
    *answer = (unsigned long long)number("ecc", 7);
    return OK;
}

static double known_field(unsigned id)
{
    switch (id) {
    case 4: return 7;
    case 74: case 75: case 77: return 3e9;
    case 82: return 71;
    case 83: return 5000;
    case 94: return 3;
    case 138: case 139: return 1024;
    case 197: case 198: return 4096;
    default: return -1;
    }
}

int nvmlDeviceGetFieldValues(struct device *device, int count, struct field *fields)
{
    ENTER_DEVICE(nvmlDeviceGetFieldValues, device);
    for (int i = 0; i < count; i++) {
        struct field *field = &fields[i];
        int id = (int)field->id;
        double value = numbered("field", id, known_field(field->id));
        field->rc = (unsigned)numbered("fieldrc", id, value < 0 ? NOT_SUPPORTED : OK);
        field->type = (unsigned)numbered("fieldtype", id, id == 82 ? 1 : 3);
        field->timestamp = 1;
        switch (field->type) {
        case 0: field->value.d = value; break;
        case 1: field->value.ui = (unsigned)value; break;
        case 2: field->value.ul = (unsigned long)value; break;
        case 5: field->value.i = (int)value; break;
        default: field->value.ull = (unsigned long long)value;
        }
    }
    return OK;
}

/* Processes and events. */

static int list(const struct device *device, unsigned *count, char *entries_)
{
    unsigned there = (unsigned)numbered("pids", device->index, 0);
    unsigned room = *count, size = number("wide", 0) ? 32 : 24;
    *count = there;
    if (there > room)
        return TOO_SMALL;
    for (unsigned i = 0; i < there; i++) {
        char *entry = entries_ + (size_t)i * size;
        unsigned pid = 1000 + 10 * (unsigned)device->index + i, none = 0xFFFFFFFF;
        unsigned instance = numbered("mig", device->index, 0) ? (i % 2 ? 5 : 1) : none;
        memset(entry, 0, size);
        memcpy(entry, &pid, sizeof pid);
        memcpy(entry + 16, &instance, sizeof instance);
        memcpy(entry + 20, &none, sizeof none);
    }
    return OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct device *device, unsigned *count, char *entries_)
{
    ENTER_DEVICE(nvmlDeviceGetComputeRunningProcesses_v3, device);
    return list(device, count, entries_);
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct device *device, unsigned *count, char *entries_)
{
    ENTER_DEVICE(nvmlDeviceGetComputeRunningProcesses_v2, device);
    return list(device, count, entries_);
}

struct event { struct device *device; unsigned long long type, data; unsigned gi, ci; };

int nvmlEventSetCreate(struct event_set **events)
{
    ENTER(nvmlEventSetCreate);
    *events = calloc(1, sizeof **events);
    return OK;
}

int nvmlEventSetFree(struct event_set *events)
{
    ENTER(nvmlEventSetFree);
    free(events);
    return OK;
}

int nvmlDeviceRegisterEvents(struct device *device, unsigned long long types,
                             struct event_set *events)
{
    ENTER_DEVICE(nvmlDeviceRegisterEvents, device);
    if (types != 8)
        return INVALID;
    events->registered[device->index] = 1;
    return OK;
}

int nvmlEventSetWait_v2(struct event_set *events, struct event *event, unsigned milliseconds)
{
    (void)milliseconds;
    ENTER(nvmlEventSetWait_v2);
    for (int i = 0; i < MOST; i++) {
        double xid = numbered("xid", i, 0);
        char name[16];
        if (!events->registered[i] || !xid)
            continue;
        *event = (struct event){&gpus[i], 8, (unsigned long long)xid, 0xFFFFFFFF, 0xFFFFFFFF};
        snprintf(name, sizeof name, "xid.%d", i);
        pthread_mutex_lock(&lock);
        set(name, "0");
        pthread_mutex_unlock(&lock);
        return OK;
    }
    return TIMEOUT;
}

/* GPM. */

struct support { unsigned version, supported; };
struct metric { unsigned id, rc; double value; const char *names[3]; };
struct metrics { unsigned version, count; struct sample *first, *second; struct metric metrics[]; };

int nvmlGpmQueryDeviceSupport(struct device *device, struct support *answer)
{
    ENTER_DEVICE(nvmlGpmQueryDeviceSupport, device);
    if (answer->version != 1 || number("wrong_version", 0))
        return OTHER_VERSION;
    answer->supported = (unsigned)number("gpm", 0);
    return OK;
}

int nvmlGpmSampleAlloc(struct sample **sample)
{
    ENTER(nvmlGpmSampleAlloc);
    *sample = calloc(1, sizeof **sample);
    samples++;
    return OK;
}

int nvmlGpmSampleFree(struct sample *sample)
{
    ENTER(nvmlGpmSampleFree);
    free(sample);
    samples--;
    return OK;
}

static int take(const struct device *device, struct sample *sample)
{
    sample->serial = ++serial;
    sample->index = device->index;
    poisoned |= (int)number("poison", 0);
    return OK;
}

int nvmlGpmSampleGet(struct device *device, struct sample *sample)
{
    ENTER_DEVICE(nvmlGpmSampleGet, device);
    return take(device, sample);
}

int nvmlGpmMigSampleGet(struct device *device, unsigned instance, struct sample *sample)
{
    ENTER_DEVICE(nvmlGpmMigSampleGet, device);
    return instance == 1 || instance == 5 ? take(device, sample) : NOT_FOUND;
}

int nvmlGpmMetricsGet(struct metrics *metrics)
{
    ENTER(nvmlGpmMetricsGet);
    if (metrics->version != 1 || number("wrong_version", 0))
        return OTHER_VERSION;
    if (metrics->first->serial >= metrics->second->serial || !metrics->first->serial
        || metrics->first->index != metrics->second->index)
        return INVALID;
    for (unsigned i = 0; i < metrics->count; i++) {
        struct metric *metric = &metrics->metrics[i];
        metric->value = numbered("gpm", (int)metric->id, metric->id);
        metric->rc = (unsigned)numbered("gpmrc", (int)metric->id, 0);
        if (number("gpm_blank", 0))
            metric->value = NAN;
    }
    return OK;
}
