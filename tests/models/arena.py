#!/usr/bin/env python3
"""Fails if a network's arena is more than 5 % above the bound of its schedule, or above a number of bytes.

    arena.py FIRN MODEL|FOLDER... [--most BYTES]

A folder holds model.onnx and perhaps test_data_set_0, whose shapes bind the symbolic dims.
"""
import json
import os
import subprocess
import sys

from bound_dims import bound_dims

RATIO = 1.05


def main():
    firn, *paths = sys.argv[1:]
    most = None
    if "--most" in paths:
        most = int(paths[paths.index("--most") + 1])
        paths = paths[:paths.index("--most")]
    failed = not paths
    for path in paths:
        folder = path if os.path.isdir(path) else os.path.dirname(path)
        model = os.path.join(path, "model.onnx") if os.path.isdir(path) else path
        command = [firn, "compile", model, "--emit=manifest"]
        for value in bound_dims(firn, model, folder):
            command += ["--dim", value]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{path}: {done.stderr or done.stdout}")
            failed = True
            continue
        manifest = json.loads(done.stdout)
        arena, bound = manifest["sizes"]["arena_bytes"], manifest["sizes"]["arena_lower_bound"]
        wrong = arena > RATIO * bound or (most is not None and arena > most)
        failed |= wrong
        print(f"{path}: arena {arena:,} B, lower bound {bound:,} B, ratio {arena / max(bound, 1):.3f}{'  TOO LARGE' if wrong else ''}")
    sys.exit(1 if failed else 0)


main()
