#!/usr/bin/env python3
"""Messages name the file and the way out; exit codes tell whose fault it is; --json prints nothing but JSON."""
import json
import math
import os
import pty
import select
import struct
import subprocess
import time

from tool import (DIGITS, FIRN, IMAGE, MODEL, attribute, check, counted_model, expect, finish, firn, node, num, shapeless_model, symbolic_model, temporary_folder, tensor,
                  value, write_model)
from model_writer import external


def check_custom_op_help():
    """Its example is C, and the signature that it tells is that of the example."""
    text = expect(["help", "custom-op"], 0, "int32_t NAME(const firn_custom_call* call);").stdout
    lines = text.split("\n")
    begin = next(i for i, line in enumerate(lines) if line.startswith("scale.c"))
    end = next(i for i in range(begin, len(lines)) if lines[i] == "  }")
    code = "\n".join(line[2:] for line in lines[begin + 2:end + 1]) + "\n"
    include = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include")
    for flags in (["-x", "c", "-std=c11"], ["-x", "c++", "-std=c++17"]):
        done = subprocess.run(["cc", *flags, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", include, "-"], input=code,
                              text=True, capture_output=True)
        check(done.returncode == 0, f"the example of help custom-op is wrong: {done.stderr}")


def check_plans_help():
    """Every algorithm and the version of databases; lines fit a terminal."""
    text = expect(["help", "plans"], 0, "firn-schedules 1", "planar|polyphase|direct [mac", "rest_splits N,N,...", "top_k [sorts|selects lanes N [held N] [vectors N]]",
                  "fused_spatial_sum").stdout
    check(all(len(line) <= 122 for line in text.split("\n")), text)
    check("firn help plans" in firn("--help").stdout, "firn --help does not tell of help plans")


def check_verbs():
    expect(["frobnicate"], 2, "firn: error: there is no verb 'frobnicate'", "verbs: compile run inspect opt quantize train bench verify ops gradcheck reduce help version")
    expect(["compil"], 2, "did you mean 'compile'?")
    expect([], 2, "verbs: compile ")
    expect(["compile", MODEL, "--exernal", "x"], 2, "there is no option '--exernal', did you mean '--external'?", "firn help compile")
    expect(["--frobnicate"], 2, "there is no option '--frobnicate'")
    expect(["compile"], 2, "model is required")
    for verb in ("compile", "run", "inspect", "opt", "quantize", "bench", "verify", "ops", "gradcheck", "reduce", "version"):
        done = expect(["help", verb], 0, "Usage: firn " + verb)
        check(done.stdout == firn(verb, "--help").stdout, f"help {verb} and {verb} --help differ")
        check(f"  {verb} " in firn("help").stdout, f"firn help does not list {verb}")
    check_custom_op_help()
    check_plans_help()
    expect(["help", "nothing"], 2, "there is no verb 'nothing'")
    check(firn("version").stdout == firn("--version").stdout != "", "version and --version differ")
    check("Exit codes: 0 done" in firn("help").stdout, "firn help does not tell exit codes")


def check_files(folder):
    text = os.path.join(folder, "text.onnx")
    with open(text, "w") as file:
        file.write("no model")
    for verb in ("compile", "inspect", "bench"):
        expect([verb, text], 1, f"{text}: error: not a readable ONNX file")
        expect([verb, "nowhere.onnx"], 2, "nowhere.onnx: error: cannot open 'nowhere.onnx'")
    expect(["run", text, "--input", "x=y.npy"], 1, f"{text}: error: not a readable ONNX file")
    expect(["opt", text], 1, f"{text}")
    expect(["compile", MODEL, "-mcpu=frobnicator"], 2, "firn: error: cpu 'frobnicator' is not known", "choices: native, ", "znver4")
    several = ["compile", MODEL, "-o", os.path.join(folder, "several"), "--multiversion"]
    expect([*several, "x86-64-v3,frobnicator"], 2, "cpu 'frobnicator' is not known", "choices: native, ")
    expect([*several, "x86-64-v3,x86-64-v3"], 2, "x86-64-v3 and x86-64-v3 ask for the same features")
    expect([*several, "x86-64-v3,haswell"], 2, "code for the second would never be chosen")
    expect([*several, "x86-64-v3,cortex-m4"], 2, "one object has code for one platform: x86-64-v3 is of ")
    expect([*several, "x86-64-v3,,x86-64-v2"], 2, "wants CPUs apart by commas")
    expect([*several, "x86-64-v3,x86-64-v2", "-mcpu=native"], 2, "--mcpu excludes --multiversion")
    expect([*several, "armv8-a,armv8.2-a+dotprod"], 0, "compiled for armv8.2-a+dotprod, armv8-a")
    expect([*several, "x86-64-v2+avx,x86-64-v2", "--report"], 0, "reads the weights in the form that others do")
    expect(["run", MODEL, "--input", "image=" + IMAGE, "--multiversion", "x86-64-v3,x86-64-v2", "--variant", "x86-64"], 2, "'x86-64' is none of x86-64-v3, x86-64-v2")
    expect(["run", MODEL, "--input", "image=" + IMAGE, "--variant", "x86-64"], 2, "--multiversion")


def check_dims(folder):
    symbolic, counted, shapeless = symbolic_model(folder), counted_model(folder), shapeless_model(folder)
    flags = "symbolic dims have no value: 'batch', 'height'; give each one: --dim batch=1 --dim height=…"
    for verb in ("compile", "bench"):
        expect([verb, symbolic], 2, f"{symbolic}: error: {flags}")
    expect(["compile", symbolic, "--dim", "height=4"], 2, "no value: 'batch'; give each one: --dim batch=1\n")
    expect(["compile", symbolic, "--emit=graph"], 0, "batch,3,height")
    expect(["compile", symbolic, "--dim", "batch=1..4", "--dim", "height=2*batch", "--emit=graph"], 0, "f32[batch,3,2*batch]")
    expect(["compile", symbolic, "--dim", "batch=1..4", "--dim", "width=batch"], 2, "the model has no symbolic dim 'width'")
    expect(["compile", symbolic, "--dim", "batch=1..4", "--dim", "height=width"], 2, "symbolic dims have no value: 'width'")
    for one in ("batch=2..2", "batch=2"):
        fixed = ["compile", symbolic, "--dim", one, "--dim", "height=1..4", "-o", os.path.join(folder, "fixed")]
        expect([*fixed, "--hot", "batch=2,height=4"], 0)
        expect([*fixed, "--hot", "batch=1"], 2, "--hot batch=1: 1 is not among the values that --dim gives 'batch'")
    expect(["compile", symbolic, "--shape", "x=2x3x4", "-o", os.path.join(folder, "out/")], 2, "No such file")
    done = expect(["compile", counted], 3, "depends on data")
    check("--dim" not in done.stderr, "an option is proposed for a count: " + done.stderr)
    proposal = expect(["compile", shapeless], 1, "has no shape; give one, such as --shape x=1x3x224x224")
    check(proposal.returncode == 1, "a model without a shape is refused")
    expect(["compile", shapeless, "--shape", "x=2x3", "--emit=header"], 0, "f32[2,3]")


def check_named_shapes(folder):
    """Words of --shape that are no numbers are names of dims, wherever the model has these."""
    symbolic, shapeless = symbolic_model(folder), shapeless_model(folder)
    expect(["compile", shapeless, "--shape", "x=nx3", "--dim", "n=1..4", "--emit=header"], 0, "set_n(", "f32[n,3]")
    expect(["compile", shapeless, "--shape", "x=nx3", "--emit=header"], 2, "symbolic dims have no value: 'n'; give each one: --dim n=1\n")
    expect(["compile", symbolic, "--shape", "x=nx3x4", "--dim", "n=1..4", "--emit=graph"], 0, "f32[n,3,4]")
    two = write_model(os.path.join(folder, "two.onnx"), [node("Add", ["x", "z"], ["y"])], [value("x", ["a", "b"]), value("z", ["a", 4])], [value("y", ["a", "b"])])
    expect(["compile", two, "--shape", "x=rowsx4", "--dim", "rows=1..4", "--emit=graph"], 0, "%x: f32[rows,4], %z: f32[rows,4]")
    expect(["compile", two, "--shape", "x=2xn", "--dim", "n=4", "--emit=graph"], 0, "%x: f32[2,4], %z: f32[2,4]")
    for shape, said in (("x=nx4x3", "dim 1 cannot be 4"), ("x=nx3", "has rank 3, the shape given has 2"), ("zz=nx3", "has no input 'zz'"),
                        ("x=n-x3", "is no shape such as 1x3x224x224, or nx3x224x224 with names for dims")):
        expect(["compile", symbolic, "--shape", shape, "--dim", "height=4", "--emit=graph"], 2, said)
    expect(["compile", two, "--shape", "x=nx4", "--shape", "z=mx4", "--emit=graph"], 2, "graph input 'z': dim 0 cannot be m")


def check_dim_names(folder):
    symbolic = symbolic_model(folder)
    flags = ["compile", symbolic, "--dim", "batch=1..4", "--dim", "height=4", "--emit=header"]
    text = expect([*flags, "--name", "items=batch"], 0, "set_items(").stdout
    check("set_batch" not in text and '"batch"' in text, "a renamed dim keeps its name, or loses that of the model")
    expect([*flags, "--name", "items=height"], 2, "no input or output 'height'; it has 'x', 'y', dim 'batch'")
    expect([*flags, "--name", "dims=batch"], 2, "'dims' is already taken")
    expect([*flags, "--name", "int=batch"], 2, "is a keyword")
    zero = expect(["compile", symbolic, "--dim", "batch=0", "--dim", "height=4", "-o", os.path.join(folder, "none")], 0, "warning: dim 'batch' is 0: tensors that have it hold no elements")
    check("batch=0" not in zero.stderr.replace("--dim batch=0", ""), zero.stderr)
    done = expect(["compile", symbolic, "--dim", "batch=0..4", "--dim", "height=4", "-o", os.path.join(folder, "some")], 0)
    check("warning" not in done.stderr, "a range from 0 is warned of")


def check_missing_files(folder):
    """External data that is not there is told once, with its name."""
    far = write_model(os.path.join(folder, "far.onnx"), [node("Add", ["x", "v"], ["h"]), node("Add", ["h", "w"], ["y"])], [value("x", [2])], [value("y", [2])],
                      [tensor(name, [2], extra=external("far.bin", offset=str(8 * i))) for i, name in enumerate("vw")])
    for verb in ("compile", "inspect", "bench"):
        done = expect([verb, far], 2, f"{far}: error: cannot open external data 'far.bin': No such file or directory")
        check(done.stderr.count("far.bin") == 1, f"a missing file is told more than once: {done.stderr}")
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117) + "\n"
    os.mkdir(os.path.join(folder, "samples"))
    with open(os.path.join(folder, "samples", "x.npy"), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(8))
    for arguments in (["quantize", far, "--data", os.path.join(folder, "samples")], ["reduce", far, "--check", "true {}"]):
        expect([*arguments, "-o", os.path.join(folder, "never.onnx")], 2, "cannot open external data 'far.bin': No such file or directory")
    named = write_model(os.path.join(folder, "named.onnx"), [node("Add", ["x", "v"], ["y"])], [value("x", ["n", 2])], [value("y", ["n", 2])],
                        [tensor("v", [2], extra=external("far.bin"))])
    done = expect(["inspect", named], 2, f"{named}: error: cannot open external data 'far.bin'")
    check("--dim" not in done.stderr, f"dims are asked for though a file is missing: {done.stderr}")
    with open(far, "rb") as file:
        done = expect(["compile", "-"], 2, "external data 'far.bin' of a model that has no folder: give the path of the model's file", stdin=file)
    check(done.stderr.count("far.bin") == 1, done.stderr)


def check_standard_input(folder):
    out = os.path.join(folder, "piped")

    def piped(path, arguments, code, *texts):
        with open(path, "rb") as file:
            return expect(arguments, code, *texts, stdin=file)
    piped(MODEL, ["compile", "-", "-o", out], 0, "standard input  f32[1,1,28,28] -> f32[1,10]")
    expect(["compile", MODEL, "-o", out + "2", "--class", "Piped"], 0)
    check(open(out + ".o", "rb").read() != b"", "nothing was written")
    piped(MODEL, ["inspect", "-"], 0, "it compiles for")
    piped(MODEL, ["run", "-", "--input", "image=" + IMAGE], 0, "probabilities: f32[1,10]")
    piped(MODEL, ["bench", "-", "--seconds=0.01"], 0, "ms")
    piped(MODEL, ["quantize", "-", "--data", os.path.dirname(IMAGE), "-o", out + ".onnx"], 0, "standard input -> " + out + ".onnx")
    piped(MODEL, ["reduce", "-", "-q", "-o", out + ".onnx", "--check", "! true {}"], 0, "1 of 7 nodes")
    done = piped(MODEL, ["compile", "-", "--emit=graph", "--weights-out", out + ".weights"], 0, "module @model")
    with open(out + ".hlo", "w") as file:
        file.write(done.stdout)
    piped(out + ".hlo", ["opt", "-", "--weights-in", out + ".weights"], 0, "module @model")
    piped(out + ".hlo", ["compile", "-", "--weights-in", out + ".weights", "-o", out], 0, "standard input ")
    piped(os.devnull, ["compile", "-"], 1, "standard input: error: the file is empty")
    symbolic = symbolic_model(folder)
    piped(symbolic, ["compile", "-"], 2, "standard input: error: symbolic dims have no value: 'batch', 'height'")


def check_operators(folder):
    """What may have been meant is said before operators of the program are."""
    names = {"Relu6": "did you mean 'Relu'?", "conv": "did you mean 'Conv'?", "MatMull": "did you mean 'MatMul'?", "Frobnicate": None}
    for name, meant in names.items():
        path = write_model(os.path.join(folder, "operator.onnx"), [node(name, ["x"], ["y"])], [value("x", [2])], [value("y", [2])])
        said = expect(["compile", path], 3, f"ai.onnx.{name} (opset 15)", f"--custom-op ai.onnx:{name}=symbol").stderr
        check(("did you mean" in said) == bool(meant), f"{name}: {said}")
        check(not meant or 0 < said.find(meant) < said.find("--custom-op"), f"{name}: {said}")


def check_schedules(folder):
    """Lines of a schedule database that have no effect are told."""
    lines = [line for line in expect(["compile", MODEL, "--explain", "-o", os.path.join(folder, "net")], 0).stdout.split("\n") if " => direct tile" in line]
    database = os.path.join(folder, "schedules")
    with open(database, "w") as file:
        file.write(f"firn-schedules 1\n{lines[0]}\n{lines[0]}\nznver4 nothing => direct tile 4x2\n")
    said = expect(["compile", MODEL, "--schedule-db", database, "-o", os.path.join(folder, "net")], 0).stderr
    check(f"warning: {database}:2: the kernel has another plan at {database}:3, which is taken" in said, said)
    check(f"warning: {database}:4: the model has no kernel znver4 nothing" in said and said.count("warning") == 2, said)
    check_schedule_versions(folder, lines[0])


def check_schedule_versions(folder, line):
    """What --explain prints is a database; others, and words of earlier versions, are refused."""
    database, net = os.path.join(folder, "schedules"), os.path.join(folder, "net")

    def refused(text, *said):
        with open(database, "w") as file:
            file.write(text)
        expect(["compile", MODEL, "--schedule-db", database, "-o", net], 2, *said)
    explained = expect(["compile", MODEL, "--explain", "-q", "-o", net], 0).stdout
    check(explained.startswith("firn-schedules 1\n"), explained)
    with open(database, "w") as file:
        file.write(explained)
    everything = expect(["compile", MODEL, "--explain=all", "-q", "-o", net], 0).stdout
    check(everything.count(" cycles  direct tile ") > 4 * explained.count(" cycles  direct tile ") > 0, everything)
    check(" cycles  elements lanes " in everything and len(everything) > len(explained), everything)
    expect(["compile", MODEL, "--explain=some", "-o", net], 2, "found 'some'")
    again = expect(["compile", MODEL, "--explain", "-q", "--schedule-db", database, "-o", net], 0)
    check("warning" not in again.stderr and "not possible" not in again.stdout, again.stdout + again.stderr)
    refused(f"# mine\n{line}\n", f"{database}:2: a schedule database starts with the line 'firn-schedules 1'")
    refused("firn-schedules 7\n", f"{database}:1: the schedule database is of version 7, this Firn reads version 1")
    refused("firn-schedules 1\nx => elements copies 2\n", "'copies' is called 'unroll'")


def check_systems(folder):
    done = expect(["compile", MODEL, "--target", "arm64-apple-ios-simulator", "-o", os.path.join(folder, "ios")], 0,
                  "warning: the target names no version of its system: the object is for ios14.0 and later")
    check(json.load(open(os.path.join(folder, "ios.json")))["target"]["triple"] == "arm64-apple-ios14.0-simulator", done.stderr)
    # LC_BUILD_VERSION, its size, the platform of the simulator, and 14.0.
    check(struct.pack("<4I", 0x32, 24, 7, 14 << 16) in open(os.path.join(folder, "ios.o"), "rb").read(), "the object does not tell its platform")
    done = expect(["compile", MODEL, "--target", "arm64-apple-ios15.0", "-o", os.path.join(folder, "ios")], 0)
    check("warning" not in done.stderr, done.stderr)


def check_folders(folder):
    out = os.path.join(folder, "out")
    os.mkdir(out)
    expect(["compile", MODEL, "-q", "-o", out + "/"], 0)
    check(sorted(os.listdir(out)) == ["model.h", "model.json", "model.o"], f"-o DIR/ wrote {os.listdir(out)}")
    for kind, name in (("graph", "model.hlo"), ("asm", "model.s"), ("llvm", "model.ll"), ("kernel", "model.kir")):
        expect(["compile", MODEL, "--emit=" + kind, "-o", out + "/"], 0)
        check(name in os.listdir(out), f"--emit={kind} -o DIR/ wrote {os.listdir(out)}")
    expect(["compile", MODEL, "-q", "-o", "."], 0, cwd=out)
    check(not [name for name in os.listdir(out) if name.startswith(".")], f"hidden files in {os.listdir(out)}")


def check_inspect(folder):
    symbolic, counted = symbolic_model(folder), counted_model(folder)
    line = f"once its dims have values: firn compile {symbolic} --dim batch=1 --dim height=64"
    done = expect(["inspect", symbolic], 0, "it compiles for ", line)
    check(done.stderr == "" and json.loads(firn("inspect", symbolic, "--json").stdout)["dims_wanted"] == ["batch", "height"], f"inspect: {done.stderr}")
    expect([*line.split(": ")[1].split()[1:], "-o", os.path.join(folder, "typed")], 0)
    expect(["inspect", symbolic, "--dim", "batch=2", "-Os"], 0, f"firn compile {symbolic} -Os --dim=batch=2 --dim height=64")
    # No size makes these dims fit.
    square = write_model(os.path.join(folder, "square.onnx"), [node("Concat", ["x", "x"], ["h"], attribute("axis", 2, num(3, 0))), node("Add", ["h", "w"], ["y"])],
                         [value("x", ["n", 3]), value("w", [7, 3])], [value("y", [7, 3])])
    expect(["inspect", square], 2, "it does not compile", f"{square}: error: symbolic dims have no value: 'n'")
    for path, code in ((MODEL, 0), (square, 2), (counted, 3)):
        done = expect(["inspect", path], code, "opsets", "input ", "it compiles" if code == 0 else "it does not compile")
        facts = json.loads(expect(["inspect", path, "--json"], code).stdout)
        check(facts["compiles"] == (code == 0) and bool(facts["errors"]) == (code != 0), f"inspect --json of {path}: {facts}")
        check(("error: " in done.stderr) == (code != 0), f"inspect of {path} says on standard error: {done.stderr}")


def check_verify():
    done = json.loads(expect(["verify", DIGITS, "--json"], 0).stdout)
    check((done["passed"], done["wrong"], done["refused"]) == (1, 0, 0), f"verify --json: {done}")
    case = done["cases"][0]
    check(case["name"] == "digits" and case["verdict"] == "pass", f"verify --json: {case}")
    check(0 < case["error"] < 1e-6, f"the error of digits is {case['error']}, more digits are wanted")
    wrong = json.loads(expect(["verify", DIGITS, "--json", "--tolerance=0"], 1).stdout)
    check(wrong["wrong"] == 1, f"no error is allowed, one was made: {wrong}")
    check(json.loads(expect(["verify", DIGITS, "--json", "--quiet"], 0).stdout)["cases"] == [], "--quiet prints what passes")


def check_stored(folder):
    """What is drawn is judged by its statistics, what was stored with few decimals by those."""
    def case(name, op, stored, *attributes):
        data = os.path.join(folder, name, "test_data_set_0")
        os.makedirs(data)
        dims = [len(stored)]
        write_model(os.path.join(folder, name, "model.onnx"), [node(op, ["x"], ["y"], *attributes)], [value("x", dims)], [value("y", dims)])
        for stem, elements in (("input", [0.1 * i for i in range(len(stored))]), ("output", stored)):
            with open(os.path.join(data, stem + "_0.pb"), "wb") as file:
                file.write(tensor("", dims, struct.pack(f"<{len(stored)}f", *elements)))
        return os.path.join(folder, name)
    even = [(i + 0.5) / 200 for i in range(200)]
    expect(["verify", case("drawn", "RandomUniformLike", even)], 0, "drawn", "1 passed by statistics of what they draw")
    expect(["verify", case("elsewhere", "RandomUniformLike", [0.9 + each / 10 for each in even])], 1, "1 wrong")
    expect(["verify", case("sure", "Exp", even)], 1, "1 wrong")
    rounded = case("rounded", "Tan", [round(math.tan(0.1 * i), 3) for i in range(9)])
    expect(["verify", rounded], 0, "1 passed")
    expect(["verify", rounded, "--tolerance=1e-5"], 1, "1 wrong")
    expect(["verify", case("off", "Tan", [round(math.tan(0.1 * i) + 0.002, 3) for i in range(9)])], 1, "1 wrong")


def check_cpus():
    """All verbs make code for one CPU, and say for which."""
    if os.uname().machine != "x86_64":
        return
    default = json.loads(firn("compile", MODEL, "--emit=manifest").stdout)["target"]["cpu"]
    check(default == "x86-64-v3", f"the default is {default}")
    expect(["compile", MODEL, "--emit=header"], 0, default)
    expect(["inspect", MODEL], 0, "it compiles for " + default)
    for verb, arguments in (("run", ["--input", "image=" + IMAGE]), ("bench", ["--seconds=0.01"]), ("verify", [])):
        model = DIGITS if verb == "verify" else MODEL
        expect([verb, model, *arguments], 0, f"code for {default} (the default; -mcpu=native ")
        check("default" not in firn(verb, model, *arguments, "-mcpu=native").stderr, "-mcpu=native is called the default")
        expect([verb, model, *arguments, "-mcpu=cortex-a72"], 2, "does not run on this machine")
        check("-mcpu=native" in firn("help", verb).stdout, f"help {verb} does not tell of -mcpu=native")
    check(json.loads(firn("bench", MODEL, "--seconds=0.01", "--json").stdout)["cpu"] == default, "bench --json names no CPU")


def check_budgets():
    expect(["compile", MODEL, "--ram-budget=1K", "-o", "never"], 1, "RAM use of ", "; largest: ", "input 'image' 3.1 kB", "result of ")
    expect(["compile", MODEL, "--memory-budget=1K", "-o", "never"], 1, "the arena of @main, with values computed again, of ",
           "exceeds the budget of 1,024 B by ", "; largest: ", "input 'image' 3.1 kB")
    expect(["compile", MODEL, "--flash-budget=1K", "-o", "never"], 1, "flash use of ", "; largest: ", "kB")


def check_progress(folder):
    """On a terminal, what takes longer than a second is told with the model's name; elsewhere nothing is."""
    check("..." not in firn("compile", MODEL, "--emit=header").stderr, "progress is told though nobody looks")
    dumps = os.path.join(folder, "dumps")
    command = [FIRN, "compile", MODEL, "-o", os.path.join(folder, "slow"), "--dump-passes", dumps]
    subprocess.run(command, check=True, capture_output=True)
    first = os.path.join(dumps, sorted(os.listdir(dumps))[0])
    os.remove(first)
    os.mkfifo(first)  # the compilation waits here for a reader
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    time.sleep(1.5)
    with open(first, encoding="utf-8") as file:
        file.read()
    process.wait()
    os.close(theirs)
    said = os.read(ours, 4096).decode() if select.select([ours], [], [], 0)[0] else ""
    check(process.returncode == 0 and "model.onnx: generate code ..." in said, f"no progress on a terminal: {said!r}")


def main():
    with temporary_folder() as folder:
        check_verbs()
        check_files(folder)
        check_dims(folder)
        check_named_shapes(folder)
        check_dim_names(folder)
        check_missing_files(folder)
        check_standard_input(folder)
        check_operators(folder)
        check_schedules(folder)
        check_systems(folder)
        check_folders(folder)
        check_inspect(folder)
        check_verify()
        check_stored(folder)
        check_cpus()
        check_progress(folder)
        os.chdir(folder)
        check_budgets()
        check(not [name for name in os.listdir(folder) if name.startswith("never")], "a failure left files")
    finish()


main()
