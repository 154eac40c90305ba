#!/usr/bin/env python3
"""What cannot be written is an error with exit code 2, for every verb and every kind of output; what stands where a
temporary file might go is neither followed nor overwritten."""
import os
import stat
import subprocess

from tool import DIGITS, IMAGE, MODEL, check, expect, finish, firn, temporary_folder

PRINTING = [["compile", MODEL, "-o", "net"], ["compile", MODEL, "-o", "net", "--json"], ["compile", MODEL, "-o", "net", "-q", "--report"],
            *[["compile", MODEL, "--emit=" + kind] for kind in ("graph", "kernel", "llvm", "asm", "header", "manifest")],
            ["run", MODEL, "--input", "image=" + IMAGE], ["run", MODEL, "--input", "image=" + IMAGE, "--output-dir", "out"],
            ["compile", MODEL, "-o", "net", "--report", "--depfile", "net.d"],
            ["quantize", MODEL, "--data", os.path.dirname(IMAGE), "-o", "net.onnx", "--depfile", "net.d"],
            ["reduce", MODEL, "-q", "-o", "net.onnx", "--check", "! true {}"], ["inspect", MODEL], ["inspect", MODEL, "--json"], ["opt", "graph.hlo"], ["bench", MODEL, "--seconds=0.01"],
            ["bench", MODEL, "--seconds=0.01", "--json"], ["verify", DIGITS], ["verify", DIGITS, "--json"], ["ops"], ["ops", "--json"],
            ["help"], ["help", "compile"], ["compile", "--help"], ["version"], ["--version"], ["documents", "man"]]


def check_full_disk():
    if not os.path.exists("/dev/full"):
        return
    for arguments in PRINTING:
        before = sorted(os.listdir(".")) + sorted(os.listdir("out"))
        with open("/dev/full", "w") as full:
            expect(arguments, 2, "error: cannot write to standard output: No space left on device", stdout=full)
        left = sorted(os.listdir(".")) + sorted(os.listdir("out"))
        check(left == before, f"firn {' '.join(arguments)} wrote files though it could not say so: {left}, before: {before}")
    check(os.path.exists("/dev/full") and stat.S_ISCHR(os.stat("/dev/full").st_mode), "/dev/full was replaced")
    for kind in ("asm", "graph"):
        expect(["compile", MODEL, "--emit=" + kind, "-o", "/dev/full"], 2, "cannot write '/dev/full': No space left on device")
    done = firn("compile", MODEL, "--emit=asm", "-o", "/dev/stdout")
    check(done.returncode == 0 and ".text" in done.stdout, "-o /dev/stdout prints nothing")


def check_closed_output():
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", os.environ["FIRN_UNDER_TEST"], "ops"], capture_output=True, text=True)
    check(done.returncode == 2 and "cannot write to standard output" in done.stderr, f"a closed output passes: {done}")


def check_planted_links():
    """Links under the names that could be guessed, and under the final names."""
    with open("victim", "w") as file:
        file.write("untouched")
    names = ["net.o", "net.h", "net.json", "net.d"]
    for name in names:
        if os.path.exists(name):
            os.remove(name)
        os.symlink("victim", name)
    # A process with a known number: the shell becomes firn.
    script = 'for n in net.o net.h net.json net.d; do for k in new old; do ln -s victim .$n.firn-$$-$k; done; done; exec "$@"'
    done = subprocess.run(["sh", "-c", script, "sh", os.environ["FIRN_UNDER_TEST"], "compile", MODEL, "-o", "net", "--depfile", "net.d", "-q"],
                          capture_output=True, text=True)
    check(done.returncode == 0, f"compiling beside links failed: {done.stderr}")
    check(open("victim").read() == "untouched", "a planted link was followed")
    check(not any(os.path.islink(name) for name in names), "the files are still links")
    expect(["run", MODEL, "--input", "image=" + IMAGE, "--output-dir", "linked"], 0)
    os.remove("linked/probabilities.npy")
    os.symlink("../victim", "linked/probabilities.npy")
    expect(["run", MODEL, "--input", "image=" + IMAGE, "--output-dir", "linked"], 0)
    check(open("victim").read() == "untouched", "run followed a planted link")
    expect(["verify", DIGITS, "--list", "list", "--update-list"], 0)
    os.remove("list")
    os.symlink("victim", "list")
    expect(["verify", DIGITS, "--list", "list", "--update-list"], 0)
    check(open("victim").read() == "untouched", "verify --update-list followed a planted link")
    expect(["compile", MODEL, "--emit=graph", "--dump-passes", "dumps", "-o", "dumped.hlo"], 0)
    first = sorted(os.listdir("dumps"))[0]
    os.remove("dumps/" + first)
    os.symlink("../victim", "dumps/" + first)
    expect(["compile", MODEL, "--emit=graph", "--dump-passes", "dumps", "-o", "dumped.hlo"], 0)
    check(open("victim").read() == "untouched", "--dump-passes followed a planted link")


def check_permissions():
    before = os.umask(0o027)
    expect(["compile", MODEL, "-o", "private", "-q"], 0)
    os.umask(before)
    for name in ("private.o", "private.h", "private.json"):
        mode = stat.S_IMODE(os.stat(name).st_mode)
        check(mode == 0o640, f"{name} has the permissions {mode:o}, the mask of the process leaves 640")


def main():
    from tool import FIRN
    os.environ["FIRN_UNDER_TEST"] = FIRN
    with temporary_folder() as folder:
        os.chdir(folder)
        os.mkdir("out")
        with open("graph.hlo", "w") as file:
            file.write(firn("compile", MODEL, "--emit=graph", "--weights-out", "weights").stdout)
        PRINTING[PRINTING.index(["opt", "graph.hlo"])] += ["--weights-in", "weights"]
        check_full_disk()
        check_closed_output()
        check_planted_links()
        check_permissions()
    finish()


main()
