#!/usr/bin/env python3
"""Tensors of types that NumPy lacks in .npy files: bytes without a type, one for each element, as ml_dtypes saves them.
Integers are printed whole, however many digits they have."""
import os
import struct

from tool import check, expect, finish, temporary_folder, write_model
from model_writer import attribute, ints, node, num, value

I32, U64, I4, F8E4M3FN, F4E2M1 = 6, 13, 22, 17, 23


def npy(kind, dims, data, column_major=False):
    header = f"{{'descr': '{kind}', 'fortran_order': {column_major}, 'shape': ({','.join(map(str, dims))},), }}"
    header += " " * (-(11 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def written(path):
    data = open(path, "rb").read()
    length = struct.unpack("<H", data[8:10])[0]
    return data[10:10 + length].decode(), data[10 + length:]


def to(kind):
    return attribute("to", 2, num(3, kind))


def check_files(kind, codes, integers, *flags):
    write_model("cast.onnx", [node("Cast", ["x"], ["y"], to(I32)), node("Transpose", ["x"], ["t"], ints("perm", [1, 0]))],
                [value("x", [3, 1], kind)], [value("y", [3, 1], I32), value("t", [1, 3], kind)])
    for descriptor, column_major in (("|V1", False), ("<V1", True)):
        with open("x.npy", "wb") as file:
            file.write(npy(descriptor, [3, 1], bytes(codes), column_major))
        expect(["run", "cast.onnx", "--input", "x=x.npy", "--output-dir", "out", *flags], 0)
        header, data = written("out/y.npy")
        check("'<i4'" in header and data == struct.pack("<3i", *integers), f"type {kind} is read as {data}")
        header, data = written("out/t.npy")
        check("'|V1'" in header and "(1,3,)" in header and data == bytes(codes), f"type {kind} is written as {header} {data}")


with temporary_folder() as folder:
    os.chdir(folder)
    check_files(F8E4M3FN, [0x38, 0xC0, 0x7E], [1, -2, 448])
    check_files(I4, [0xF8, 7, 0xFF], [-8, 7, -1])
    check_files(F4E2M1, [2, 0xF, 4], [1, -6, 2])
    check_files(I4, [0xF8, 7, 0xFF], [-8, 7, -1], "--engine=eval")
    numbers = [2 ** 64 - 1, 2 ** 63, 2 ** 53 + 1]
    write_model("same.onnx", [node("Identity", ["x"], ["y"])], [value("x", [3], U64)], [value("y", [3], U64)])
    with open("x.npy", "wb") as file:
        file.write(npy("<u8", [3], struct.pack("<3Q", *numbers)))
    expect(["run", "same.onnx", "--input", "x=x.npy"], 0, f"y: u64[3] = {numbers}")
    with open("x.npy", "wb") as file:
        file.write(npy("<V3", [3, 1], bytes(9)))
    expect(["run", "cast.onnx", "--input", "x=x.npy"], 2, "unknown element type")
finish()
