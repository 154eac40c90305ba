#!/usr/bin/env python3
"""The code of every CPU in an object for several, beside an object for that CPU alone.

    variants.py FIRN FOLDER... [--cpus x86-64-v2,x86-64-v3,x86-64-v4] [--rounds 7] [--block 0.5] [--flags ...]

FOLDER has model.onnx and test_data_set_0, as `firn bench --build` wants it. Both programs run in turns, a block
of seconds each; a line gives medians, and the median and range of the ratios between neighbouring blocks.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile


class Worker:
    """A program that `firn bench --build` wrote, waiting for work."""

    def __init__(self, firn, folder, program, flags):
        subprocess.run([firn, "bench", "--build", folder, "-o", program, *flags], check=True)
        self.process = subprocess.Popen([program, folder, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.ready = json.loads(self.process.stdout.readline())
        if not self.ready["ready"]:
            raise SystemExit(f"{folder}: {self.ready['reason']}")

    def run(self, seconds, figure="median_ns"):
        """Milliseconds of a run in a block of seconds: of the median, or of the fastest (min_ns)."""
        self.process.stdin.write(f"run {seconds} hot\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())[figure] / 1e6

    def quit(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        self.process.wait()


def object_bytes(firn, folder, flags, scratch):
    stem = os.path.join(scratch, "object")
    subprocess.run([firn, "compile", f"{folder}/model.onnx", "-o", stem, "-q", *flags], check=True)
    return os.path.getsize(stem + ".o")


def compare(options, folder, scratch):
    name = os.path.basename(os.path.normpath(folder))
    shared = ["--multiversion=" + options.cpus, *options.flags]
    whole = object_bytes(options.firn, folder, shared, scratch)
    cpus, singles = options.cpus.split(","), []
    for cpu in cpus:
        alone = ["-mcpu=" + cpu, *options.flags]
        singles.append(object_bytes(options.firn, folder, alone, scratch))
        pair = [Worker(options.firn, folder, os.path.join(scratch, kind), flags)
                for kind, flags in (("alone", alone), ("variant", [*shared, "--variant=" + cpu]))]
        times = [[worker.run(options.block) for worker in pair] for _ in range(options.rounds)]
        for worker in pair:
            worker.quit()
        ratios = sorted(variant / single for single, variant in times)
        single, variant = (statistics.median(column) for column in zip(*times))
        print(f"| {name} | {cpu} | {single:.4g} | {variant:.4g} | {statistics.median(ratios):.3f} "
              f"[{ratios[0]:.3f}, {ratios[-1]:.3f}] | {pair[1].ready['max_error']:.1e} |", flush=True)
    print(f"| {name} | object | {max(singles) / 1e6:.1f} MB | {whole / 1e6:.1f} MB | "
          f"{whole / max(singles):.3f} | |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firn")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--cpus", default="x86-64-v2,x86-64-v3,x86-64-v4")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--block", type=float, default=0.5)
    parser.add_argument("--flags", default="", type=str.split)
    options = parser.parse_args()
    print("| network | CPU | alone ms | variant ms | ratio [range] | error |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for folder in options.folders:
            compare(options, folder, scratch)


if __name__ == "__main__":
    main()
