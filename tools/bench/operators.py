#!/usr/bin/env python3
"""Twenty operators, each alone in a model, in Firn and ONNX Runtime, side by side on one core.

    operators.py [--ops Add,TopK] [--forms TEXT] [--sizes 1000,100000] [--rounds 7] [--block 0.04] [--json FILE]
                 [--markdown]

Models are those of operator_cases.py. Each engine runs in a process of its own, driven from C++ with inputs and outputs
in buffers made before the clock starts (ONNX Runtime by IO binding), and checked against outputs that ONNX Runtime
computed. They take turns in blocks of seconds; a run shorter than 20 us is timed several at once. Printed per form: the
median over rounds of Firn's time over ONNX Runtime's at every size; and per operator the geometric mean over its forms
and sizes. Firn's binary: $FIRN, default build/release/tools/firn/firn; its flags: $FIRN_FLAGS, default -mcpu=native.

Needs compare.py of the benchmark data that comes beside this repository ($FIRN_TEST_DATA/bench, default
../shared/bench), and Python's onnx, onnxruntime and numpy.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get("FIRN_TEST_DATA") or os.path.join(os.path.dirname(ROOT), "shared")
sys.path.insert(0, os.path.join(DATA, "bench"))

import compare
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import operator_cases


def write(case, folder):
    """Writes a model folder as compare.py wants it, its outputs by ONNX Runtime."""
    model = case.model()
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = session.run(None, case.inputs)
    for info, value in zip(model.graph.output, results):
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        info.CopyFrom(helper.make_tensor_value_info(info.name, dtype, value.shape))
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, values in ("input", case.inputs.values()), ("output", results):
        for i, value in enumerate(values):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(value).SerializeToString())


def time_case(case, options):
    """The engines' rows, as compare.py gives them, Firn's first; the other's holds the ratio of the times."""
    with tempfile.TemporaryDirectory(prefix="firn-operators-") as scratch:
        write(case, scratch)
        firn, ort = compare.compare(scratch, ["firn", "ort"], 1, "hot", options.rounds, options.block, scratch)
    for row in firn, ort:
        if not row.get("ready"):
            raise SystemExit(f"{case.op}: {row['engine']}: {row.get('reason')}")
    return firn, ort


def time_operator(op, options):
    """Prints a row per form, and the geometric mean of all ratios."""
    ratios = []
    for name, make in operator_cases.FORMS[op].items():
        if options.forms not in name:
            continue
        cells = []
        for size in options.sizes:
            firn, ort = time_case(make(size), options)
            ratios.append(ort["ratio"])
            cells.append(f"{ort['ratio']:.2f}" if options.markdown
                         else f"{ort['ratio']:6.2f} ({firn['median_ms'] * 1e3:.4g} us)")
            if options.json:
                with open(options.json, "a") as file:
                    file.write(json.dumps(dict(op=op, form=name, size=size, firn=firn, ort=ort)) + "\n")
        print_row([op, name, *cells], options)
    if ratios:
        mean = f"{statistics.geometric_mean(ratios):.2f}"
        print_row([op, "**geometric mean**", f"**{mean}**"] + [""] * (len(options.sizes) - 1) if options.markdown
                  else [op, "geometric mean", mean], options)


def print_row(cells, options):
    print("| " + " | ".join(cells) + " |" if options.markdown else "{:18} {:24} ".format(*cells) + " ".join(cells[2:]),
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default=list(operator_cases.FORMS), type=lambda names: names.split(","))
    parser.add_argument("--forms", default="", help="those whose name holds this text")
    parser.add_argument("--sizes", default=operator_cases.SIZES, type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--block", type=float, default=0.04, help="seconds per turn")
    parser.add_argument("--json", metavar="FILE", help="append one JSON object per case")
    parser.add_argument("--markdown", action="store_true", help="print rows of a table")
    options = parser.parse_args()
    os.environ.setdefault("FIRN", os.path.join(ROOT, "build/release/tools/firn/firn"))
    for op in options.ops:
        time_operator(op, options)


if __name__ == "__main__":
    main()
