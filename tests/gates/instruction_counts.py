#!/usr/bin/env python3
"""Instructions of one run of small networks, counted by callgrind, against the counts recorded here.

  instruction_counts.py FIRN --data DIR [--update]

Builds each network for x86-64-v3 and runs it once under valgrind. Fails when a count is more than 2 % off the recorded
one, in either direction: a network that got better is recorded anew with --update. Exit code 77: skipped, valgrind or a
network is absent.
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "instruction_counts.txt")
DIGITS = os.path.join(HERE, "../../models/digits")
NETWORKS = ["digits", "mnist_8", "micro_kws_m_fp32", "dtln_model_1", "silero_vad_16k_op15"]
TOLERANCE = 0.02
HEADER = """# Instructions of one run() on x86-64-v3, as callgrind counts them. Written by
#   tests/gates/instruction_counts.py build/release/tools/firn/firn --data $FIRN_TEST_DATA --update
"""


def count(firn, network, folder):
    """Instructions below the run symbol."""
    worker = os.path.join(folder, "worker")
    subprocess.run([firn, "bench", "--build", network, "-o", worker, "-mcpu=x86-64-v3"], check=True)
    # The worker runs every stored data set once before it reads commands.
    ran = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/profile",
                          "--toggle-collect=*_model_run_abi*", worker, network, "1"],
                         input="quit\n", capture_output=True, text=True)
    collected = re.search(r"Collected : (\d+)", ran.stderr)
    if '"ready": true' not in ran.stdout or not collected:
        sys.exit(f"{network}: the worker failed under valgrind:\n{ran.stdout}{ran.stderr}")
    return int(collected.group(1)) // max(1, len(glob.glob(os.path.join(network, "test_data_set_*"))))


def recorded():
    if not os.path.exists(RECORD):
        return {}
    with open(RECORD) as lines:
        return {name: int(number) for name, number in (line.split() for line in lines if line.strip() and line[0] != "#")}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("firn")
    parser.add_argument("--data", default=os.environ.get("FIRN_TEST_DATA", ""))
    parser.add_argument("--update", action="store_true", help="record what is counted now")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return 77
    want, got, off, absent = recorded(), {}, [], []
    for name in NETWORKS:
        network = DIGITS if name == "digits" else os.path.join(arguments.data, "models", name)
        if not glob.glob(os.path.join(network, "model.onnx")):
            absent.append(name)
            continue
        with tempfile.TemporaryDirectory() as folder:
            got[name] = count(arguments.firn, network, folder)
        before = want.get(name)
        change = (got[name] / before - 1) * 100 if before else 0
        print(f"{name:24} {got[name]:12} {'recorded ' + str(before) if before else 'not recorded'} {change:+.2f} %")
        if not before or abs(change) > TOLERANCE * 100:
            off.append(f"{name} got {'worse' if change > 0 else 'better'}" if before else f"{name} is not recorded")
    if arguments.update:
        if absent:
            sys.exit("not written, these networks are absent (--data): " + ", ".join(absent))
        with open(RECORD, "w") as file:
            file.write(HEADER + "".join(f"{name:24} {number:12}\n" for name, number in got.items()))
        return 0
    if off:
        print("; ".join(off) + f": if that is meant, run {os.path.relpath(__file__)} with --update")
        return 1
    if absent:
        print("skipped, these networks are absent (FIRN_TEST_DATA): " + ", ".join(absent))
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
