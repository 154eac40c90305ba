#!/usr/bin/env python3
"""Fails on comments that cannot be read alone.

    check_comments.py ROOT [FOLDER...]

A comment is a sentence with a subject and a verb, or a noun phrase that names the thing itself. One that begins with
"Of", "What", "The same", "Where", "As" or "Those" leans on the line before it; CONTRIBUTING.md shows how to write it.
FOLDERs below ROOT are looked at: compiler, runtime, include, tools and tests without any.
"""
import os
import re
import sys

LEANING = re.compile(r"(Of|What|The same|Where|As|Those)\b", re.IGNORECASE)
FOLDERS = ["compiler", "runtime", "include", "tools", "tests"]
SOURCES = (".h", ".cpp", ".c", ".def")


def comments(lines):
    """(line number, text) of every comment: lines in a row are one comment, one behind code is its own."""
    start, text = 0, ""
    for number, line in enumerate(lines + [""], 1):
        whole = re.match(r"\s*//+ ?(.*)", line)
        if whole:
            start, text = (start, f"{text} {whole[1]}") if text else (number, whole[1])
            continue
        if text:
            yield start, text
            text = ""
        code = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'', "", line)
        if "//" in code:
            yield number, code.split("//", 1)[1].strip()


def leaning(root, folders):
    for folder in folders:
        for where, below, names in os.walk(os.path.join(root, folder)):
            below.sort()
            for name in sorted(names):
                if name.endswith(SOURCES):
                    path = os.path.join(where, name)
                    with open(path, encoding="utf-8") as file:
                        for number, text in comments(file.read().split("\n")):
                            if LEANING.match(text):
                                yield f"{os.path.relpath(path, root)}:{number}: {text[:90]}"


if __name__ == "__main__":
    found = list(leaning(sys.argv[1], sys.argv[2:] or FOLDERS))
    print("\n".join(found) or "every comment stands alone")
    sys.exit(1 if found else 0)
