/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of QEMU's: counts executed guest instructions exactly, and notes the count whenever a marker address executes.
 *
 *     -plugin count.so,out=FILE,at=0x1234,at=0x5678
 *
 * FILE gets a line "ADDRESS COUNT" in hexadecimal and decimal each time: COUNT is how many instructions executed before the one
 * at ADDRESS. The last line is "end COUNT"; without it the run was cut short.
 *
 * The declarations below are those of plugin interface version 1 (QEMU up to 8.2). QEMU itself refuses to load this for another.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

typedef void (*tb_trans_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*exec_cb)(unsigned int vcpu, void *data);
typedef void (*exit_cb)(qemu_plugin_id_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, tb_trans_cb cb);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_cb cb, enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *insn, enum qemu_plugin_op op, void *to, uint64_t value);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, exit_cb cb, void *data);

extern EXPORT int qemu_plugin_version;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

int qemu_plugin_version = 1;

#define MAX_MARKERS 64

static uint64_t n_executed;
static uint64_t markers[MAX_MARKERS];
static size_t n_markers;
static FILE *out;

static void on_marker(unsigned int vcpu, void *data) {
    (void)vcpu;
    fprintf(out, "%" PRIx64 " %" PRIu64 "\n", *(const uint64_t *)data, n_executed);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        for (size_t m = 0; m < n_markers; m++) {
            if (markers[m] == address) {
                qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker, QEMU_PLUGIN_CB_NO_REGS, &markers[m]);
            }
        }
        /* Added after the callback: QEMU runs them in this order. */
        qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &n_executed, 1);
    }
}

static void at_exit(qemu_plugin_id_t id, void *data) {
    (void)id;
    (void)data;
    fprintf(out, "end %" PRIu64 "\n", n_executed);
    fclose(out);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0 && out == NULL) {
            out = fopen(argv[i] + 4, "w");
        } else if (strncmp(argv[i], "at=", 3) == 0 && n_markers < MAX_MARKERS) {
            markers[n_markers++] = strtoull(argv[i] + 3, NULL, 16);
        } else {
            fprintf(stderr, "count.so: bad argument %s\n", argv[i]);
            return -1;
        }
    }
    if (out == NULL) {
        fprintf(stderr, "count.so: out=FILE is missing or cannot be written\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
