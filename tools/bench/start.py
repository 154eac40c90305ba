#!/usr/bin/env python3
"""Seconds from a model's file to its first output: Firn in process beside ONNX Runtime's session and first run.

    start.py FIRN FOLDER... [--rounds 5] [--cache DIR] [--threads 2]

FOLDER has model.onnx. Each start is a process of its own, and the engines take turns; a line gives medians. Firn's time
is that of `firn bench --start` for the machine's own CPU; ONNX Runtime's begins when the module is imported. Without the
Python module onnxruntime its column is empty. With --cache a second column has Firn's starts from a warm cache.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

SESSION = """
import sys, time, numpy, onnxruntime
begun = time.perf_counter()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
types = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32,
         "tensor(uint8)": numpy.uint8, "tensor(int8)": numpy.int8, "tensor(bool)": numpy.bool_}
feeds = {each.name: numpy.zeros([dim if isinstance(dim, int) else 1 for dim in each.shape], types[each.type])
         for each in session.get_inputs()}
session.run(None, feeds)
print(time.perf_counter() - begun)
"""


def firn_seconds(options, model, *flags):
    done = subprocess.run([options.firn, "bench", "--start", "--json", "-mcpu=native", *flags, model], capture_output=True, text=True)
    return json.loads(done.stdout)["all"] if done.returncode == 0 else None


def rival_seconds(options, model):
    done = subprocess.run([sys.executable, "-c", SESSION, model, str(options.threads)], capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else None


def median(values):
    known = [value for value in values if value is not None]
    return f"{statistics.median(known):.3f}" if known else "-"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firn")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of ONNX Runtime's session")
    parser.add_argument("--cache", help="a folder that Firn keeps code in")
    options = parser.parse_args()
    kinds = ["Firn, s", *(["Firn from the cache, s"] if options.cache else []), "ONNX Runtime, s"]
    print(f"| network | {' | '.join(kinds)} |\n|---|{'---|' * len(kinds)}")
    for folder in options.folders:
        model = os.path.join(folder, "model.onnx")
        rounds = []
        for _ in range(options.rounds):
            times = [firn_seconds(options, model)]
            if options.cache:
                times.append(firn_seconds(options, model, "--cache", options.cache))
            rounds.append([*times, rival_seconds(options, model)])
        columns = " | ".join(median(column) for column in zip(*rounds))
        print(f"| {os.path.basename(os.path.normpath(folder))} | {columns} |", flush=True)


if __name__ == "__main__":
    main()
