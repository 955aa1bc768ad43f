#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tables of the bench that counts instructions, and its verdict.

usage: report.py DIRECTORY BASELINE [accept [DOCUMENT]]

DIRECTORY has boot1, boot2 and movsb as the guests left them, and the traces, and gets
insn.json with the figures. BASELINE is compared with if it is there; "accept" writes
it, and the tables into DOCUMENT. Exit status 1 if an I/O of ours takes more than LIMIT
times what it took in the baseline, or a test of channels shows in a reader's latency, or
a DMA read is not as far below the stock driver's as it is to be.
"""
import itertools
import json
import pathlib
import sys

import where

LIMIT = 1.02
DRIVERS = ("null_blk", "nd_pmem", "pmem_cpu", "pmem_dma/cpu", "pmem_dma/dma")
OURS = ("pmem_cpu", "pmem_dma/")
ENGINES = ("psync", "io_uring", "libaio", "uring_x16")
LENGTHS = (512, 4096, 65536, 2097152)
DIRECTIONS = ("read", "write")
# Of a synchronous DMA read, how many times nd_pmem takes where copies count by the byte.
TARGETS = {65536: 6, 2097152: 28}
# What a reader must not notice.
TESTS = ("selftest", "calibrate")
# Traces that are shown function by function.
DETAILED = ("pmem_dma.cpu-read", "pmem_dma.cpu-write")
BEGIN = "<!-- Written by make bench-insn ACCEPT=1, from here -->"
END = "<!-- to here -->"


def read_figures(path):
    figures = {}
    for line in path.read_text().splitlines():
        what, engine, direction, length, value, *_ = line.split("\t")
        figures[what, engine, direction, int(length)] = int(value)
    return figures


def read_facts(path):
    return dict(line.split("\t", 1) for line in path.read_text().splitlines())


def read_baseline(path):
    """The kernel's release and the figures."""
    head, *lines = path.read_text().splitlines()
    figures = {}
    for line in lines:
        what, engine, direction, length, value = line.split("\t")
        figures[what, engine, direction, int(length)] = int(value)
    return head.split("\t")[1], figures


def write_baseline(path, kernel, figures):
    lines = [f"kernel\t{kernel}"]
    lines += ["\t".join(map(str, (*key, value))) for key, value in figures.items()]
    path.write_text("\n".join(lines) + "\n")


def write_json(path, figures):
    """The main table, for programs."""
    rows = []
    for (what, engine, direction, length), value in figures.items():
        if what in DRIVERS:
            driver, _, way = what.partition("/")
            rows.append({"block": length, "direction": direction, "engine": engine,
                         "driver": driver, "path": way or "cpu", "instructions": value})
    path.write_text(json.dumps(rows, indent=1) + "\n")


def short(length):
    for unit, size in (("M", 1 << 20), ("k", 1 << 10)):
        if length >= size:
            return f"{length // size}{unit}"
    return str(length)


def number(value):
    return "-" if value is None else f"{value:,}"


def table(head, rows):
    """Markdown that can be read as it is."""
    cells = [head, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]

    def line(row):
        words = [row[0].ljust(widths[0])]
        words += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        return "| " + " | ".join(words) + " |"

    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    return [line(head), "| " + " | ".join(rule) + " |", *map(line, rows)]


def split(rows):
    """Head and rest."""
    return rows[0], rows[1:]


def measured(figures):
    """Engines, lengths and directions of the main table, in its order."""
    return [key for key in itertools.product(ENGINES, LENGTHS, DIRECTIONS)
            if ("null_blk", key[0], key[2], key[1]) in figures]


def main_table(figures):
    rows = [[f"{engine} {short(length)} {direction}"] + [
        number(figures.get((driver, engine, direction, length))) for driver in DRIVERS]
            for engine, length, direction in measured(figures)]
    return table(["I/O", *DRIVERS], rows)


def copy_table(figures):
    kinds = {"read": "CPU read", "write": "CPU write", "writeback": "write-back",
             "engine": "provider"}
    rows = [[short(length)] + [number(figures["copy", "-", kind, length]) for kind in kinds]
            for length in LENGTHS]
    return table(["bytes", *kinds.values()], rows)


def own(figures, driver, engine, direction, length):
    """What is left without the block layer, the copy and the engine's provider."""
    value = figures[driver, engine, direction, length]
    if driver.startswith("pmem_dma"):
        value -= figures["null_blk", engine, direction, length]
    if driver == "pmem_dma/dma":
        value -= figures["copy", "-", "engine", length]
        if direction == "write":
            value -= figures["copy", "-", "writeback", length]
    else:
        value -= figures["copy", "-", direction, length]
    return value


def own_table(figures):
    rows = [[f"{engine} {short(length)} {direction}"] + [
        number(own(figures, driver, engine, direction, length)) for driver in DRIVERS[1:]]
            for engine, length, direction in measured(figures)]
    return table(["I/O", *DRIVERS[1:]], rows)


def variant_table(figures):
    """Every row that is not in the main table: as it is, and against its driver."""
    rows = []
    for what in dict.fromkeys(key[0] for key in figures):
        driver, _, variant = what.partition(" ")
        if not variant:
            continue
        row = [what]
        for engine in ENGINES[:2]:
            for direction in DIRECTIONS:
                value = figures.get((what, engine, direction, 4096))
                plain = figures[driver, engine, direction, 4096]
                row.append("-" if value is None else f"{value:,} ({value - plain:+,})")
        rows.append(row)
    return table(["4k", *(f"{e} {d}" for e in ENGINES[:2] for d in DIRECTIONS)], rows)


def spread(first, second):
    """The largest difference between two boots, of ours and of all, with its place."""
    worst = {}
    for key, value in first.items():
        differs = abs(second[key] - value) / max(value, 1)
        for group in ("all", "ours") if key[0].startswith(OURS) else ("all",):
            if differs >= worst.get(group, (-1, None))[0]:
                worst[group] = (differs, " ".join(map(str, key)))
    alike = sum(abs(second[key] - value) <= 0.001 * value for key, value in first.items())
    text = [f"{alike} of {len(first)} figures differ by no more than 0.1 % between the two boots."]
    for group, (differs, key) in worst.items():
        text.append(f"Largest difference of {group}: {100 * differs:.2f} % ({key}).")
    return text


def latencies(facts, file, kind):
    """Of the runs: medians, 99.99th percentiles, largest."""
    prefix = f"latency.{file}.{kind}."
    runs = [list(map(int, value.split())) for key, value in facts.items()
            if key.startswith(prefix)]
    return list(zip(*runs))


def latency_table(facts):
    """A lone reader's instructions from call to return, as medians of runs and their range."""
    rows = []
    for file in TESTS:
        for kind in ("alone", "with"):
            rows.append([f"{file}: {kind}"] + [
                f"{sorted(runs)[len(runs) // 2]:,} ({min(runs):,} to {max(runs):,})"
                for runs in latencies(facts, file, kind)])
    return table(["4k reads", "median", "99.99th percentile", "most"], rows)


def undisturbed(facts):
    """True if what a test does to a reader is within what its own runs differ by."""
    good = True
    # The same reader, so that its runs alone can be looked at together.
    alone = [first + second for first, second in zip(latencies(facts, "selftest", "alone"),
                                                     latencies(facts, "calibrate", "alone"))]
    for file in TESTS:
        for name, without, runs in zip(("median", "99.99th percentile", "most"), alone,
                                       latencies(facts, file, "with")):
            if sorted(runs)[len(runs) // 2] > max(without) * LIMIT:
                print(f"{file} shows in the {name} of a reader's latency  TOO MUCH")
                good = False
    return good


def long_read_table(figures, movsb):
    """What a DMA read takes off, by how the CPU would have copied."""
    rows = []
    for how, what in (("8 byte moves", figures), ("rep movsb", movsb)):
        for engine, length in (("psync", 65536), ("psync", 2097152), ("uring_x16", 65536)):
            values = [what[driver, engine, "read", length]
                      for driver in ("null_blk", "nd_pmem", "pmem_dma/dma")]
            rows.append([f"{engine} {short(length)}", how, *map(number, values),
                         f"1/{values[1] / values[2]:.1f}"])
    return table(["DMA read", "copies by", "null_blk", "nd_pmem", "pmem_dma/dma", "ratio"], rows)


def far_below(movsb):
    """True if synchronous DMA reads reach the targets."""
    good = True
    for length, target in TARGETS.items():
        stock, ours = (movsb[driver, "psync", "read", length]
                       for driver in ("nd_pmem", "pmem_dma/dma"))
        if ours * target > stock:
            print(f"a {short(length)} DMA read is 1/{stock / ours:.1f} of nd_pmem's,"
                  f" which should be 1/{target}  TOO MANY")
            good = False
    return good


def tables(figures, movsb, boots, facts, profiles):
    text = [f"Kernel {facts['kernel']}; {facts['media']}.", ""]
    text += spread(*boots)
    text += ["", "### Instructions per I/O", "", *main_table(figures)]
    text += ["", "### What moving the bytes takes", "", *copy_table(figures)]
    text += ["", "### What is left", "", *own_table(figures)]
    text += ["", "### DMA reads, against the stock driver", "",
             *long_read_table(figures, movsb)]
    text += ["", "### Single settings, at 4k", "", *variant_table(figures)]
    text += ["", "### A reader, while channels are tested", "", *latency_table(facts)]
    text += ["", "### How the disks were set", ""]
    settings = {key[6:]: value.split() for key, value in facts.items()
                if key.startswith("queue.")}
    names = list(dict.fromkeys(word.split("=")[0] for words in settings.values()
                               for word in words if "=" in word))
    for disk, words in settings.items():
        settings[disk] = dict(word.split("=") for word in words if "=" in word)
    text += table(["disk", *names], [[disk, *(words.get(name, "-") for name in names)]
                                     for disk, words in settings.items()])
    text += ["", "### Where they go, at 4k", "", *table(*split(where.share_rows(profiles)))]
    for name in filter(profiles.__contains__, DETAILED):
        text += ["", f"### {name.replace('-', ' ')} 4k, by function", "",
                 *table(*split(where.function_rows(*profiles[name])))]
    return text


def write_document(path, text):
    old = path.read_text()
    head, rest = old.split(BEGIN)
    tail = rest.split(END)[1]
    path.write_text("\n".join([head + BEGIN, "", *text, "", END]) + tail)


def compare(path, kernel, figures):
    """Print what changed; True if nothing of ours grew beyond the limit."""
    if not path.exists():
        print(f"There is no {path.name}, so there is nothing to compare with.")
        return True
    was_kernel, baseline = read_baseline(path)
    if was_kernel != kernel:
        print(f"The baseline is of kernel {was_kernel}, this is {kernel}.")
    good = True
    for key in sorted(baseline.keys() ^ figures.keys()):
        print(f"{'new' if key in figures else 'gone'}: {' '.join(map(str, key))}")
        good = False
    for key, value in figures.items():
        was = baseline.get(key)
        if was is None or abs(value - was) <= (LIMIT - 1) * was:
            continue
        mark = ""
        if value > was and key[0].startswith(OURS):
            mark = "  TOO MANY"
            good = False
        print(f"{' '.join(map(str, key)):40} {was:>10,} -> {value:>10,}"
              f" {100 * (value / was - 1):+6.1f} %{mark}")
    return good


def accept(baseline, documents, kernel, figures, text):
    write_baseline(baseline, kernel, figures)
    for document in documents:
        write_document(document, text)
    names = ", ".join(path.name for path in (baseline, *documents))
    print(f"bench: accepted, written anew: {names}")


def main():
    out, baseline = map(pathlib.Path, sys.argv[1:3])
    boots = [read_figures(out / boot / "figures.tsv") for boot in ("boot1", "boot2")]
    facts = read_facts(out / "boot1" / "facts.tsv")
    figures = {key: min(value, boots[1][key]) for key, value in boots[0].items()}
    movsb = read_figures(out / "movsb" / "figures.tsv")

    write_json(out / "insn.json", figures)
    text = tables(figures, movsb, boots, facts, where.profiles_of(out / "boot2"))
    print("\n".join([*text, ""]))
    if "accept" in sys.argv[3:4]:
        accept(baseline, list(map(pathlib.Path, sys.argv[4:])), facts["kernel"], figures, text)
        return 0
    if compare(baseline, facts["kernel"], figures) & undisturbed(facts) & far_below(movsb):
        print("bench: passed")
        return 0
    print(f"bench: FAILED, limit {100 * (LIMIT - 1):.0f} %; ACCEPT=1 makes this the baseline")
    return 1


if __name__ == "__main__":
    sys.exit(main())
