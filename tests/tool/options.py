#!/usr/bin/env python3
"""Senseless values, unknown names and options without effect are errors (exit code 2) that say what exists.

Every option of every verb has a row; one that a verb gains without a row fails the test.
"""
import os
import re

from stroke_digits import write_digits
from tool import DIGITS, IMAGE, MODEL, check, expect, finish, firn, symbolic_model, temporary_folder

VERBS = ("compile", "run", "inspect", "opt", "quantize", "train", "bench", "verify", "ops", "gradcheck", "reduce", "help", "version")
DATA = temporary_folder()
EXAMPLES = write_digits(os.path.join(DATA.name, "digits"), 3)
ONE_OF_LEVELS = "none of 0, 1, 2, 3, s, z"
NUMBERS = ("-1", "nan", "inf", "x", "1e999", "")

# Options of all verbs that compile: bad values, each with what the message must say. None: any text is a value.
COMPILING = {
    "--target": [("nonsense", "is not supported"), ("arm-foo", "is no target triple: 'foo' is neither a system nor an ABI"),
                 ("x86_64-unknown-lnux-gnu", "did you mean 'linux'?")],
    "--mcpu": [("frobnicator", "choices: "), ("x86-64-v33", "did you mean 'x86-64-v3'?\n"), ("znver44", "did you mean 'znver4'?\n")],
    "--mattr": [("+frobnicator", "is not known")],
    "--multiversion": [("frobnicator", "choices: "), ("x86-64-v3,x86-64-v3", "the same features"), (",", "apart by commas")],
    "--optimize": [("7", ONE_OF_LEVELS)],
    "--math": [("fast", "none of default, strict"), ("strick", "did you mean 'strict'?")],
    "--precision": [("f16", "none of f32, bf16")],
    "--weight-type": [("i2", "none of bf16, i8, i4")],
    "--weights": [("file", "none of embed, init")], "--no-winograd": None, "--check-indices": None,
    "--text-pieces": [(bad, "whole number") for bad in ("0", "-1", "x", "99999999")],
    "--text-bytes": [(bad, "no size such as") for bad in ("-1", "1.5", "K", "2048M")],
    "--threads": [("0", "whole number"), ("-1", "whole number"), ("x", "whole number"), ("257", "whole number")],
    "--memory-budget": [(bad, "no size such as") for bad in ("-1", "1.5", "64Q", "K", "99999999999999999999")],
    "--schedule-db": [("nowhere.db", "nowhere.db")],
    "--dim": [("n", "wants NAME=VALUE"), ("n=", "wants NAME=VALUE"), ("=1", "wants NAME=VALUE"), ("n=-1", "whole number"),
              ("n=1x", "whole number"), ("n= 1", "whole number"), ("n=1..", "is no range"), ("n=4..1", "ends before it begins"), ("n=..4", "is no range"), ("n=1..4:", "is no range"),
              ("n=8..64:32", "no multiples of 32"), ("n=0..64:0", "no multiples"), ("n=1|2|2", "a value twice"), ("n=1|", "no list"),
              ("n=1.5", "is no range"), ("zz=1..4", "has no symbolic dim 'zz'"), ("zz=1", "has no symbolic dim 'zz'")],
    "--hot": [("n", "wants NAME=VALUE"), ("n=x", "wants NAME=VALUE"), ("n=1,", "wants NAME=VALUE"), ("n=1,n=2", "given twice"),
              ("zz=1", "no dim 'zz' varies")],
    "--max": [("n", "wants NAME=NUMBER"), ("n=", "is no list"), ("n=x", "is no list"), ("n=-1", "is no list"), ("n=1,", "is no list"),
              ("n=99999999999", "is no list"), ("zz=1", "no value 'zz'")],
    "--shape": [("x", "wants NAME="), ("x=1x", "is no shape"), ("x=-1", "is no shape"), ("zz=1x2", "has no input 'zz'")],
    "--state": [("a", "wants PAST=PRESENT"), ("zz=probabilities", "no input 'zz'; its inputs are 'image'"),
                ("image=zz", "no output 'zz'; its outputs are 'probabilities'")],
    "--length": [("x", "wants NAME=NUMBER"), ("x=y", "wants NAME=NUMBER"), ("x=-1", "wants NAME=NUMBER"),
                 ("zz=1", "has no input 'zz'"), ("image=1", "is a tensor")],
    "--const": [("x", "wants NAME=VALUE"), ("zz=1", "has no input 'zz'"), ("image=1,2", "which is f32[1,1,28,28]"),
                ("image=nowhere.npy", "nowhere.npy")],
    "--custom-op": [("com.acme:Pool", "wants DOMAIN:NAME=SYMBOL"), ("Pool=pool", "wants DOMAIN:NAME=SYMBOL"),
                    ("com.acme:Pool=2x", "no name of a C function"), ("com.acme:Pool=pool:x", "is no size such as")],
    "--value": [("y", "wants NAME=TYPE")],
    "--passes": [("zz", "wanted one of: ")],
    "--initializers-are-inputs": None, "--straight-through": None,
}
GPU = [("vulkan", "wants cuda, or cuda:sm_80 and the like, found 'vulkan'"), ("cuda:", "is not known; choices: sm_75"), ("cuda:sm_80:", "did you mean 'sm_80:a100'")]
TEXT = {
    "--weights-in": [("w", "goes with a graph in text form")],
    "--entry": [("g", "goes with a graph in text form")],
}
TRAINING = {
    "--train": [("mse", "wants KEY=VALUE"), ("loss=mse", "wants optimizer=NAME"), ("loss=mse,loss=l1", "given twice"),
                ("loss=zz,optimizer=sgd", "no loss 'zz'"), ("loss=mse,optimizer=zz", "no optimizer 'zz'"),
                ("loss=output:zz,optimizer=sgd", "no output 'zz'"), ("loss=mse,optimizer=sgd,zz=1", "an option 'zz'"),
                ("loss=mse,optimizer=sgd,clip_norm=x", "is no number"), ("loss=mse,optimizer=sgd,labels=x", "wants classes or"),
                ("loss=mse,optimizer=sgd,functions=nowhere.hlo", "nowhere.hlo"),
                ("loss=mse,optimizer=sgd,seed=-1", "wants a whole number from 0 on"),
                ("loss=mse,optimizer=sgd,seed=1.5", "wants a whole number"), ("loss=mse,optimizer=sgd,dropout=x", "wants on or off"),
                ("loss=mse,optimizer=sgd,freeze_norms=1", "an option 'freeze_norms'")],
    "--trainable": [("dense.*", "--train")], "--gradients": [("kept", "--train")], "--lora": [("rank=2:dense.*", "--train")],
    "--micro-batch": [("0", "whole number"), ("-1", "whole number"), ("x", "whole number"), ("8", "--train")],
}
COMPILE = {
    "-o": [("/nowhere/out", "No such file or directory")],
    "--class": [("1x", "not usable as a C++ name"), ("std::x", "not usable as a C++ name")],
    **TRAINING,
    "--name": [("a", "wants NEW=OLD"), ("a=zz", "no input or output 'zz'; it has 'image', 'probabilities'"), ("int=image", "is a keyword")],
    "--external": [("zz", "no input or output 'zz'; it has 'image', 'probabilities'")],
    "--emit": [("zz", "none of obj, graph, prepare, kernel, llvm, asm, ptx, report, header, manifest"),
               *((emit, "which --gpu names: --gpu=cuda:sm_80") for emit in ("ptx", "report"))],
    "--gpu": [*GPU, ("cuda", "goes with --emit=graph, kernel, ptx or report, and not yet with obj"),
              ("cuda:sm_99", "did you mean 'sm_89' or 'sm_90'?"), ("cuda:zzzzzzz", "choices: sm_75, sm_75:t4, "),
              ("cuda:sm_80:a10", "did you mean 'sm_80:a100'?")],
    "--weights-out": [("w", "no effect with --emit=obj")],
    "--dump-passes": [("/proc/nowhere", "cannot write")],
    "--rewrite-limit": [("-5", "whole number"), ("x", "whole number"), ("99999999999", "whole number")],
    "--depfile": [("/nowhere/d", "No such file or directory")],
    "--flash-budget": [(bad, "no size such as") for bad in ("-1", "1.5", "64Q", "K", "99999999999999999999")],
    "--ram-budget": [(bad, "no size such as") for bad in ("-1", "1.5", "64Q", "K", "99999999999999999999")],
    "--jobs": [(bad, "") for bad in ("0", "-1", "1.5", "x")], "--cache": [("", "")],
    "--time-passes": None, "--report": None, "--explain": None, "--json": None, "-q": None,
}
RUN = {
    "--input": [("image", "wants NAME=FILE"), ("image=", "wants NAME=FILE"), (f"zz={IMAGE}", "no input 'zz'; it has 'image'"),
                ("image=nowhere.pb", "nowhere.pb"), ("image=a.txt", ".npy or .pb")],
    "--output-dir": [("/proc/nowhere", "cannot make the folder")],
    "--engine": [("zz", "none of object, eval")], "--loader": [("zz", "none of in-process, system")], "--visible-to": [("zz", "none of debugger, perf")],
    "--jobs": [(bad, "") for bad in ("0", "-1", "1.5", "x")], "--cache": [("", "")],
    "--variant": [("zz", "--multiversion")], "--link": [("nowhere.c", "nowhere.c")],
}
BENCH = {
    "--loader": [("zz", "none of in-process, system")], "--visible-to": [("zz", "none of debugger, perf")], "--variant": [("zz", "--multiversion")], "--link": [("nowhere.c", "nowhere.c")],
    "--seconds": [(bad, "") for bad in NUMBERS + ("0",)],
    "--at": [("n", "wants NAME=VALUE"), ("n=x", "wants NAME=VALUE"), ("n=1", "no dim 'n' varies")],
    "--jobs": [(bad, "") for bad in ("0", "-1", "1.5", "x")], "--cache": [("", "")],
    "--build": [("zz", "")], "-o": [("w", "requires")], "--json": None, "--start": None, "--simulate": [(None, "wants --threads")],
}
VERIFY = {
    "--engine": [("zz", "none of object, eval, loops, ptx"), *((engine, "tries the program that --gpu names: --gpu=cuda") for engine in ("loops", "ptx"))],
    "--gpu": GPU,
    "--tolerance": [(bad, "") for bad in NUMBERS],
    "--against": [("f16", "none of f32")],
    "--cache": [("", "")], "--absolute-floor": None, "--loader": [("zz", "none of in-process, system")], "--visible-to": [("zz", "none of debugger, perf")], "--variant": [("zz", "--multiversion")], "--link": [("nowhere.c", "nowhere.c")],
    "-j": [(bad, "") for bad in ("0", "-1", "1.5", "x")],
    "--timeout": [(bad, "") for bad in ("0", "-1", "x")],
    "--list": [("nowhere.txt", "cannot read the list 'nowhere.txt'")],
    "--update-list": [(None, "requires --list")],
    "--json": None, "-q": None, "--verbose": None,
}
OPT = {
    "--passes": [("zz", "wanted one of: ")],
    "--weights-in": [("nowhere", "nowhere")], "--weights-out": [("/nowhere/w", "No such file or directory")],
    "--target": [("nonsense", "is not supported")], "--mcpu": [("frobnicator", "choices: ")], "--mattr": [("+frobnicator", "is not known")],
    "--optimize": [("7", ONE_OF_LEVELS)], "--math": [("fast", "none of default, strict")],
    "--memory-budget": [("1.5", "no size such as"), ("-1", "no size such as")],
    "--rewrite-limit": [("-5", ""), ("x", "")], "--verify-only": None, "--threads": [("0", ""), ("x", "")],
    "--lower": None, "--gpu": GPU,
}
QUANTIZE = {
    "--data": None, "-o": [("/nowhere/out", "No such file or directory")], "--report": None,
    "--budget": [(bad, "") for bad in NUMBERS + ("0",)], "--activations": [("u4", "none of u8, s8, u16")],
    "--keep": [("zz", "no node of that name")], "--size": None, "-q": None,
    "--depfile": [("/nowhere/d", "No such file or directory")], "--variant": [("zz", "--multiversion")], "--link": [("nowhere.c", "nowhere.c")],
    "--loader": [("zz", "none of in-process, system")], "--visible-to": [("zz", "none of debugger, perf")],
    "--precision": [("f16", "none of f32, bf16"), ("bf16", "errors are those against the model at its own precision")],
    "--weight-type": [("i2", "none of bf16, i8, i4"), *((bad, "at its own precision") for bad in ("bf16", "i8", "i4"))],
    "--initializers-are-inputs": [(None, "all initializers are constants")],
}
TRAIN = {
    "--data": None, "--save": None,
    "--resume": [("nowhere.npz", "nowhere.npz.state")],
    "--epochs": [(bad, "whole number") for bad in ("0", "-1", "1.5", "x")],
    "--batch": [(bad, "") for bad in ("0", "-1", "1.5", "x")] + [("2", "takes 1 examples at once")],
    "--learning-rate": [(bad, "") for bad in NUMBERS + ("0",)],
    "--validation": [(bad, "wants a fraction between 0 and 1") for bad in ("0", "1", "-1", "nan")] + [("nowhere", "neither a folder")],
    "--seed": [(bad, "whole number") for bad in ("-1", "x", "1.5")],
    "--in-order": None, "-q": None,
    "--train": [("mse", "wants KEY=VALUE"), ("loss=zz", "no loss 'zz'"), ("optimizer=zz", "no optimizer 'zz'"),
                ("clip_norm=x", "is no number")],
    "--entry": [("g", "no function @g")],
    "--trainable": [("zz.*", "names no tensor that can be trained")],
    "--gradients": [("zz", "names no trained tensor whose gradient there is")],
    "--lora": [("rank=2", "wants rank=N:NAME"), ("rank=0:dense.*", "wants a whole number from 1 on"),
               ("rank=2,alpha=x:dense.*", "is no number"), ("rank=2:zz", "names no weights that an adapter")],
    "--micro-batch": [("0", "whole number"), ("-1", "whole number"), ("x", "whole number"), ("8", "want a batch that varies")],
    "--loader": [("zz", "none of in-process, system")], "--visible-to": [("zz", "none of debugger, perf")],
    "--variant": [("zz", "--multiversion")], "--link": [("nowhere.c", "nowhere.c")],
    "--jobs": [(bad, "") for bad in ("0", "-1", "1.5", "x")], "--cache": [("", "")],
}
IMPORTING = ("--dim", "--max", "--shape", "--state", "--length", "--const", "--custom-op", "--value", "--passes", "--initializers-are-inputs",
             "--straight-through")
GRADCHECK = {**{option: COMPILING[option] for option in IMPORTING}, **TEXT,
             "--wrt": [("zz", "--wrt names 'zz'")], "--samples": [(bad, "") for bad in ("-1", "x")], "--seed": [("x", "")]}
REDUCE = {
    "--check": None, "--message": [("zz", "does not print 'zz'")], "-o": [("/nowhere/out", "No such file or directory")],
    "--timeout": [(bad, "") for bad in ("0", "-1", "x")], "-q": None,
}
TABLE = {
    "compile": ([MODEL], {**COMPILING, **TEXT, **COMPILE}),
    "run": ([MODEL], {**COMPILING, **TEXT, **RUN}),
    "inspect": ([MODEL], {**COMPILING, "--json": None}),
    "bench": ([MODEL], {**COMPILING, **TEXT, **TRAINING, **BENCH}),
    "verify": ([DIGITS], {**COMPILING, **TEXT, **VERIFY}),
    "opt": (["graph.hlo"], OPT),
    "quantize": ([MODEL, "--data", os.path.join(DIGITS, "test_data_set_0")], {**COMPILING, **QUANTIZE}),
    "train": ([MODEL, "--data", EXAMPLES, "--save", "w.npz"], {**COMPILING, **TEXT, **TRAIN}),
    "ops": ([], {"--json": None}),
    "gradcheck": ([MODEL], GRADCHECK),
    "reduce": ([MODEL, "--check", "false {}"], REDUCE),
    "help": ([], {}),
    "version": ([], {}),
}
# Of single cases `verify` says what is wrong with them; the command line is fine.
PER_CASE = {"--dim": ("zz=1", "zz=1..4"), "--shape": "zz=1x2", "--hot": "zz=1", "--max": "zz=1", "--length": ("zz=1", "image=1"), "--const": ("zz=1", "image=1,2"),
            "--state": ("zz=probabilities", "image=zz"), "--passes": "zz", "--schedule-db": "nowhere.db", "--weights-in": "w", "--entry": "g"}


def options_of(verb):
    rows = re.findall(r"^  (-[^ ]+)", firn("help", verb).stdout, re.M)
    return [row.split(",") for row in rows if "--help" not in row]


def inputs_for(verb, option):
    return ["--input", f"image={IMAGE}"] if verb == "run" and option != "--input" else []


def check_rows(verb, words, rows):
    for names in options_of(verb):
        check(any(name in rows for name in names), f"{verb} {names[-1]}: no row says which values are refused")
    for option, bad_values in rows.items():
        for value, text in bad_values or ():
            if verb == "verify" and value and value in PER_CASE.get(option, ()):
                continue
            given = [option] if value is None else [option + "=" + value] if option.startswith("--") else [option, value]
            expect([verb, *words, *inputs_for(verb, option), *given], 2, text, "error: ")
        if bad_values and bad_values[0][0] is not None:
            expect([verb, *words, *inputs_for(verb, option), option, ""], 2, "error: ")
            if option.startswith("--"):
                expect([verb, *words, option + "="], 2, "lacks a value")


def check_pairs(symbolic):
    """Options that contradict each other, or are given twice."""
    for verb in ("compile", "inspect", "bench"):
        expect([verb, symbolic, "--dim", "batch=1", "--dim", "batch=2"], 2, "'batch' is given twice")
        expect([verb, symbolic, "--dim", "batch=1", "--dim", "batch=1"], 2, "'batch' is given twice")
        expect([verb, symbolic, "--dim", "batch=1..2", "--dim", "batch=1"], 2, "'batch' is given twice")
        expect([verb, symbolic, "--shape", "x=1x3x4", "--shape", "x=1x3x4"], 2, "'x' is given twice")
        expect([verb, symbolic, "--shape", "x=1x3"], 2, "has rank 3, the shape given has 2")
        expect([verb, MODEL, "--state", "image=a", "--state", "image=b"], 2, "'image' is given twice")
    expect(["compile", MODEL, "--external", "image", "--external", "image"], 2, "'image' is given twice")
    expect(["compile", MODEL, "--name", "ink=image", "--external", "ink", "--external", "image"], 2, "'image' is given twice")
    done = expect(["compile", MODEL, "--name", "ink=image", "--external", "ink", "--emit=manifest"], 0)
    check('"arena_offset": null' in done.stdout, "an external input by its new name is not external: " + done.stdout[:900])
    expect(["compile", MODEL, "--name", "a=image", "--name", "b=image"], 2, "'image' is given twice")
    expect(["compile", MODEL, "--name", "a=image", "--name", "a=probabilities"], 2, "'a' is")
    expect(["run", MODEL, "--input", f"image={IMAGE}", "--input", f"image={IMAGE}"], 2, "'image' is given twice")
    expect(["run", MODEL, "--input", f"image={IMAGE}", "--shape", "image=2x1x28x28"], 2, "")
    for emit, options in (("graph", ("--depfile=d", "--flash-budget=1K", "--ram-budget=1K", "--report", "--json", "--explain")),
                          ("asm", ("--depfile=d", "--flash-budget=1K", "--report", "--json", "--weights-out=w")),
                          ("header", ("--depfile=d", "--json", "--weights-out=w"))):
        for option in options:
            expect(["compile", MODEL, "--emit=" + emit, option], 2, "no effect with --emit=" + emit)
    expect(["compile", MODEL, "--json", "--report"], 2, "excludes")
    expect(["compile", MODEL, "--emit=kernel", "-o", "kernels.kir"], 0)
    for option in ("--weights-in=w", "--weights-out=w", "--math=strict", "--memory-budget=1K", "--lower"):
        expect(["opt", "kernels.kir", option], 2, option.split("=")[0] + " goes with a graph in text form")
    expect(["opt", "kernels.kir", "--passes=merge-equal-kernel"], 2, "did you mean 'merge-equal-kernels'?")
    os.remove("kernels.kir")
    expect(["opt", "graph.hlo", "--passes=fold-constant"], 2, "did you mean 'fold-constants'?")
    expect(["opt", "graph.hlo", "--verify-only", "--passes=default"], 2, "excludes")
    expect(["opt", "graph.hlo", "--verify-only", "--lower"], 2, "excludes")
    expect(["opt", "graph.hlo", "--lower"], 2, "--target or --mcpu")
    expect(["bench"], 2, "wants a model")
    step = ["bench", MODEL, "--train", "loss=mse,optimizer=momentum", "--seconds", "0.01"]
    check("conv2 reverse" in expect(step, 0).stdout, "the time of a training step has no gradient of its convolutions")
    check("conv2 reverse" not in expect([*step, "--entry=evaluate"], 0).stdout, "a loss alone takes gradients")
    expect([*step, "--entry=zz"], 2, "no function @zz")
    expect(["compile", *step[1:4], "--entry=step"], 2, "--entry goes with firn bench --train")
    expect(["ops", "Frobnicate"], 2, "no operator")


def check_gpu():
    """What goes with the program of a GPU, and what does not."""
    for option in ("--target=x86_64-linux-gnu", "--mcpu=native", "--mattr=+fma", "--multiversion=x86-64-v3,x86-64-v2", "--threads=2"):
        excluded = option.split("=")[0] + " excludes --gpu"
        expect(["compile", MODEL, "--gpu=cuda", "--emit=ptx", option], 2, excluded)
        expect(["verify", DIGITS, "--gpu=cuda", "--engine=loops", option], 2, excluded)
    for emit in ("obj", "prepare", "llvm", "asm", "header", "manifest"):
        expect(["compile", MODEL, "--gpu=cuda", "--emit=" + emit], 2, f"and not yet with {emit}")
    for engine in ("object", "eval"):
        expect(["verify", DIGITS, "--gpu=cuda", "--engine=" + engine], 2, f"--engine={engine} does not go with --gpu: loops and ptx do")
    expect(["verify", DIGITS, "--gpu=cuda", "--engine=ptx", "--against=f32"], 2, "excludes")
    expect(["run", MODEL, "--gpu=cuda"], 2, "there is no option '--gpu'")
    for option in ("--depfile=d", "--flash-budget=1K", "--report", "--json", "--weights-out=w"):
        expect(["compile", MODEL, "--gpu=cuda", "--emit=ptx", option], 2, "no effect with --emit=ptx")
    expect(["compile", MODEL, "--gpu=cuda", "--emit=graph"], 0, "func @main")
    expect(["compile", MODEL, "--gpu=cuda:sm_86:rtx3060", "--emit=kernel"], 0, "block_threads ")
    expect(["compile", MODEL, "--gpu=cuda", "--emit=ptx"], 0, ".target sm_80", ".maxntid")
    expect(["compile", MODEL, "--gpu=cuda:sm_120", "--emit=ptx"], 0, ".target sm_80")
    expect(["compile", MODEL, "--gpu=cuda:sm_75:t4", "--emit=ptx"], 0, ".target sm_75")
    expect(["compile", MODEL, "--gpu=cuda:sm_89:l4", "--emit=report"], 0, "sm_89:l4, 58 SMs, 300 GB/s")
    for engine in ([], ["--engine=loops"], ["--engine=ptx"]):
        expect(["verify", DIGITS, "--gpu=cuda", *engine], 0, "1 passed, 0 wrong, 0 refused")


def main():
    with temporary_folder() as folder:
        os.chdir(folder)
        symbolic = symbolic_model(folder)
        expect(["compile", symbolic, "--dim=batch=1", "--dim=height=2", "--emit=graph", "-o", "graph.hlo"], 0)
        for verb in VERBS:
            check_rows(verb, *TABLE[verb])
        check_pairs(symbolic)
        check_gpu()
        check(sorted(os.listdir(folder)) == ["graph.hlo", "symbolic.onnx"], f"files were left: {os.listdir(folder)}")
    finish()


main()
