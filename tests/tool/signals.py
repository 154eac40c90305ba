#!/usr/bin/env python3
"""A compilation that a signal ends, at whatever moment, leaves all of its outputs or none, and neither files beside them nor temporary folders."""
import os
import signal
import subprocess
import time

from tool import DIGITS, FIRN, IMAGE, MODEL, check, finish, temporary_folder


def entries(folder):
    return sorted(os.path.relpath(os.path.join(where, name), folder) for where, folders, files in os.walk(folder) for name in files + folders)


def seconds_of(command, environment):
    start = time.monotonic()
    subprocess.run(command, env=environment, capture_output=True, timeout=120)
    return time.monotonic() - start


def main():
    with temporary_folder() as folder:
        os.mkdir(os.path.join(folder, "tmp"))
        os.mkdir(os.path.join(folder, "out"))
        environment = {**os.environ, "TMPDIR": os.path.join(folder, "tmp")}
        commands = {"compile": [FIRN, "compile", MODEL, "-q", "-o", os.path.join(folder, "out", "net")],
                    "run": [FIRN, "run", MODEL, "--input", "image=" + IMAGE], "verify": [FIRN, "verify", DIGITS],
                    "bench": [FIRN, "bench", "--build", DIGITS, "-o", os.path.join(folder, "out", "worker")]}
        for name, command in commands.items():
            whole, ended = seconds_of(command, environment), 0
            allowed = (["out", "tmp"], entries(folder))  # none of the outputs, or all
            for file in os.listdir(os.path.join(folder, "out")):
                os.remove(os.path.join(folder, "out", file))
            steps = {"compile": 9, "bench": 3}.get(name, 4)
            for step in range(steps):
                for number in (signal.SIGTERM,) if step % 3 else (signal.SIGINT, signal.SIGHUP):
                    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(whole * (step + 0.5) / steps)
                    process.send_signal(number)
                    ended += process.wait(timeout=60) == -number
                    deadline = time.monotonic() + 5  # children that were told to end too
                    while entries(folder) not in allowed and time.monotonic() < deadline and process.returncode:
                        time.sleep(0.02)
                    if process.returncode:
                        check(entries(folder) in allowed, f"{name} after signal {number} at step {step}: {entries(folder)}")
                    for file in os.listdir(os.path.join(folder, "out")):
                        os.remove(os.path.join(folder, "out", file))
            check(ended > 0, f"{name}: no signal arrived before the end")
    finish()


main()
