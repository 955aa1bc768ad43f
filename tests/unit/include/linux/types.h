/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's names of types, for kernel-free sources built in user space. */
#ifndef _UNIT_LINUX_TYPES_H
#define _UNIT_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;

#endif
