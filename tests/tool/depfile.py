#!/usr/bin/env python3
"""Make and Ninja read from a dependency file exactly the files that a compilation read, whatever they are called; names
that would be read as something else are refused."""
import os
import shutil
import subprocess

from tool import FIRN, check, expect, finish, temporary_folder, write_model

from model_writer import external, node, tensor, value

# Names of external data, all fit for both.
GOOD = ["plain.bin", "two words.bin", " lead.bin", "a:b.bin", "a%b.bin", "a#b.bin", "a$b.bin", "$(shell touch pwned).bin", "a\\b.bin",
        "a\\ b.bin", "a$$b.bin", "~a.bin", "a(b).bin", "a,b.bin", "ä.bin", "100% of #1 for $2: no\\ne.bin"]
CONTROL = ["a\nall: ; touch pwned\n.bin", "a\tb.bin", "a\rb.bin", "a\x1bb.bin", "a\x7fb.bin", "a\x01b"]
UNFIT = ["a;touch pwned;.bin", "a|b.bin", "a\\:b.bin", "a\\#b.bin", "a\\", "a:"]


def model_with(path, data):
    """y = x + w with w in the file `data`."""
    with open(os.path.join(os.path.dirname(path), data), "wb") as file:
        file.write(bytes(4))
    return write_model(path, [node("Add", ["x", "w"], ["y"])], [value("x", [1])], [value("y", [1])], [tensor("w", [1], extra=external(data))])


def touch(path, seconds):
    os.utime(path, (seconds, seconds))


def is_read_by_make(data):
    """Newer data makes the object old, and nothing else happens."""
    with open("Makefile", "w") as file:
        file.write("default: net.o\ninclude net.d\n")
    for name in ("net.o", "net.h", "net.json"):
        touch(name, 2000)
    touch("net.onnx", 1000)
    touch(data, 1000)
    current = subprocess.run(["make", "-rRq", "net.o"], capture_output=True, text=True)
    touch(data, 3000)
    old = subprocess.run(["make", "-rRdn", "net.o"], capture_output=True, text=True)
    is_newer = any("is newer than target" in line and os.path.basename(data) in line for line in old.stdout.splitlines())
    return current.returncode == 0 and is_newer, current.stderr + old.stderr


def is_read_by_ninja(data):
    with open("build.ninja", "w") as file:
        file.write(f"rule firn\n command = {FIRN.replace(' ', '$ ')} compile net.onnx -o net -q --depfile net.d && echo x >> count\n depfile = net.d\n deps = gcc\n"
                   "build net.o net.h net.json: firn net.onnx\n")
    touch(data, 1000)
    runs = []
    for step in range(3):
        if step == 2:
            os.utime(data)
        done = subprocess.run(["ninja"], capture_output=True, text=True)
        runs.append(len(open("count").read().split()) if os.path.exists("count") else 0)
    return runs == [1, 1, 2], f"{runs} {done.stdout}"


def in_fresh_folder(folder, work):
    os.chdir(folder)
    where = os.path.join(folder, "case")
    shutil.rmtree(where, ignore_errors=True)
    os.mkdir(where)
    os.chdir(where)
    work(where)
    check("pwned" not in os.listdir(where), "a command of the model's was run")


def check_good(data):
    def work(where):
        model_with(os.path.join(where, "net.onnx"), data)
        expect(["compile", "net.onnx", "-o", "net", "-q", "--depfile", "net.d"], 0)
        for tool, reads in (("make", is_read_by_make), ("ninja", is_read_by_ninja)):
            if shutil.which(tool):
                good, said = reads(data)
                check(good, f"{tool} does not read {data!r}: {said}")
    return work


def check_refused(data, code, text):
    def work(where):
        try:
            model_with(os.path.join(where, "net.onnx"), data)
        except OSError:
            return
        expect(["compile", "net.onnx", "-o", "net", "-q", "--depfile", "net.d"], code, text)
        check(sorted(os.listdir(where)) == sorted(["net.onnx", data]), f"{data!r} left {os.listdir(where)}")
    return work


def check_targets(folder):
    """Names of outputs are escaped as those of inputs are."""
    def work(where):
        model = model_with(os.path.join(where, "net.onnx"), "w.bin")
        for stem in ("a b", "a%b", "a:b", "a#b", "a$b"):
            expect(["compile", model, "-o", stem, "-q", "--depfile", "net.d"], 0)
            if not shutil.which("make"):
                continue
            with open("Makefile", "w") as file:
                file.write("include net.d\n")
            for name in os.listdir(where):
                touch(name, 1000)
            done = subprocess.run(["make", "-rR", "-q", stem + ".o"], capture_output=True, text=True)
            touch("w.bin", 3000)
            old = subprocess.run(["make", "-rRdn", stem + ".o"], capture_output=True, text=True)
            check(done.returncode == 0 and "w.bin' is newer than target" in old.stdout, f"make does not know the target {stem!r}: {done.stderr}{old.stderr}")
        expect(["compile", model, "-o", "a\nb", "-q", "--depfile", "net.d"], 2, "a dependency file cannot name")
    in_fresh_folder(folder, work)


def main():
    with temporary_folder() as folder:
        for data in GOOD:
            in_fresh_folder(folder, check_good(data))
        for data in CONTROL:
            in_fresh_folder(folder, check_refused(data, 1, "tensor 'w': its path of external data"))
        for data in UNFIT:
            in_fresh_folder(folder, check_refused(data, 2, "a dependency file cannot name"))
        check_targets(folder)
        os.chdir("/")
    finish()


main()
