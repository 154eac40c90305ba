"""Element types, and arrays that are lent to the compiled code without a copy wherever type and layout allow it."""
from __future__ import annotations

import importlib
from typing import Any, NamedTuple, Tuple, Union

import numpy as np
import numpy.typing as npt

from . import _firn
from ._errors import UsageError

Array = npt.NDArray[Any]


class ElementType(NamedTuple):
    name: str  # as in manifests
    storage: np.dtype[Any]  # what numpy calls the bytes in memory
    bits: int
    library_name: str = ""  # of a type of ml_dtypes; empty: numpy has the type itself

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of arrays: ml_dtypes' where that is installed, else integers of the same bits."""
        if self.library_name:
            try:
                found: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), self.library_name))
                return found
            except (ImportError, AttributeError):
                pass
        return self.storage

    @property
    def shown(self) -> str:
        return "str" if self.name == "string" else self.library_name or self.storage.name


def _plain(name: str, numpy_name: str) -> ElementType:
    dtype = np.dtype(numpy_name)
    return ElementType(name, dtype, dtype.itemsize * 8)


# By the numbers of ONNX. A string is an address and a number of bytes.
ELEMENT_TYPES = {
    1: _plain("f32", "float32"), 2: _plain("u8", "uint8"), 3: _plain("i8", "int8"), 4: _plain("u16", "uint16"),
    5: _plain("i16", "int16"), 6: _plain("i32", "int32"), 7: _plain("i64", "int64"),
    8: ElementType("string", np.dtype([("data", "uintp"), ("size", "uint64")]), 128), 9: _plain("bool", "bool"),
    10: _plain("f16", "float16"), 11: _plain("f64", "float64"), 12: _plain("u32", "uint32"), 13: _plain("u64", "uint64"),
    14: _plain("c64", "complex64"), 15: _plain("c128", "complex128"),
    16: ElementType("bf16", np.dtype("uint16"), 16, "bfloat16"),
    17: ElementType("f8e4m3fn", np.dtype("uint8"), 8, "float8_e4m3fn"),
    18: ElementType("f8e4m3fnuz", np.dtype("uint8"), 8, "float8_e4m3fnuz"),
    19: ElementType("f8e5m2", np.dtype("uint8"), 8, "float8_e5m2"),
    20: ElementType("f8e5m2fnuz", np.dtype("uint8"), 8, "float8_e5m2fnuz"),
    21: ElementType("u4", np.dtype("uint8"), 4), 22: ElementType("i4", np.dtype("int8"), 4),
    23: ElementType("f4e2m1", np.dtype("uint8"), 4),
    24: ElementType("f8e8m0", np.dtype("uint8"), 8, "float8_e8m0fnu"),
    25: ElementType("u2", np.dtype("uint8"), 2), 26: ElementType("i2", np.dtype("int8"), 2),
}


class Tensor(NamedTuple):
    """What a model says of an input, an output or a state."""

    name: str
    identifier: str  # the name made into an identifier, for keyword arguments and named tuples
    kind: int
    number: int  # among those of the kind
    element: ElementType
    dims: Tuple[Union[int, str], ...]  # numbers, or expressions of dims that vary
    shape: Tuple[int, ...]  # the largest
    bytes: int  # the most
    is_counted: bool  # a run counts how large it is

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(object) if self.element.name == "string" else self.element.dtype

    @property
    def is_packed(self) -> bool:
        return self.element.bits < 8

    def __str__(self) -> str:
        return f"{self.name}: {self.element.name}[{','.join(map(str, self.dims))}]"

    def __repr__(self) -> str:
        return str(self)


def _borrow(value: Any, tensor: Tensor, writable: bool) -> tuple[Array, str]:
    device = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else 1
    if device not in (1, 3):  # CPU, and memory of the host that an accelerator can read
        raise UsageError(f"{tensor.name}: wanted an array in the memory of the CPU, found one on DLPack's device {device}")
    borrowed = _firn.borrow(value, writable)
    if borrowed is None:
        what = "writable array" if writable else "array"
        raise UsageError(f"{tensor.name}: wanted a {what} of {tensor.element.shown}, found a {type(value).__name__} that "
                         "cannot be read by DLPack as one")
    return borrowed


def _found_type(array: Array, name: str) -> str:
    return name or array.dtype.name or str(array.dtype)


def _check_type(array: Array, name: str, tensor: Tensor) -> Array:
    element = tensor.element
    if tensor.is_packed and not name and array.dtype.name == f"{element.storage.name.rstrip('8')}{element.bits}":
        return array.astype(element.storage)  # arrays of ml_dtypes have a byte for each element
    if element.library_name and (name or array.dtype.name) == element.library_name:
        return array.view(element.storage) if array.dtype != element.storage else array
    if (name and not element.library_name) or array.dtype != element.storage:
        found = _found_type(array, name)
        hint = ""
        if not name and not element.library_name and array.dtype.kind in "fiub":
            hint = f"; x.astype({element.shown!r}) converts it"
        raise UsageError(f"{tensor.name}: wanted {element.shown}, found {found}{hint}")
    return array


def _check_shape(array: Array, shape: tuple[int, ...], tensor: Tensor) -> None:
    if array.shape != shape:
        raise UsageError(f"{tensor.name}: wanted shape {list(shape)} ({','.join(map(str, tensor.dims))}), "
                         f"found {list(array.shape)}")


def input_array(value: Any, tensor: Tensor) -> Array:
    """The array of the model's type that a value is; numbers and lists are converted, arrays are not."""
    if tensor.element.name == "string":
        return np.asarray(value, dtype=object)
    if isinstance(value, np.ndarray):
        return _check_type(value, "", tensor)
    if hasattr(value, "__dlpack__"):
        return _check_type(*_borrow(value, tensor, False), tensor)
    if hasattr(value, "__array__"):
        return _check_type(np.asarray(value), "", tensor)
    try:
        return np.asarray(value, dtype=tensor.dtype).view(tensor.element.storage)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{tensor.name}: wanted an array of {tensor.element.shown}, found a {type(value).__name__}: "
                         f"{error}") from None


def bindable(array: Array, shape: tuple[int, ...], tensor: Tensor) -> tuple[Array, Any]:
    """An array in the layout that the code reads, and what has to live as long: the array itself, or one copy."""
    _check_shape(array, shape, tensor)
    if tensor.element.name == "string":
        return _texts(array, tensor)
    if tensor.is_packed:
        return pack(array, tensor.element), None
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.array(array, order="C")
    return array, None


def output_buffer(value: Any, shape: tuple[int, ...], tensor: Tensor) -> Array:
    """The memory of the caller's into which a run writes; it has to be exactly as the code writes it."""
    if tensor.element.name == "string" or tensor.is_packed or tensor.is_counted:
        raise UsageError(f"{tensor.name}: an output of {tensor}, whose memory a run decides, takes no array of the caller's")
    if isinstance(value, np.ndarray):
        array, name = value, ""
    elif hasattr(value, "__dlpack__"):
        array, name = _borrow(value, tensor, True)
    else:
        raise UsageError(f"{tensor.name}: wanted an array to write to, found a {type(value).__name__}")
    array = _check_type(array, name, tensor)
    _check_shape(array, shape, tensor)
    if not array.flags.writeable:
        raise UsageError(f"{tensor.name}: wanted an array that can be written to, found a read-only one")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise UsageError(f"{tensor.name}: wanted a C-contiguous array to write to, found strides {list(array.strides)}")
    return array


def shown_array(memory: Array, shape: tuple[int, ...], tensor: Tensor) -> Array:
    """The bytes of a tensor as an array: a view, but for strings and elements below a byte, which are copies."""
    element = tensor.element
    if element.name == "string":
        return _strings(memory.view(element.storage)).reshape(shape)
    if tensor.is_packed:
        return unpack(memory, shape, element)
    return memory.view(element.dtype).reshape(shape)


def pack(array: Array, element: ElementType) -> Array:
    """Elements below a byte, the first in the lowest bits."""
    per_byte = 8 // element.bits
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & (2 ** element.bits - 1)
    flat = np.concatenate([flat, np.zeros(-flat.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    shifts = (np.arange(per_byte) * element.bits).astype(np.uint8)
    packed: Array = np.bitwise_or.reduce(flat << shifts, axis=1).astype(np.uint8)
    return packed


def unpack(memory: Array, shape: tuple[int, ...], element: ElementType) -> Array:
    shifts = (np.arange(8 // element.bits) * element.bits).astype(np.uint8)
    values = ((memory[:, None] >> shifts) & (2 ** element.bits - 1)).reshape(-1)[: int(np.prod(shape))]
    if element.name.startswith("i"):
        top = 8 - element.bits
        values = (values << top).view(np.int8) >> top
    found: Array = values.astype(element.storage).reshape(shape)
    return found


def _texts(array: Array, tensor: Tensor) -> tuple[Array, Any]:
    try:
        encoded = [each if isinstance(each, bytes) else each.encode() for each in array.reshape(-1).tolist()]
    except AttributeError:
        raise UsageError(f"{tensor.name}: wanted strings, found an array with other elements") from None
    texts = np.zeros(len(encoded), tensor.element.storage)
    letters = np.frombuffer(b"".join(encoded) or b"\0", np.uint8)
    sizes = np.array([len(each) for each in encoded], np.uint64)
    texts["size"] = sizes
    texts["data"] = _firn.address_of(letters) + np.cumsum(sizes) - sizes
    return texts, letters


def _strings(texts: Array) -> Array:
    import ctypes

    strings = np.empty(texts.shape, dtype=object)
    for place, (data, size) in enumerate(texts.tolist()):
        strings[place] = ctypes.string_at(data, size).decode(errors="surrogateescape") if size else ""
    return strings
