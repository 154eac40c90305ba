#!/usr/bin/env python3
"""Code for the machine at hand beside code for CPUs of a whole level: native's is to be the fastest.

    native.py FIRN FOLDER... [--cpus x86-64-v2,x86-64-v3,x86-64-v4] [--rounds 15] [--block 0.1] [--flags ...]

FOLDER has model.onnx and test_data_set_0, as `firn bench --build` wants it. The programs, native's twice, run in turns, a
block of seconds each, of which the fastest run counts. A line gives native's median, and native's time over that of each
CPU's program: the median of the ratios between neighbouring blocks with its 95 % interval by bootstrap. The ratio between
both native programs is the noise. Native loses where the whole interval lies above 1.01 and above the noise's; those lines
say LOSES, and the exit code is 1. `-`: this machine does not run code for that CPU.
"""
import argparse
import os
import random
import statistics
import sys
import tempfile

from variants import Worker

TELLING = 1.01


class Ratio:
    """Of paired times, with the interval of its median."""

    def __init__(self, times, others):
        ratios = [time / other for time, other in zip(times, others)]
        drawn, generator = [], random.Random(1)
        for _ in range(1000):
            drawn.append(statistics.median(generator.choices(ratios, k=len(ratios))))
        drawn.sort()
        self.median, self.low, self.high = statistics.median(ratios), drawn[25], drawn[974]

    def __str__(self):
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"


def start(firn, folder, program, flags):
    try:
        return Worker(firn, folder, program, flags)
    except SystemExit as refusal:
        print(refusal, file=sys.stderr)
        return None


def compare(options, folder, scratch):
    """Whether native loses to none."""
    names = ["native", "native", *options.cpus.split(",")]
    workers = [start(options.firn, folder, os.path.join(scratch, str(i)), ["-mcpu=" + name, *options.flags])
               for i, name in enumerate(names)]
    times = [[] for _ in workers]
    for _ in range(options.rounds):
        for worker, column in zip(workers, times):
            if worker:
                column.append(worker.run(options.block, "min_ns"))
    for worker in filter(None, workers):
        worker.quit()
    native = [statistics.mean(pair) for pair in zip(times[0], times[1])]
    noise = Ratio(times[1], times[0])
    cells, lost = [str(noise)], False
    for column in times[2:]:
        ratio = Ratio(native, column) if column else None
        loses = ratio is not None and ratio.low > max(TELLING, noise.high)
        cells.append("-" if ratio is None else str(ratio) + (" LOSES" if loses else ""))
        lost |= loses
    name = os.path.basename(os.path.normpath(folder))
    print(f"| {name} | {statistics.median(native):.4g} | " + " | ".join(cells) + " |", flush=True)
    return not lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firn")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--cpus", default="x86-64-v2,x86-64-v3,x86-64-v4")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--block", type=float, default=0.1)
    parser.add_argument("--flags", default="", type=str.split)
    options = parser.parse_args()
    cpus = options.cpus.split(",")
    print("| network | native ms | native again | " + " | ".join(cpus) + " |\n|" + "---|" * (len(cpus) + 3))
    with tempfile.TemporaryDirectory() as scratch:
        results = [compare(options, folder, scratch) for folder in options.folders]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
