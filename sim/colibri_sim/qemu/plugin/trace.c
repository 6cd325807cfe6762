/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of QEMU's: hashes what each window of a run executed, and which addresses it loaded from and stored to.
 *
 *     -plugin trace.so,out=FILE,ranges=FILE,begin=ADDRESS,end=ADDRESS,stage=ADDRESS
 *
 * A window is from the execution of `begin` to that of `end`. The output gets, in hexadecimal but for the two counts:
 *
 *     s CODE DATA           `stage` executes: hashes of the program counters and of the accesses in the window so far
 *     w CODE DATA RAW INSTRUCTIONS ACCESSES
 *                           the window's end: the hashes of all of it; RAW is DATA of absolute addresses
 *     end                   the last line; without it the run was cut short
 *
 * The file of ranges, which do not overlap, has lines
 *
 *     skip LOW HIGH         code that is left out, with its accesses
 *     same LOW HIGH TAG     an address in it is hashed as TAG and its offset: ranges of one tag are one
 *     once LOW HIGH TAG     before the window's second stage an address in it is hashed as TAG; afterwards as it is, like all others
 */
#include "plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int qemu_plugin_version = 1;

#define MAX_RANGES 65536
#define MAX_SKIPS 16

struct range {
    uint64_t low, high, tag;
    bool is_once;
};

/* The program counters of a translation. */
struct block {
    size_t n_insns;
    uint64_t addresses[];
};

static struct range ranges[MAX_RANGES], skips[MAX_SKIPS];
static size_t n_ranges, n_skips;
static uint64_t begin, end, stage;
static FILE *out;

static bool active;
static uint64_t n_stages, n_insns, n_accesses;
static uint64_t code_hash, data_hash, raw_hash;

/* One step of a multiplicative hash: rotated, so that the order counts; odd multiplier, so that nothing is lost. */
static uint64_t mix(uint64_t hash, uint64_t value) {
    return ((hash << 23 | hash >> 41) ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

static void on_block(unsigned int vcpu, void *data) {
    const struct block *b = data;
    (void)vcpu;
    if (!active) {
        return;
    }
    for (size_t i = 0; i < b->n_insns; i++) {
        code_hash = mix(code_hash, b->addresses[i]);
    }
    n_insns += b->n_insns;
}

static const struct range *range_of(uint64_t address) {
    size_t low = 0;
    size_t high = n_ranges;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (address >= ranges[middle].high) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n_ranges && address >= ranges[low].low ? &ranges[low] : NULL;
}

/* Tagged addresses are told from absolute ones by the top bit. */
static uint64_t reduced(uint64_t address) {
    const struct range *range = range_of(address);
    if (range == NULL || (range->is_once && n_stages > 1)) {
        return address;
    }
    return mix(range->tag, range->is_once ? 0 : address - range->low) | UINT64_C(1) << 63;
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    (void)vcpu;
    (void)data;
    if (!active) {
        return;
    }
    uint64_t kind = qemu_plugin_mem_size_shift(info) | (uint64_t)qemu_plugin_mem_is_store(info) << 8;
    data_hash = mix(mix(data_hash, kind), reduced(address));
    raw_hash = mix(raw_hash, address);
    n_accesses++;
}

static void on_begin(unsigned int vcpu, void *data) {
    (void)vcpu;
    (void)data;
    active = true;
    code_hash = data_hash = raw_hash = 0;
    n_stages = n_insns = n_accesses = 0;
}

static void on_stage(unsigned int vcpu, void *data) {
    (void)vcpu;
    (void)data;
    if (active) {
        n_stages++;
        fprintf(out, "s %" PRIx64 " %" PRIx64 "\n", code_hash, data_hash);
    }
}

static void on_end(unsigned int vcpu, void *data) {
    (void)vcpu;
    (void)data;
    if (active) {
        fprintf(out, "w %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", code_hash, data_hash, raw_hash, n_insns,
                n_accesses);
    }
    active = false;
}

static bool is_skipped(uint64_t address) {
    for (size_t i = 0; i < n_skips; i++) {
        if (skips[i].low <= address && address < skips[i].high) {
            return true;
        }
    }
    return false;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(tb);
    struct block *b = malloc(sizeof *b + n * sizeof b->addresses[0]);
    if (b == NULL) {
        abort();
    }
    b->n_insns = 0;
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (!is_skipped(address)) {
            b->addresses[b->n_insns++] = address;
            qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
        }
        exec_cb mark = address == begin ? on_begin : address == stage ? on_stage : address == end ? on_end : NULL;
        if (mark != NULL) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, mark, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, b);
}

static void at_exit(qemu_plugin_id_t id, void *data) {
    (void)id;
    (void)data;
    fprintf(out, "end\n");
    fclose(out);
}

static bool read_ranges(const char *path) {
    char kind[8];
    struct range range = {0};
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    while (fscanf(file, "%7s %" SCNx64 " %" SCNx64, kind, &range.low, &range.high) == 3) {
        if (strcmp(kind, "skip") == 0 && n_skips < MAX_SKIPS) {
            skips[n_skips++] = range;
        } else if (n_ranges < MAX_RANGES && fscanf(file, "%" SCNx64, &range.tag) == 1) {
            range.is_once = strcmp(kind, "once") == 0;
            ranges[n_ranges++] = range;
        } else {
            break;
        }
    }
    bool complete = feof(file);
    fclose(file);
    return complete;
}

static bool take(const char *argument) {
    char *rest = NULL;
    if (strncmp(argument, "out=", 4) == 0 && out == NULL) {
        out = fopen(argument + 4, "w");
        return out != NULL;
    }
    if (strncmp(argument, "ranges=", 7) == 0) {
        return read_ranges(argument + 7);
    }
    if (strncmp(argument, "begin=", 6) == 0) {
        begin = strtoull(argument + 6, &rest, 16);
    } else if (strncmp(argument, "end=", 4) == 0) {
        end = strtoull(argument + 4, &rest, 16);
    } else if (strncmp(argument, "stage=", 6) == 0) {
        stage = strtoull(argument + 6, &rest, 16);
    }
    return rest != NULL && *rest == '\0';
}

static int by_address(const void *a, const void *b) {
    uint64_t left = ((const struct range *)a)->low;
    uint64_t right = ((const struct range *)b)->low;
    return (left > right) - (left < right);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!take(argv[i])) {
            fprintf(stderr, "trace.so: bad argument %s\n", argv[i]);
            return -1;
        }
    }
    if (out == NULL) {
        fprintf(stderr, "trace.so: out=FILE is missing\n");
        return -1;
    }
    qsort(ranges, n_ranges, sizeof ranges[0], by_address);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
