#!/usr/bin/env python3
"""Fails if a C or C++ file of the repository is not as clang-format writes it.

    check_format.py CLANG_FORMAT ROOT
"""
import os
import subprocess
import sys

FOLDERS = ["compiler", "runtime", "include", "tools", "tests", "cmake", "models"]
# Files that Firn itself writes.
GENERATED = ("tests/artifact/golden/",)


def main():
    clang_format, root = sys.argv[1:]
    os.chdir(root)
    files = []
    for folder in FOLDERS:
        for where, _, names in os.walk(folder):
            paths = [os.path.join(where, name) for name in sorted(names) if name.endswith((".h", ".cpp", ".c"))]
            files += [path for path in paths if not path.startswith(GENERATED)]
    done = subprocess.run([clang_format, "--dry-run", "-Werror", *files], capture_output=True, text=True)
    wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "error: code should be clang-formatted" in line})
    for name in wrong:
        print(f"{name}: run clang-format -i on it")
    print(f"{len(files)} files, {len(wrong)} not formatted")
    sys.exit(1 if done.returncode != 0 or not files else 0)


main()
