#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Give commands to QEMU's monitor.

usage: monitor.py SOCKET COMMAND...; a number is a pause of so many seconds
"""
import socket
import sys
import time

PROMPT = b"(qemu) "


def wait_for_prompt(monitor):
    answer = b""
    while not answer.endswith(PROMPT):
        part = monitor.recv(4096)
        if not part:
            sys.exit("monitor: QEMU has gone")
        answer += part
    return answer


def main():
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.connect(sys.argv[1])
        wait_for_prompt(monitor)
        for command in sys.argv[2:]:
            if command.replace(".", "").isdecimal():
                time.sleep(float(command))
                continue
            monitor.sendall(command.encode() + b"\n")
            wait_for_prompt(monitor)


if __name__ == "__main__":
    main()
