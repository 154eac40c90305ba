#!/usr/bin/env python3
"""Fails if a page of the guide holds code that no test builds, or a link that leads nowhere.

    check_pages.py ROOT PAGE:EXAMPLE...

The arguments name the examples that have a test: they must be those of the pages. Every block says what it is (pages.py),
the README links to every page in the order of reading, links between the pages point to files and headings that exist, and
the reference tables name every keyword, status and verb.
"""
import os
import re
import sys

import pages


def anchors(text):
    """The anchors that forges give to the headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(root, page):
    text = open(os.path.join(root, page), encoding="utf-8").read()
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(root, os.path.dirname(page), path)) if path else os.path.join(root, page)
        if not os.path.exists(file):
            yield f"{page}: the link to {target} leads to no file"
        elif anchor and anchor not in anchors(open(file, encoding="utf-8").read()):
            yield f"{page}: the link to {target} leads to no heading"


def check_order(root):
    text = open(os.path.join(root, "README.md"), encoding="utf-8").read()
    places = [text.find(f"]({page})") for page in pages.PAGES[1:]]
    if -1 in places or places != sorted(places):
        yield "README.md: wanted links to " + ", ".join(pages.PAGES[1:]) + " in this order"


TABLES = [("cmake/FirnModel.cmake", r"^ +set\((?:single|multiple) ([A-Z_ \n]+)\)", "cmake/README.md"),
          ("compiler/artifact/manifest.cpp", r'\b(?:value|raw|open|objects)\((?:.., )?"(\w+)"', "tools/README.md"),
          ("include/firn/abi.h", r"^ +(FIRN_STATUS_\w+) =", "include/firn/README.md"),
          ("tools/firn/command.h", r"^void add_(?!documents)(\w+)_command\(", "tools/README.md")]


def check_tables(root):
    """Words of the sources that their page has to explain."""
    for source, pattern, page in TABLES:
        text = open(os.path.join(root, page), encoding="utf-8").read()
        words = " ".join(re.findall(pattern, open(os.path.join(root, source), encoding="utf-8").read(), re.M)).split()
        if not words:
            yield f"{source}: no words found"
        for word in words:
            if f"`{word}" not in text:
                yield f"{page}: says nothing of {word}"


def check_opsets(root):
    """One page says which opsets there are, as the loader knows them."""
    newest = re.search(r"kMaxOpset = (\d+);", open(os.path.join(root, "compiler/frontend/onnx/wire/load.h"), encoding="utf-8").read())[1]
    for page in [*pages.PAGES, "CHANGELOG.md"]:
        for told in re.findall(r"opsets 1 to (\d+)", open(os.path.join(root, page), encoding="utf-8").read()):
            if told != newest:
                yield f"{page}: says opsets 1 to {told}, and the newest is {newest}"


def check_blocks(root, tested):
    found = set()
    for page in pages.PAGES:
        blocks = pages.read_blocks(root, page)
        if not any(block.kind in ("example", "fragment") for block in blocks):
            yield f"{page}: holds no example"
        for block in blocks:
            if not block.kind:
                yield f"{page}:{block.line}: no comment says what this block is"
            if block.kind == "example":
                found.add(f"{page}:{block.name}")
    for example in sorted(found - tested):
        yield f"{example}: has no test"
    for example in sorted(tested - found):
        yield f"{example}: has a test and is not in the page"


def main():
    root, tested = sys.argv[1], set(sys.argv[2:])
    problems = [*check_blocks(root, tested), *check_order(root), *check_tables(root), *check_opsets(root)]
    for page in [*pages.PAGES, *pages.OTHER_PAGES]:
        problems += check_links(root, page)
    print("\n".join(problems) or f"{len(pages.PAGES)} pages, {len(tested)} examples")
    sys.exit(1 if problems else 0)


main()
