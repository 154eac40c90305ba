"""Reads the pages of the guide: their fenced blocks, and what the comment above each says that it is.

    <!-- example NAME: FILE -->      the block is this file of the example
    <!-- example NAME: shell -->     commands after "$ ", run in the example's folder, and what they print
    <!-- fragment FRAME -->          a part of a program: stands in for the mark of frames/FRAME.cpp (or .c)
    <!-- not run: REASON -->         neither built nor run
"""
import dataclasses
import os
import re

PAGES = ["README.md", "models/README.md", "cmake/README.md", "include/firn/README.md", "models/training.md",
         "models/microcontrollers.md", "tools/README.md", "runtime/README.md", "tools/jit/README.md", "tools/python/README.md", "tools/internals.md"]
# Pages for those who change Firn: their links are checked, and no block of theirs is run.
OTHER_PAGES = ["CONTRIBUTING.md", "CHANGELOG.md", "compiler/README.md"]


@dataclasses.dataclass
class Block:
    page: str
    line: int  # of its first line of text
    language: str
    text: str
    kind: str = ""  # example, fragment, not run, or nothing
    name: str = ""  # of the example or frame; the reason why it is not run
    file: str = ""  # of the example


def read_comment(line, block):
    for kind, pattern in (("example", r"<!-- example ([\w-]+): (\S+) -->"), ("fragment", r"<!-- fragment (\w+) -->"),
                          ("not run", r"<!-- not run: (.+) -->")):
        match = re.fullmatch(pattern, line)
        if match:
            block.kind, block.name = kind, match[1]
            block.file = match[2] if kind == "example" else ""


def read_blocks(root, page):
    """The blocks of a page, in order."""
    lines = open(os.path.join(root, page), encoding="utf-8").read().split("\n")
    blocks, inside = [], None
    for number, line in enumerate(lines, 1):
        if inside is None and line.startswith("```"):
            inside = Block(page, number + 1, line[3:].strip(), "")
            read_comment(lines[number - 2] if number > 1 else "", inside)
        elif inside is not None and line == "```":
            blocks.append(inside)
            inside = None
        elif inside is not None:
            inside.text += line + "\n"
    if inside is not None:
        raise SystemExit(f"{page}:{inside.line}: the block does not end")
    return blocks
