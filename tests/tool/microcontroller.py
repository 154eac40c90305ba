#!/usr/bin/env python3
"""The script that counts instructions, flash and RAM of a model on an emulated Cortex-M.

    microcontroller.py FIRN ROOT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

FIRN, ROOT = sys.argv[1:]
SCRIPT = os.path.join(ROOT, "tools", "bench", "microcontroller.py")
DIGITS = os.path.join(ROOT, "models", "digits", "model.onnx")
bad = []


def check(holds, what):
    if not holds:
        bad.append(what)


def count(*arguments, **options):
    return subprocess.run([sys.executable, SCRIPT, FIRN, *arguments], capture_output=True, text=True, **options)


if not all(shutil.which(tool) for tool in ("arm-none-eabi-g++", "qemu-system-arm")):
    print("SKIPPED: arm-none-eabi-g++ and qemu-system-arm are not installed")
    sys.exit(0)

done = count(DIGITS, "--cpu", "cortex-m4,cortex-m33", "--json")
rows = [json.loads(line) for line in done.stdout.splitlines()]
check(done.returncode == 0 and [row["cpu"] for row in rows] == ["cortex-m4", "cortex-m33"], f"two CPUs: {done.stdout}{done.stderr}")
again = count(DIGITS, "--json")
check(again.stdout and json.loads(again.stdout) == rows[0], "a second count gives the same")
for row in rows:
    # The network multiplies 0.1 million times, and its weights are most of the flash.
    check(100_000 < row["instructions"] < 1_000_000, f"{row['cpu']}: {row['instructions']} instructions")
    check(sum(row["kernels"].values()) - 100 < row["instructions"] <= sum(row["kernels"].values()), f"{row['cpu']}: functions add up")
    check(row["weights"] < row["flash"] < row["weights"] + 16384, f"{row['cpu']}: {row['flash']} bytes of flash")
    check(0 < row["stack"] < 2048 and row["stack"] < row["ram"] < 32768, f"{row['cpu']}: {row['ram']} bytes of RAM")
text = count(DIGITS, "--kernels", "1", "--", "-Os")
check(text.returncode == 0 and "instructions, flash " in text.stdout and "%  " in text.stdout, f"as text: {text.stdout}{text.stderr}")
check(count(DIGITS, "--cpu", "cortex-m1").returncode == 2, "an unknown CPU is a usage error")
check(count(os.path.join(ROOT, "none.onnx")).returncode == 1, "a model that is not there fails")
with tempfile.TemporaryDirectory() as empty:
    missing = count(DIGITS, env={**os.environ, "PATH": empty})
    check(missing.returncode == 2 and "is not installed" in missing.stderr, f"a missing tool is named: {missing.stderr}")
print("\n".join(bad))
sys.exit(1 if bad else 0)
