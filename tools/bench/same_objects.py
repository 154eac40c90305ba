#!/usr/bin/env python3
"""The ruler of a change that must not change code: the objects that Firn makes, measured and compared.

    same_objects.py measure FIRN OUT.json MODELS... [--few] [--jobs 2]
    same_objects.py compare OLD.json NEW.json [--times]

MODELS are folders; every model.onnx (or lone .onnx file) below them is compiled for x86-64-v3, znver4, sapphirerapids
and cortex-m4, for 1 and 8 threads, at -O3 and -Os; --few keeps to x86-64-v3 and znver4 at -O3 for 8 threads and
cortex-m4 at -Os for 1. A model that is refused counts with its exit code.

Of an object, `measure` keeps a digest of every kernel's bytes in order, with what its relocations refer to (literals
and tables by their bytes), a digest of the section of weights, and the size. Names of kernels, the entry functions and the hash in the public symbols
(which covers the kernels' text) are left out. `compare` exits with 1 where a kernel or a constant differs, or where
all objects together grew by more than 2 %; --times also compares compile times and peak memory, which say something
only when both builds were measured on an idle machine.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

X86 = ["x86-64-v3", "znver4", "sapphirerapids"]
SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHF_ALLOC, SHF_EXECINSTR = 2, 4, 8, 9, 2, 4
KERNEL = re.compile(r"firn\.k\.")


class ElfObject:
    """Sections, symbols and relocations of a little-endian ELF object of 32 or 64 bits."""

    def __init__(self, data):
        self.data, self.wide = data, data[4] == 2
        header = struct.unpack_from("<QIHHHHHH" if self.wide else "<IIHHHHHH", data, 40 if self.wide else 32)
        start, count, names = header[0], header[6], header[7]
        shape, size = ("<IIQQQQIIQQ", 64) if self.wide else ("<10I", 40)
        rows = [struct.unpack_from(shape, data, start + i * size) for i in range(count)]
        keys = ("name", "type", "flags", "address", "offset", "size", "link", "info", "align", "entry")
        self.sections = [dict(zip(keys, row)) for row in rows]
        for section in self.sections:
            section["name"] = self.text(self.sections[names], section["name"])
        self.symbols = []
        for section in self.sections:
            if section["type"] == SHT_SYMTAB:
                self.symbols = self.read_symbols(section)

    def text(self, table, at):
        start = table["offset"] + at
        return self.data[start:self.data.index(b"\0", start)].decode()

    def bytes_of(self, section):
        return b"" if section["type"] == SHT_NOBITS else self.data[section["offset"]:section["offset"] + section["size"]]

    def read_symbols(self, table):
        symbols = []
        for at in range(table["offset"], table["offset"] + table["size"], table["entry"]):
            if self.wide:
                name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            else:
                name, value, size, info, _, section = struct.unpack_from("<IIIBBH", self.data, at)
            symbols.append({"name": self.text(self.sections[table["link"]], name), "type": info & 15,
                            "section": section, "value": value, "size": size})
        return symbols

    def relocations(self, section_index):
        """(offset, kind, symbol, addend) of the relocations of a section."""
        found = []
        for table in self.sections:
            if table["type"] not in (SHT_RELA, SHT_REL) or table["info"] != section_index:
                continue
            with_addend = table["type"] == SHT_RELA
            shape = ("<QQ" if self.wide else "<II") + (("q" if self.wide else "i") if with_addend else "")
            for at in range(table["offset"], table["offset"] + table["size"], table["entry"]):
                row = struct.unpack_from(shape, self.data, at)
                shift = 32 if self.wide else 8
                found.append((row[0], row[1] & ((1 << shift) - 1), self.symbols[row[1] >> shift],
                              row[2] if with_addend else 0))
        return sorted(found, key=lambda row: row[:2])

    def target(self, symbol):
        """What a relocation refers to, without the name: the literal itself where it has its place in a merged section."""
        if KERNEL.match(symbol["name"]):
            return "kernel"
        if 0 < symbol["section"] < len(self.sections):
            section = self.sections[symbol["section"]]
            if section["name"].startswith(".rodata.cst"):
                return self.bytes_of(section)[symbol["value"]:symbol["value"] + section["entry"]].hex()
            if symbol["size"] and section["size"] < 1 << 16:
                return self.bytes_of(section)[symbol["value"]:symbol["value"] + symbol["size"]].hex()
            return section["name"].split(".firn.")[0]
        return symbol["name"]


def measure_object(path):
    with open(path, "rb") as file:
        elf = ElfObject(file.read())
    kernels = []
    for symbol in elf.symbols:
        if symbol["type"] == 2 and KERNEL.match(symbol["name"]):
            start = symbol["value"] & ~(1 if not elf.wide else 0)  # Thumb functions have odd addresses
            kernels.append((symbol["section"], start, symbol["size"]))
    by_section = {index: elf.relocations(index) for index in {kernel[0] for kernel in kernels}}
    digests = []
    for index, start, size in sorted(kernels):
        digest = hashlib.sha256(elf.bytes_of(elf.sections[index])[start:start + size])
        for offset, kind, symbol, addend in by_section[index]:
            if start <= offset < start + size:
                digest.update(f"{offset - start} {kind} {elf.target(symbol)} {addend}".encode())
        digests.append(digest.hexdigest()[:16])
    constants = {}
    for section in elf.sections:
        if section["flags"] & SHF_ALLOC and not section["flags"] & SHF_EXECINSTR and section["size"]:
            if ".firn." in section["name"]:
                digest = hashlib.sha256(elf.bytes_of(section)).hexdigest()[:16]
                constants.setdefault(section["name"].split(".firn.")[0], []).append(digest)
    return {"exit": 0, "kernels": digests, "constants": constants, "bytes": os.path.getsize(path)}


def measure(firn, model, flags):
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "model")
        command = [firn, "compile", model, "-o", out, "-q", *flags]
        start = time.time()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds, code = time.time() - start, os.waitstatus_to_exitcode(status)
        found = measure_object(out + ".o") if code == 0 else {"exit": code}
        found.update(seconds=seconds, cpu_seconds=usage.ru_utime + usage.ru_stime, peak_kb=usage.ru_maxrss)
        return found


def cases(folders, few):
    models = set()
    for folder in folders:
        for place, _, files in os.walk(folder):
            models.update(os.path.join(place, name) for name in files if name.endswith(".onnx"))
    for model in sorted(models):
        for cpu in X86 + ["cortex-m4"]:
            for threads in ("1", "8"):
                for level in ("-O3", "-Os"):
                    small = cpu == "cortex-m4"
                    if small and threads != "1":
                        continue
                    kept = (level == "-Os") if small else (threads == "8" and level == "-O3" and cpu != X86[2])
                    if few and not kept:
                        continue
                    flags = ["-mcpu=" + cpu, "--threads", threads, level]
                    yield model, flags + (["--target", "arm-none-eabi"] if small else [])


def run_measure(options):
    found = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {pool.submit(measure, options.firn, model, flags): f"{model} {' '.join(flags)}"
                   for model, flags in cases(options.models, options.few)}
        for done, future in enumerate(concurrent.futures.as_completed(waiting), 1):
            found[waiting[future]] = future.result()
            if done % 50 == 0:
                print(f"{done} of {len(waiting)}", file=sys.stderr, flush=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=0, sort_keys=True)
    refused = sum(case["exit"] != 0 for case in found.values())
    print(f"{len(found)} objects, {refused} refused")
    return 0


def difference(old, new):
    """What differs, in words; empty where nothing does."""
    if old["exit"] != new["exit"]:
        return f"exit code {old['exit']} is now {new['exit']}"
    if old["exit"]:
        return ""
    if len(old["kernels"]) != len(new["kernels"]):
        return f"{len(old['kernels'])} kernels are now {len(new['kernels'])}"
    changed = [i for i, pair in enumerate(zip(old["kernels"], new["kernels"])) if pair[0] != pair[1]]
    if changed:
        return f"{len(changed)} of {len(old['kernels'])} kernels differ, first kernel {changed[0]}"
    sections = [name for name in sorted(set(old["constants"]) | set(new["constants"]))
                if old["constants"].get(name) != new["constants"].get(name)]
    return f"constants differ in {', '.join(sections)}" if sections else ""


def run_compare(options):
    with open(options.old, encoding="utf-8") as old_file, open(options.new, encoding="utf-8") as new_file:
        old, new = json.load(old_file), json.load(new_file)
    both = sorted(set(old) & set(new))
    different = [(name, text) for name in both if (text := difference(old[name], new[name]))]
    for name, text in different:
        print(f"{name}: {text}")
    sizes = [sum(cases[name].get("bytes", 0) for name in both) for cases in (old, new)]
    print(f"{len(both)} objects in both, {len(different)} differ; bytes {sizes[0]:,} -> {sizes[1]:,} "
          f"({100 * (sizes[1] / max(sizes[0], 1) - 1):+.2f} %)")
    if options.times:
        for figure in ("cpu_seconds", "peak_kb"):
            ratios = [new[name][figure] / old[name][figure] for name in both if old[name]["exit"] == 0]
            total = [sum(cases[name][figure] for name in both) for cases in (old, new)]
            print(f"{figure}: median ratio {statistics.median(ratios):.3f}, of the sums {total[1] / total[0]:.3f}")
    return 1 if different or not both or sizes[1] > 1.02 * sizes[0] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("measure", help="compile all models and keep digests of their objects")
    verb.add_argument("firn")
    verb.add_argument("out")
    verb.add_argument("models", nargs="+", help="folders with models")
    verb.add_argument("--few", action="store_true", help="three option sets in place of fourteen")
    verb.add_argument("--jobs", type=int, default=2)
    verb.set_defaults(run=run_measure)
    verb = verbs.add_parser("compare", help="exit with 1 where kernels or constants differ")
    verb.add_argument("old")
    verb.add_argument("new")
    verb.add_argument("--times", action="store_true", help="compile times and peak memory, too")
    verb.set_defaults(run=run_compare)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
