#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Make comparison.json, the table and the plot's data of the demo.

usage: report.py DIRECTORY, where the guest left header.tsv and cells.tsv.
Exit status 1 if the driver and the engine do not agree on the bytes moved.
"""
import json
import pathlib
import sys

DRIVERS = ("nd_pmem", "pmem_dma")
KEYS = ("block", "jobs", "depth", "direction")


def read_header(path):
    header = {}
    for line in path.read_text().splitlines():
        key, value = line.split("\t")
        if "." in key:
            group, key = key.split(".", 1)
            header.setdefault(group, {})[key] = value
        else:
            header[key] = int(value) if value.isdecimal() else value
    header["emulated"] = True
    return header


def read_cell(line):
    driver, block, jobs, depth, direction, *figures, engine = line.split("\t")
    elapsed_us, moved, busy_us = map(int, figures)
    cell = {
        "block": block,
        "jobs": int(jobs),
        "depth": int(depth),
        "direction": direction,
        "driver": driver,
        "mb_per_s": round(moved / elapsed_us, 2),
        "cpu_percent": round(100 * busy_us / elapsed_us, 1),
        "cpu_s_per_gb": round(1000 * busy_us / moved, 4),
    }
    if engine:
        cell["engine_percent"] = int(engine)
    return cell


def pair_up(cells):
    """One (nd_pmem's, pmem_dma's) per row of the table, in the order measured."""
    rows = {}
    for cell in cells:
        key = tuple(cell[name] for name in KEYS)
        rows.setdefault(key, {})[cell["driver"]] = cell
    incomplete = [key for key, row in rows.items() if len(row) != len(DRIVERS)]
    if incomplete or not rows:
        sys.exit(f"demo: figures are missing: {incomplete or 'all of them'}")
    return [tuple(row[driver] for driver in DRIVERS) for row in rows.values()]


def ratio(stock, dma, name):
    return f"{dma[name] / stock[name]:.2f}" if stock[name] else "-"


def print_header(header):
    versions = ", ".join(f"{k} {v}" for k, v in header["versions"].items())
    print("\npmem_dma compared with nd_pmem -- EMULATED: no figure here is that of a real machine,")
    print("only how the two drivers compare on the same emulated CPUs and engine means something.")
    print(f"kernel    {header['kernel']}")
    print(f"engine    {header['engine']}")
    print(f"machine   {header['machine']}")
    print(f"load      {header['load']}")
    print(f"versions  {versions}")


def print_table(rows):
    line = "{:>5} {:>5} {:>5} {:<5} |{:>9} {:>9} {:>6} |{:>8} {:>9} |{:>9} {:>9} {:>6} |{:>7}"
    print()
    print(line.format("", "", "", "", "MB/s", "MB/s", "", "CPU %", "CPU %",
                      "CPU s/GB", "CPU s/GB", "", "by"))
    print(line.format("block", "tasks", "depth", "", "nd_pmem", "pmem_dma", "ratio",
                      "nd_pmem", "pmem_dma", "nd_pmem", "pmem_dma", "ratio", "engine"))
    for stock, dma in rows:
        print(line.format(
            *(stock[name] for name in KEYS),
            f"{stock['mb_per_s']:.1f}", f"{dma['mb_per_s']:.1f}",
            ratio(stock, dma, "mb_per_s"),
            f"{stock['cpu_percent']:.0f}", f"{dma['cpu_percent']:.0f}",
            f"{stock['cpu_s_per_gb']:.3f}", f"{dma['cpu_s_per_gb']:.3f}",
            ratio(stock, dma, "cpu_s_per_gb"),
            f"{dma['engine_percent']} %"))
    print("ratio = pmem_dma / nd_pmem; CPU 100 % = one of the virtual CPUs;\n"
          "by engine = share of pmem_dma's bytes, the rest was copied by CPU\n")


def write_plot_data(path, rows):
    with path.open("w") as out:
        for stock, dma in rows:
            label = "{block}\\n{jobs}x{depth}\\n{direction}".format(**stock)
            print(f'"{label}"', stock["mb_per_s"], dma["mb_per_s"],
                  stock["cpu_s_per_gb"], dma["cpu_s_per_gb"], file=out)


def check_bytes(header):
    driver, engine = header["driver_dma_bytes"], header["engine_bytes"]
    late, redone = header["requests_late"], header["requests_redone"]
    if late:
        print(f"{late} times a request was overdue at the engine: this machine is too busy or too slow,")
        print("and the figures of pmem_dma are off.")
    if driver != engine or not engine:
        sys.exit(f"demo: pmem_dma counted {driver} bytes by DMA, the engine {engine}"
                 f" ({redone} requests were redone by CPU after an error or a reset)")
    print(f"bytes by DMA: {driver} counted by the driver, {engine} by the engine: equal")


def main():
    directory = pathlib.Path(sys.argv[1])
    header = read_header(directory / "header.tsv")
    lines = (directory / "cells.tsv").read_text().splitlines()
    cells = [read_cell(line) for line in lines]
    rows = pair_up(cells)
    with (directory / "comparison.json").open("w") as out:
        json.dump([header, *cells], out, indent=1)
        out.write("\n")
    write_plot_data(directory / "comparison.dat", rows)
    print_header(header)
    print_table(rows)
    check_bytes(header)


if __name__ == "__main__":
    main()
