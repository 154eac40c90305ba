"""Digits of seven strokes at drawn places, as arrays of NumPy's files: data that the example network learns in seconds."""
import os
import struct

STROKES = (0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f)
BOXES = ((0, 0, 12, 2), (0, 0, 2, 10), (10, 0, 2, 10), (0, 9, 12, 2), (0, 10, 2, 10), (10, 10, 2, 10), (0, 18, 12, 2))


class Numbers:
    """Numbers from 0 to 1, the same on every machine."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self.state >> 8) / 16777216


def draw(digit, numbers):
    picture = [0.2 * numbers.next() for _ in range(28 * 28)]
    left, top, ink = 4 + int(8 * numbers.next()), 1 + int(6 * numbers.next()), 0.7 + 0.3 * numbers.next()
    for stroke, (column, row, width, height) in enumerate(BOXES):
        if STROKES[digit] >> stroke & 1:
            for y in range(top + row, top + row + height):
                start = y * 28 + left + column
                picture[start:start + width] = [ink] * width
    return picture


def npy(descriptor, dims, data):
    header = f"{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({''.join(f'{dim},' for dim in dims)}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def write_array(path, descriptor, letter, dims, numbers):
    with open(path, "wb") as file:
        file.write(npy(descriptor, dims, struct.pack(f"<{len(numbers)}{letter}", *numbers)))


def write_digits(folder, count, seed=1):
    """image.npy and labels.npy."""
    os.mkdir(folder)
    numbers, labels, pixels = Numbers(seed), [i * 7 % 10 for i in range(count)], []
    for label in labels:
        pixels += draw(label, numbers)
    write_array(os.path.join(folder, "image.npy"), "<f4", "f", (count, 1, 28, 28), pixels)
    write_array(os.path.join(folder, "labels.npy"), "<i4", "i", (count,), labels)
    return folder
