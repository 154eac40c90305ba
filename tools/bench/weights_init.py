#!/usr/bin/env python3
"""What it costs that a program may change the weights: objects with --weights=init beside such that embed them.

    weights_init.py FIRN FOLDER... [--rounds 7] [--block 0.5] [--flags ...]

FOLDER has model.onnx and test_data_set_0, as `firn bench --build` wants it. The programs run in turns, a block of
seconds each; a line gives medians, and the median of the ratios between neighbouring blocks: with the weights
that Winograd's algorithm depends on kept as they are, and with --no-winograd, where all may change.
"""
import argparse
import os
import statistics
import tempfile

from variants import Worker

KINDS = {"embed": [], "init": ["--weights=init"], "free": ["--weights=init", "--no-winograd"]}


def compare(options, folder, scratch):
    workers = {kind: Worker(options.firn, folder, os.path.join(scratch, kind), [*flags, *options.flags])
               for kind, flags in KINDS.items()}
    rounds = [{kind: worker.run(options.block) for kind, worker in workers.items()} for _ in range(options.rounds)]
    for worker in workers.values():
        worker.quit()
    times = " | ".join(f"{statistics.median(each[kind] for each in rounds):.4g}" for kind in KINDS)
    ratios = " | ".join(f"{statistics.median(each[kind] / each['embed'] for each in rounds):.3f}"
                        for kind in ("init", "free"))
    print(f"| {os.path.basename(os.path.normpath(folder))} | {times} | {ratios} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("firn")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--block", type=float, default=0.5, help="seconds")
    parser.add_argument("--flags", nargs=argparse.REMAINDER, default=[], help="more, for all objects")
    options = parser.parse_args()
    print("| network | embed, ms | init, ms | init without Winograd, ms | init / embed | without Winograd / embed |")
    print("|---|---|---|---|---|---|")
    for folder in options.folders:
        with tempfile.TemporaryDirectory() as scratch:
            compare(options, folder, scratch)


if __name__ == "__main__":
    main()
