#!/usr/bin/env python3
"""The program that `firn bench --build` writes: for people, and for programs that tell it what to do.

    bench_program.py FIRN ROOT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

FIRN, ROOT = sys.argv[1:]
DIGITS = os.path.join(ROOT, "models", "digits")
bad = []


def check(holds, what):
    if not holds:
        bad.append(what)


def main():
    with tempfile.TemporaryDirectory() as folder:
        program, wrong = os.path.join(folder, "program"), os.path.join(folder, "wrong")

        def run(*arguments, lines=""):
            return subprocess.run([program, *arguments], input=lines, capture_output=True, text=True)

        subprocess.run([FIRN, "bench", "--build", DIGITS, "-o", program, "--threads", "2"], check=True)
        shutil.copytree(DIGITS, wrong)
        stored = os.path.join(wrong, "test_data_set_0", "output_0.pb")
        with open(stored, "rb") as file:
            data = bytearray(file.read())
        data[-1] ^= 0x40  # the exponent of the last probability
        with open(stored, "wb") as file:
            file.write(data)

        done = run("--help")
        check(done.returncode == 0 and "usage: " in done.stdout and DIGITS in done.stdout and "run S hot|cold K" in done.stdout,
              f"--help: {done}")
        for arguments in ([], [DIGITS], [DIGITS, "--threads", "1"]):
            done = run(*arguments, "--seconds", "0.01")
            check(done.returncode == 0 and "test_data_set_0" in done.stdout and "WRONG" not in done.stdout, f"{arguments}: {done}")
        done = run(wrong, "--seconds", "0.01")
        check(done.returncode == 1 and "WRONG" in done.stdout, f"a wrong output: {done}")
        done = run(wrong, "--seconds", "0.01", "--tolerance", "1e9")
        check(done.returncode == 0 and "WRONG" not in done.stdout, f"a tolerance for it: {done}")
        done = run(os.path.join(folder, "nowhere"))
        check(done.returncode == 1 and "cannot read" in done.stderr and not done.stdout, f"no folder: {done}")
        for arguments in (["--frob"], [DIGITS, "--threads"], ["--threads", "0"], ["--seconds", "soon"], [DIGITS, "some"],
                          [DIGITS, "1", "2"]):
            done = run(*arguments)
            check(done.returncode == 2 and "--help" in done.stderr and not done.stdout, f"{arguments}: {done}")

        answers = run(DIGITS, "1", lines="run 0.01 hot\nrun 0.01 cold 0\nrun 0.01 hot 7\nquit\n").stdout.splitlines()
        answers = [json.loads(line) for line in answers]
        check(len(answers) == 5 and answers[0]["ready"] and answers[0]["max_error"] < 1e-5 and answers[1]["median_ns"] > 0 and
              answers[2]["runs"] > 0 and "test_data_set_7" in answers[3]["reason"] and answers[4]["peak_rss_kib"] > 0,
              f"the protocol: {answers}")
    sys.exit("\n".join(bad) or 0)


main()
