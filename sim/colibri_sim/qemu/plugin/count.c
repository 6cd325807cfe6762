/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of QEMU's: counts executed guest instructions exactly, and notes the count whenever a marker address executes.
 *
 *     -plugin count.so,out=FILE[,at=ADDRESS]...[,in=LOW-HIGH]...[,from=ADDRESS,to=ADDRESS]        addresses in hexadecimal
 *
 *     ADDRESS COUNT     `at` executes: COUNT, in decimal, is how many instructions executed before it
 *     LOW COUNT         execution comes (back) to the range `in`, for the first time since the last `at`
 *     b START BYTES INSTRUCTIONS COUNT NEXT
 *                       written when `to` executes, for each block that executed since `from`: a run of instructions without a jump
 *                       into or out of it, how often it executed, and how often the block after it in memory came next
 *     end COUNT         the last line; without it the run was cut short
 */
#include "plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int qemu_plugin_version = 1;

#define MAX_MARKERS 64

struct range {
    uint64_t low, high;
};

#define PAGE_BYTES 4096

/* A translation: QEMU may translate a block more than once, so lines for one block add up. On x86 QEMU lists as a block's last
 * instruction one that crosses into the next page, and then leaves it to a block of its own: such an instruction never runs here.
 */
struct block {
    struct block *older;
    const struct range *range;
    uint64_t start, last_start, end, n_insns, count, next, n_last;
    bool ends_with_page;
};

static uint64_t n_executed;
static uint64_t markers[MAX_MARKERS];
static size_t n_markers;
static struct range ranges[MAX_MARKERS];
static size_t n_ranges;
static bool in_range;
static uint64_t from, to;
static struct block *blocks, *last;
static FILE *out;

static void note(uint64_t address) {
    fprintf(out, "%" PRIx64 " %" PRIu64 "\n", address, n_executed);
}

static bool lacks_last(const struct block *b) {
    return b->ends_with_page && b->n_last == 0;
}

static uint64_t end_of(const struct block *b) {
    return lacks_last(b) ? b->last_start : b->end;
}

static void on_marker(unsigned int vcpu, void *data) {
    (void)vcpu;
    in_range = false;
    note(*(const uint64_t *)data);
}

/* The block that starts with `from` was counted when it began: it belongs to what is counted, the one of `to` does not. */
static void on_from(unsigned int vcpu, void *data) {
    (void)vcpu;
    (void)data;
    for (struct block *b = blocks; b != NULL; b = b->older) {
        b->count = b == last;
        b->next = 0;
    }
}

static void on_to(unsigned int vcpu, void *data) {
    (void)vcpu;
    (void)data;
    last->count--;
    for (const struct block *b = blocks; b != NULL; b = b->older) {
        if (b->count != 0) {
            fprintf(out, "b %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b->start, end_of(b) - b->start,
                    b->n_insns - lacks_last(b), b->count, b->next);
        }
    }
}

static void on_block(unsigned int vcpu, void *data) {
    struct block *b = data;
    (void)vcpu;
    b->count++;
    if (last != NULL && end_of(last) == b->start) {
        last->next++;
    }
    last = b;
    if (b->range != NULL && !in_range) {
        in_range = true;
        note(b->range->low);
    }
}

static void add_block(struct qemu_plugin_tb *tb, size_t n_insns) {
    struct qemu_plugin_insn *final = qemu_plugin_tb_get_insn(tb, n_insns - 1);
    /* Not qemu_plugin_tb_vaddr: with it, stages were not seen to end on RISC-V (QEMU 7.2). */
    uint64_t start = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
    struct block *b = calloc(1, sizeof *b);
    if (b == NULL) {
        abort();
    }
    b->older = blocks;
    b->start = start;
    b->last_start = qemu_plugin_insn_vaddr(final);
    b->end = b->last_start + qemu_plugin_insn_size(final);
    b->n_insns = n_insns;
    b->ends_with_page = n_insns > 1 && b->end % PAGE_BYTES == 0;
    if (b->ends_with_page) {
        qemu_plugin_register_vcpu_insn_exec_inline(final, QEMU_PLUGIN_INLINE_ADD_U64, &b->n_last, 1);
    }
    for (size_t r = 0; r < n_ranges; r++) {
        if (ranges[r].low <= start && start < ranges[r].high) {
            b->range = &ranges[r];
        }
    }
    blocks = b;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, b);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (from != to && address == from) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_from, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
        for (size_t m = 0; m < n_markers; m++) {
            if (markers[m] == address) {
                qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker, QEMU_PLUGIN_CB_NO_REGS, &markers[m]);
            }
        }
        if (from != to && address == to) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_to, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
        /* Added after the callbacks: QEMU runs them in this order. */
        qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &n_executed, 1);
    }
    if (n != 0 && (n_ranges != 0 || from != to)) {
        add_block(tb, n);
    }
}

static void at_exit(qemu_plugin_id_t id, void *data) {
    (void)id;
    (void)data;
    fprintf(out, "end %" PRIu64 "\n", n_executed);
    fclose(out);
}

static bool take(const char *argument) {
    char *rest = NULL;
    if (strncmp(argument, "out=", 4) == 0 && out == NULL) {
        out = fopen(argument + 4, "w");
        return out != NULL;
    }
    if (strncmp(argument, "at=", 3) == 0 && n_markers < MAX_MARKERS) {
        markers[n_markers++] = strtoull(argument + 3, &rest, 16);
    } else if (strncmp(argument, "in=", 3) == 0 && n_ranges < MAX_MARKERS) {
        struct range *range = &ranges[n_ranges++];
        range->low = strtoull(argument + 3, &rest, 16);
        range->high = *rest == '-' ? strtoull(rest + 1, &rest, 16) : 0;
    } else if (strncmp(argument, "from=", 5) == 0) {
        from = strtoull(argument + 5, &rest, 16);
    } else if (strncmp(argument, "to=", 3) == 0) {
        to = strtoull(argument + 3, &rest, 16);
    }
    return rest != NULL && *rest == '\0';
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!take(argv[i])) {
            fprintf(stderr, "count.so: bad argument %s\n", argv[i]);
            return -1;
        }
    }
    if (out == NULL) {
        fprintf(stderr, "count.so: out=FILE is missing\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
