/* SPDX-License-Identifier: Apache-2.0 */
/* The packed weights as a section, which the linker script puts at the address they were packed for.
 *
 * -DCOLIBRI_WEIGHTS_FILE='"model.bin"' (the quotes are part of the value) names the image. An application without weights leaves
 * this file out: the linker script's section is then empty, and colibri_port_weights() returns 0 bytes.
 */
    .section .colibri_weights, "a", %progbits
    .balign 64
    .incbin COLIBRI_WEIGHTS_FILE

    .section .note.GNU-stack, "", %progbits
