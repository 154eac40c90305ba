#!/usr/bin/env python3
"""Fails if a C or C++ file of the repository is not as clang-format writes it, or has a comment wider than the column
limit: clang-format leaves those as they are.

    check_format.py CLANG_FORMAT ROOT
"""
import os
import re
import subprocess
import sys

FOLDERS = ["compiler", "runtime", "include", "tools", "tests", "cmake", "models"]
# Files that Firn itself writes.
GENERATED = ("tests/artifact/golden/",)


def wide_comments(path, limit):
    """Lines with a comment that go beyond the limit, outside raw strings."""
    text = open(path, encoding="utf-8").read()
    text = re.sub(r'R"\(.*?\)"', lambda raw: "\n" * raw[0].count("\n"), text, flags=re.S)
    return [number for number, line in enumerate(text.split("\n"), 1) if len(line) > limit and "//" in line]


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
    limit = int(re.search(r"^ColumnLimit: (\d+)$", open(".clang-format").read(), re.M)[1])
    wide = [f"{path}:{number}" for path in files for number in wide_comments(path, limit)]
    for where in wide:
        print(f"{where}: comment is wider than {limit} columns")
    print(f"{len(files)} files, {len(wrong)} not formatted, {len(wide)} wide comments")
    sys.exit(1 if done.returncode != 0 or wide or not files else 0)


main()
