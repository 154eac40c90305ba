#!/usr/bin/env python3
"""`firn train`: what it learns and writes, trainings that are interrupted and resumed, data that does not fit."""
import json
import os
import re
import signal
import struct
import subprocess
import time
import zipfile

from stroke_digits import npy, write_array, write_digits
from tool import FIRN, MODEL, attribute, check, expect, finish, firn, node, num, temporary_folder, tensor, value, write_model

TENSORS = ["conv1.bias", "conv1.weight", "conv2.bias", "conv2.weight", "dense.bias", "dense.weight"]


def content(path):
    with open(path, "rb") as file:
        return file.read()


def classifier(path, batch, classes=3):
    """Scores of x: f32[batch,4] by one product, which starts from zeros."""
    weights = [tensor("fc.weight", [4, classes], bytes(16 * classes)), tensor("fc.bias", [classes], bytes(4 * classes))]
    nodes = [node("Gemm", ["x", "fc.weight", "fc.bias"], ["scores"]), node("Softmax", ["scores"], ["y"], attribute("axis", 2, num(3, 1)))]
    return write_model(path, nodes, [value("x", [batch, 4])], [value("y", [batch, classes])], weights)


def points(folder, count, **arrays):
    """Points near the axes: the label of each is the axis."""
    os.mkdir(folder)
    labels = [(i * 5 + i // 7) % 3 for i in range(count)]
    x = [(1.0 if axis == label else 0.0) + 0.01 * ((i * 7 + axis * 3) % 11) for i, label in enumerate(labels) for axis in range(4)]
    write_array(os.path.join(folder, "x.npy"), "<f4", "f", (count, 4), x)
    write_array(os.path.join(folder, "labels.npy"), "|u1", "B", (count,), labels)
    return folder


def train(model, data, *words, code=0, texts=()):
    return expect(["train", model, "--data", data, *words], code, *texts)


def check_digits(data):
    """The network learns, and what it has learnt is in every form the same."""
    said = train(MODEL, data, "--epochs", "2", "--validation", "0.1", "--save", "w.npz").stderr
    accuracies = [float(each) for each in re.findall(r"accuracy (\S+) %", said)]
    check(len(accuracies) == 2 and accuracies[-1] > 95, "accuracies of two epochs: " + said)
    check("labels are integers" in said and "adam" in said, "what is chosen is said: " + said)
    with zipfile.ZipFile("w.npz") as file:
        check(file.testzip() is None and sorted(file.namelist()) == [name + ".npy" for name in TENSORS], f"arrays: {file.namelist()}")
        weight = file.read("dense.weight.npy")
    train(MODEL, data, "--epochs", "2", "--validation", "0.1", "--save", "w.safetensors", "-q")
    raw = content("w.safetensors")
    size, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    check(header.pop("__metadata__") == {"firn": "1"}, "programs with a model's parameters load the file")
    check(sorted(header) == TENSORS, f"safetensors: {sorted(header)}")
    begin, end = header["dense.weight"]["data_offsets"]
    check(header["dense.weight"]["dtype"] == "F32" and weight.endswith(raw[8 + size + begin:8 + size + end]), "safetensors differ from the archive")
    check(content("w.npz.state") == content("w.safetensors.state"), "states of equal trainings differ")
    train(MODEL, data, "--epochs", "2", "--validation", "0.1", "--save", "trained.onnx", "-q")
    resumed = train("trained.onnx", data, "--epochs", "1", "--learning-rate", "1e-30", "--validation", "0.1", "--save", "again.npz").stderr
    again = re.search(r"validation loss (\S+), accuracy (\S+) %", resumed)
    first = re.findall(r"validation loss (\S+),", said)[-1]
    check(again and abs(float(again[1]) / float(first) - 1) < 1e-3, f"the written model is not the trained one: {resumed} {said}")
    silent = train(MODEL, data, "--epochs", "1", "--save", "w.npz", "-q")
    check(silent.stderr == "" and silent.stdout == "", "-q prints " + silent.stderr)


def check_chosen(data):
    train(MODEL, data, "--trainable", "dense.*", "--save", "dense.npz", "-q", "--train", "loss=softmax_cross_entropy,optimizer=momentum")
    with zipfile.ZipFile("dense.npz") as file:
        check(sorted(file.namelist()) == ["dense.bias.npy", "dense.weight.npy"], f"--trainable: {file.namelist()}")
    with zipfile.ZipFile("dense.npz.state") as file:
        check(sum(name.startswith("states/") for name in file.namelist()) == 3, f"momentum keeps: {file.namelist()}")


def check_resumed(data):
    """Trainings in two parts are those in one, to the bit."""
    words = ["--validation", "0.2", "--seed", "3", "-q"]
    train(MODEL, data, "--epochs", "3", "--save", "whole.npz", *words)
    train(MODEL, data, "--epochs", "1", "--save", "part.npz", *words)
    check(content("whole.npz") != content("part.npz"), "two epochs more change nothing")
    train(MODEL, data, "--epochs", "3", "--resume", "part.npz", "--save", "part.npz", *words)
    for ending in ("", ".state"):
        check(content("whole.npz" + ending) == content("part.npz" + ending), f"a resumed training differs in FILE{ending}")
    train(MODEL, data, "--epochs", "2", "--resume", "part.npz", "--save", "more.npz", *words[:-1], texts=["trained for 3 epochs"])
    check(content("whole.npz") == content("more.npz"), "a training that is complete goes on")
    for change, text in ((("--seed", "4"), "with 3 as --seed"), (("--validation", "0.5"), "examples to train on")):
        given = {"--validation": "0.2", "--seed": "3", **dict([change])}
        train(MODEL, data, "--resume", "part.npz", "--save", "no.npz", *(word for pair in given.items() for word in pair), code=2, texts=[text])
    train(MODEL, data, "--resume", "part.npz", "--save", "no.npz", *words, "--train", "optimizer=momentum", code=2, texts=["states/", "another optimizer"])
    train(MODEL, data, "--resume", "nowhere.npz", "--save", "no.npz", code=2, texts=["nowhere.npz.state"])
    train(MODEL, data, "--resume", "w.txt", "--save", "no.npz", code=2, texts=["w.txt.state"])
    with open("broken.npz.state", "wb") as file:
        file.write(content("whole.npz"))  # an archive, but no state
    train(MODEL, data, "--resume", "broken.npz", "--save", "no.npz", code=2, texts=["is not the state of a training"])
    check(not os.path.exists("no.npz"), "a refused training leaves a file")


def check_interrupted(data):
    """Signals at some moments: each training that they end is saved, and goes on as if nothing had been."""
    epochs, words = 12, ["--seed", "5", "--validation", "0.1"]
    started = time.monotonic()
    train(MODEL, data, "--epochs", str(epochs), "--save", "whole.npz", "-q", *words)
    seconds, ended = time.monotonic() - started, 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        for name in ("cut.npz", "cut.npz.state"):
            if os.path.exists(name):
                os.remove(name)
        process = subprocess.Popen([FIRN, "train", MODEL, "--data", data, "--epochs", str(epochs), "--save", "cut.npz", "-q", *words])
        while not os.path.exists("cut.npz.state") and process.poll() is None:
            time.sleep(0.001)
        time.sleep(seconds * 0.05 * ended)
        process.send_signal(number)
        code = process.wait(timeout=60)
        check(code in (0, 128 + number), f"exit code {code} after signal {number}")
        ended += code != 0
        train(MODEL, data, "--epochs", str(epochs), "--resume", "cut.npz", "--save", "cut.npz", "-q", *words)
        for ending in ("", ".state"):
            check(content("whole.npz" + ending) == content("cut.npz" + ending), f"after signal {number} FILE{ending} differs")
    check(ended > 0, "no signal arrived before the end")


def check_batches():
    """Batches that do not divide the data."""
    some, other = points("some", 50), points("other", 7)
    varying = classifier("varying.onnx", "n")
    words = ["--train", "optimizer=sgd", "--learning-rate", "1", "--epochs", "20"]
    said = train(varying, some, *words, "--batch", "16", "--validation", other, "--save", "v.npz").stderr
    check("left out" not in said and said.count("accuracy 100.00 %") > 5, "batches of 16, and 2: " + said)
    fixed = classifier("fixed.onnx", 8)
    said = train(fixed, some, *words, "--save", "f.npz", texts=["2 of 50 examples are left out of each epoch"]).stderr
    check(said.count("left out") == 1, "what is left out is said once: " + said)
    train(fixed, some, *words, "--batch", "4", "--save", "no.npz", code=2, texts=["takes 8 examples at once"])
    train(fixed, other, *words, "--save", "no.npz", code=2, texts=["a step takes 8 examples, 'other' has 7"])
    train(fixed, some, *words, "--validation", other, "--save", "no.npz", code=2, texts=["--validation: there are 7 examples"])
    ranged = train(varying, some, "--dim", "n=1..10", "--batch", "11", "--save", "no.npz", code=2)
    check("11" in ranged.stderr and "10" in ranged.stderr, "a batch beyond --dim: " + ranged.stderr)
    train(varying, other, "--in-order", "--save", "a.npz", "-q")  # one batch, of all examples
    train(varying, other, "--seed", "9", "--save", "b.npz", "-q")
    train(varying, some, "--in-order", "--batch", "5", "--save", "c.npz", "-q")
    train(varying, some, "--seed", "9", "--batch", "5", "--save", "d.npz", "-q")
    check(content("c.npz") != content("d.npz"), "the order of the examples changes nothing")
    with zipfile.ZipFile("data.npz", "w") as file:
        for name in ("x", "labels"):
            file.writestr(name + ".npy", content(os.path.join("some", name + ".npy")))
    train(varying, "data.npz", "--in-order", "--batch", "5", "--save", "e.npz", "-q")
    check(content("c.npz") == content("e.npz"), "an archive gives something else than its files")


def check_numbers():
    """Losses of numbers, labels that are such, and a loss that is none."""
    varying, data = classifier("varying.onnx", "n"), points("numbers", 20)
    write_array("numbers/labels.npy", "<f4", "f", (20, 3), [0.25 * (i % 3) for i in range(60)])
    said = train(varying, data, "--epochs", "2", "--save", "n.npz").stderr
    check("loss mse (labels are floats)" in said and "accuracy" not in said, "labels that are numbers: " + said)
    broken = points("broken", 20)
    raw = bytearray(content("broken/x.npy"))
    raw[-16 * 5:-16 * 5 + 4] = struct.pack("<f", float("nan"))  # example 15
    with open("broken/x.npy", "wb") as file:
        file.write(raw)
    words = ["--in-order", "--batch", "5", "--epochs", "3"]
    train(varying, broken, *words, "--save", "nan.npz", code=1, texts=["the loss of step 4 (epoch 1, step 4 of it) is NaN", "'nan.npz' holds"])
    with zipfile.ZipFile("nan.npz.state") as file:
        check(file.read("states/step_count.npy")[-8:] == struct.pack("<q", 3), "three steps are saved before the fourth fails")
    with zipfile.ZipFile("nan.npz") as file:
        check(all(number == number for number in struct.unpack("<12f", file.read("fc.weight.npy")[-48:])), "NaN is saved")


def check_refused(digits):
    """Data that does not fit says what was found and what is wanted."""
    varying = classifier("varying.onnx", "n")
    words = ["--save", "no.npz"]

    def refused(what, *texts, more=()):
        train(varying, what, *words, *more, code=2, texts=texts)

    refused("nowhere", "'nowhere' is neither a folder")
    os.mkdir("empty")
    refused("empty", "no data in 'empty'", "labels.npy")
    refused(points("short", 20), "'missing' is neither", more=["--validation", "missing"])
    write_array("short/labels.npy", "|u1", "B", (19,), [0] * 19)
    refused("short", "19", "20")
    write_array("short/labels.npy", "|i1", "b", (20,), [0] * 13 + [3] + [0] * 6)
    refused("short", "labels.npy': the label of example 13 is 3", "3 classes: wanted 0 to 2")
    write_array("short/labels.npy", "|i1", "b", (20,), [-1] * 20)
    refused("short", "example 0 is -1")
    write_array("short/labels.npy", "|i1", "b", (20, 1), [0] * 20)
    refused("short", "labels.npy' is i8[20,1]", "i64[examples]")
    write_array("short/labels.npy", "<f4", "f", (20, 3), [0] * 60)
    refused("short", "is f32[20,3]", "i64[examples]", more=["--train", "loss=softmax_cross_entropy"])
    os.remove("short/labels.npy")
    refused("short", "'short' has no labels", "labels.npy")
    refused("short", "nothing for the labels", "i64[examples]", more=["--train", "loss=softmax_cross_entropy"])
    write_array("short/labels.npy", "|u1", "B", (20,), [0] * 20)
    write_array("short/x.npy", "<f8", "d", (20, 4), [0] * 80)
    refused("short", "x.npy' is f64[20,4], input 'x' wants f32[examples,4]")
    write_array("short/x.npy", "<f4", "f", (20, 5), [0] * 100)
    refused("short", "x.npy' is f32[20,5], input 'x' wants f32[examples,4]")
    write_array("short/z.npy", "<f4", "f", (20, 5), [0] * 100)
    refused("short", "z.npy' is for no input of the model: its inputs are 'x'")
    os.remove("short/x.npy")
    os.remove("short/z.npy")
    refused("short", "nothing for input 'x' (f32[n,4])")
    write_array("short/x.npy", "<f4", "f", (), [0])
    refused("short", "its first axis")
    with open("short/x.npy", "wb") as file:
        file.write(npy("<f4", (20, 4), bytes(7)))
    refused("short", "x.npy' is not a .npy file that can be read")
    some = points("fine", 20)
    for fraction in ("0", "1", "1.5", "-0.5", "nan"):
        refused(some, f"--validation '{fraction}' wants a fraction", more=["--validation", fraction])
    train(varying, some, "--save", "w.txt", code=2, texts=["saved as .npz, .safetensors or .onnx"])
    train(varying, some, "--save", "/nowhere/w.npz", code=2, texts=["No such file or directory"])
    train(varying, some, code=2, texts=["--save"])
    train(varying, digits, *words, code=2, texts=["image.npy"])
    check(not os.path.exists("no.npz") and not os.path.exists("no.npz.state"), "a refused training leaves files")


def main():
    with temporary_folder() as folder:
        os.chdir(folder)
        data = write_digits("digits", 600)
        check_digits(data)
        check_chosen(data)
        check_resumed(data)
        check_interrupted(data)
        check_batches()
        check_numbers()
        check_refused(data)
        check(not [name for name in os.listdir(".") if name.startswith(".")], f"files were left: {os.listdir('.')}")
    finish()


main()
