#!/usr/bin/env python3
"""What cannot be quantised is refused with the reason, and nothing is written."""
import os
import struct

from sample_models import MODELS, customised, gained, npy, write, write_samples
from tool import check, expect, finish, graph, model, node, temporary_folder, tensor, value


def small(path, nodes, initializers=(), opset=15, dims=(2, 4)):
    return write(path, model(graph(nodes, [value("x", list(dims))], [value("y", list(dims))], initializers), opset=opset))


def main():
    with temporary_folder() as folder:
        os.chdir(folder)
        bytes_, dims = MODELS["perceptron"]()
        path = write("net/model.onnx", bytes_)
        data = write_samples("data", dims)

        def refused(code, *texts, model=path, data="data", more=()):
            expect(["quantize", model, "--data", data, "-o", "out.onnx", *more], code, *texts)
            check(not os.path.exists("out.onnx") and not os.path.exists("out.html"), f"written in spite of {texts}")

        refused(2, "'nowhere' is not a folder", data="nowhere")
        os.mkdir("empty")
        refused(2, "there is no calibration data in 'empty': wanted .npy, .npz or .pb files", data="empty")
        write("nan/a.npy", npy(dims, [0.5] * 95 + [float("nan")]))
        refused(2, "'nan/a.npy': element 95 of input 'x' is NaN", data="nan")
        write("infinite/a.npy", npy(dims, [float("inf")] + [0.5] * 95))
        refused(2, "element 0 of input 'x' is infinite", data="infinite")
        write("constant/a.npy", npy(dims, [0.5] * 96))
        refused(2, "input 'x' is one constant in all calibration data: its range is empty", data="constant")
        write("shape/a.npy", npy([4, 23], [i * .1 for i in range(92)]))
        refused(2, "calibration data 'shape/a.npy'", "dim 1 cannot be 23", data="shape")
        write("rank/a.npy", npy([96], [i * .1 for i in range(96)]))
        refused(2, "calibration data 'rank/a.npy'", "rank", data="rank")
        write("type/a.npy", npy(dims, [0.5] * 96).replace(b"<f4", b"<i4"))
        refused(2, "calibration data 'type/a.npy'", "i32", data="type")
        write("broken/a.npz", b"PK\x05\x06")
        refused(2, "'broken/a.npz' is not a .npz file", data="broken")
        refused(2, "--keep frobnicate: the model has no node of that name", more=["--keep", "frobnicate"])
        refused(2, "none of u8, s8, u16", more=["--activations", "u4"])
        refused(2, "'0' is no number above 0", more=["--budget", "0"])
        for option in ("--depfile", "--report"):
            refused(2, "/nowhere/", "No such file or directory", more=[option, "/nowhere/file"])
        for narrow in ("--weight-type=i4", "--weight-type=i8", "--precision=bf16"):
            refused(2, narrow + " does not go with 'firn quantize'", "at its own precision", more=[narrow])
        refused(2, "--initializers-are-inputs has no effect on the quantised model", more=["--initializers-are-inputs"])

        whole = tensor("x", dims, struct.pack("<96f", *[i * .1 for i in range(96)]))
        write("cut/a.pb", whole[:-100])
        refused(2, "cut/a.pb", data="cut")
        write("cut_set/input_0.pb", whole[:-100])
        refused(2, "cut_set/input_0.pb", data="cut_set")
        for i in range(2):
            write(f"many/input_{i}.pb", tensor("", dims, whole[-384:]))
        refused(2, "calibration data 'many': got 2 stored inputs, the model has 1", data="many")
        refused(2, "calibration data 'data/00.npy'", "batch = 4 is outside 1..3", more=["--dim", "batch=1..3"])
        refused(2, "calibration data 'data/00.npy'", "dim 0 cannot be 4", more=["--dim", "batch=3"])

        write("custom.onnx", customised()[0])
        refused(2, "function 'scale': give the file that defines it, --link FILE", model="custom.onnx",
                more=["--custom-op=com.acme:Scale=scale", "--value=s=f32[4,16]"])
        write("gained.onnx", gained()[0])
        write_samples("x", [2, 24])
        refused(2, "could be for any of 'gain', 'past', 'x'", model="gained.onnx", data="x")
        refused(2, "could be for any of 'gain', 'x'", model="gained.onnx", data="x", more=["--state=past=present"])
        gain = tensor("gain", [6], struct.pack("<6f", *range(6)))
        weight = tensor("w", [24, 6], struct.pack("<144f", *[i % 7 * .1 for i in range(144)]))
        product = [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "gain"], ["y"])]
        write("held.onnx", model(graph(product, [value("x", [2, 24]), value("gain", [6])], [value("y", [2, 6])], [gain, weight])))
        refused(2, "--const 'gain': the input has an initializer", model="held.onnx", data="x", more=["--const=gain=1,2,3,4,5,6"])
        refused(2, "--state 'gain': the input has an initializer", model="held.onnx", data="x", more=["--state=gain=y"])

        write_samples("pairs", [2, 4])
        nothing = small("nothing.onnx", [node("Relu", ["x"], ["y"])])
        refused(1, "there is nothing to quantise", model=nothing, data="pairs")
        dead = struct.pack("<16f", *[0.0] * 16)
        one = struct.pack("<16f", *[float(i % 5 == 0) for i in range(16)])
        root = small("root.onnx", [node("Log", ["x"], ["l"]), node("MatMul", ["l", "w"], ["y"])], [tensor("w", [4, 4], one)])
        refused(1, "makes 'l' infinite or no number", model=root, data="pairs")
        still = small("still.onnx", [node("Mul", ["x", "z"], ["l"]), node("MatMul", ["l", "w"], ["y"])],
                      [tensor("z", [1], dead[:4]), tensor("w", [4, 4], one)])
        refused(1, "there is nothing to quantise", model=still, data="pairs")
        old = small("old.onnx", [node("MatMul", ["x", "w"], ["m"]), node("Softmax", ["m"], ["y"])], [tensor("w", [4, 4], one)], opset=11, dims=(2, 2, 4))
        write_samples("triples", [2, 2, 4])
        refused(3, "softmax (Softmax) of opset 11 takes several axes as one", "onnx.version_converter", model=old, data="triples")
        refused(3, "the model is of opset 8", model=small("older.onnx", [node("MatMul", ["x", "w"], ["y"])], [tensor("w", [4, 4], one)], opset=8),
                data="pairs")
    finish()


main()
