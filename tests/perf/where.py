#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Where the instructions of an I/O go, from a trace of all that a CPU executed.

QEMU writes a line with the program counter of each instruction (-d exec with one
instruction per block). The kernel's own list of symbols names the functions. No
instruction is added by looking, so the shares are exact.

usage: where.py DIRECTORY, with kallsyms and NAME.trace
"""
import bisect
import collections
import pathlib
import re
import statistics
import sys

KERNEL = 1 << 63
SYSCALL = "entry_SYSCALL_64"
FUNCTIONS = 25

# The first that matches the function, or its module in brackets, has it.
GROUPS = (
    ("program", r"^program$"),
    ("copy, write-back", r"^(__)?memcpy|^copy_mc|^__memcpy_flushcache$|^clean_cache_range$"),
    ("nd_pmem", r"\[nd_pmem\]"),
    ("pmem_core", r"\[pmem_core\]"),
    ("pmem_dma", r"\[pmem_dma\]"),
    ("provider, interrupt", r"\[nulldma\]|irq_work|tasklet|softirq|sysvec|_apic_|^apic_|^dma_async"
                            r"|^_*irq_(enter|exit)|^irqentry|bh_enable|^error_(entry|return)"
                            r"|restore_regs|iret|IPI|wake_up_var|llist_add"),
    ("DMA mapping", r"^dma_|iommu_dma|debug_dma"),
    ("wbt, statistics", r"wbt|rq_qos|blk_stat|blk_account|ktime_get|read_tsc|io_ticks"
                        r"|io_acct|part_stat"),
    ("blk-mq", r"^_*blk_mq|sbitmap|^blk_(attempt|update_req|queue_exit|start|finish|add|flush"
               r"|cgroup)|^__blk_flush|^elv_|plug|srcu|^_find_next_zero_bit"),
    ("bio", r"bio_|bio$|submit_bio|bvec|mempool|^kmem_cache|slab|^_*kmalloc|^kfree"),
    ("user pages", r"gup|pin_user|folio|iov_iter|^p[mu]d_|node_page_state|huge"),
    ("block device file", r"blkdev|^bdev|I_BDEV|kiocb|^file_|filemap|atime|current_time"
                          r"|inode|timestamp|vfs[ug]id"),
    ("system call", r"^entry_|syscall|_sys_|^vfs_|x64_sys|exit_to_user|rw_verify|security_|fdget"
                    r"|fput|fsnotify|apparmor|^aa_|bpf_lsm"),
    ("scheduler, work queue", r"schedule|load_avg|update_curr|psi_|pick_|queue_task|entit|queue_entity"
                              r"|vruntime|switch|wake|ttwu|rq_clock|preempt|_work|worker|pwq|kick_pool"
                              r"|rseq|rcu_note|calc_delta|fpregs|fpu|dl_server|mm_cid|sched_clock"
                              r"|record_times|rb_|update_deadline|cpuacct|_head_rotate|set_next_task"),
    ("locks, waiting", r"rcu_read|spin_|wait_for|^complete$|cond_resched"),
)


class Symbols:
    """Function of an address. Parts that the compiler moved elsewhere go by its name."""

    def __init__(self, path):
        starts = {}
        for line in path.read_text().splitlines():
            address, kind, name, *module = line.split()
            if kind in "tTwW":
                name = re.sub(r"\.(cold|part|constprop|isra|llvm).*", "", name)
                starts.setdefault(int(address, 16), name + (" " + module[0] if module else ""))
        self.starts = sorted(starts)
        self.names = [starts[start] for start in self.starts]

    def find(self, address):
        """Name and start."""
        if address < KERNEL:
            return "program", None
        i = bisect.bisect_right(self.starts, address) - 1
        return self.names[i], self.starts[i]


def addresses(path):
    pattern = re.compile(rb"\[[0-9a-f]+/([0-9a-f]+)/")
    with path.open("rb") as lines:
        for line in lines:
            match = pattern.search(line)
            if match:
                yield int(match[1], 16)


def split(path, symbols):
    """The I/Os of a trace: addresses from one entry of the kernel to the next."""
    ios, io, user = [], None, False
    for address in addresses(path):
        if user and address >= KERNEL and symbols.find(address)[0] == SYSCALL:
            if io:
                ios.append(io)
            io = []
        user = address < KERNEL
        if io is not None:
            io.append(address)
    return ios


def typical(ios):
    """One of median length: no timer interrupt, nothing unusual."""
    middle = statistics.median_low(len(io) for io in ios)
    return next(io for io in ios if len(io) == middle)


def profile(io, symbols):
    """Counts of each function, by itself and with all that it called.

    A function that is entered at its start was called, by whatever was executed
    before; execution that goes on in one that is on the stack is a return.
    """
    alone, whole, calls = (collections.Counter() for _ in range(3))
    stack = []
    for address in io:
        name, start = symbols.find(address)
        if not stack or address == start or name not in stack:
            if not (stack and stack[-1] == name and address != start):
                stack.append(name)
                calls[name] += 1
        else:
            while stack[-1] != name:
                stack.pop()
        alone[name] += 1
        for caller in set(stack):
            whole[caller] += 1
    return alone, whole, calls


def group_of(name):
    for group, pattern in GROUPS:
        if re.search(pattern, name):
            return group
    return "other"


def group_counts(alone):
    groups = collections.Counter()
    for name, count in alone.items():
        groups[group_of(name)] += count
    return groups


def share_rows(profiles):
    """A row for each group, a column for each trace."""
    groups = {name: group_counts(alone) for name, (alone, _, _) in profiles.items()}
    order = [*(group for group, _ in GROUPS), "other"]
    rows = [["4k", *(name.replace("-", " ") for name in groups)]]
    for group in order:
        if any(counts[group] for counts in groups.values()):
            rows.append([group, *(f"{counts[group]:,}" for counts in groups.values())])
    rows.append(["all", *(f"{sum(counts.values()):,}" for counts in groups.values())])
    return rows


def function_rows(alone, whole, calls):
    total = sum(alone.values())
    rows = [["function", "calls", "by itself", "share", "with what it calls"]]
    for name, count in alone.most_common(FUNCTIONS):
        rows.append([name, str(calls[name]), f"{count:,}", f"{100 * count / total:.1f} %",
                     f"{whole[name]:,}"])
    return rows


def profiles_of(directory):
    """By the names of the traces, in the order in which they were made."""
    symbols = Symbols(directory / "kallsyms")
    profiles = {}
    for path in sorted(directory.glob("*.trace"), key=lambda path: path.stat().st_mtime):
        ios = split(path, symbols)
        if not ios:
            print(f"bench: no whole I/O in {path.name}: the host was too slow", file=sys.stderr)
            continue
        profiles[path.stem] = profile(typical(ios), symbols)
    return profiles


def main():
    profiles = profiles_of(pathlib.Path(sys.argv[1]))
    for rows in [share_rows(profiles), *(function_rows(*data) for data in profiles.values())]:
        for row in rows:
            print("\t".join(row))
        print()


if __name__ == "__main__":
    main()
