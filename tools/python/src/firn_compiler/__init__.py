"""Firn, a compiler for neural networks, in Python.

    import firn_compiler as firn
    model = firn.compile("net.onnx")
    y = model(x)

compile() makes a model run in this process. Model.save() writes the object and the C++ header that programs link. The package
also holds the tool `firn` and a CMake package: CMAKE_PREFIX_PATH=$(python -m firn_compiler --cmake-dir).
"""
from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import _firn
from ._arrays import ElementType, Tensor
from ._compile import compile, from_torch
from ._errors import Diagnostic, Error, InternalError, ModelError, UnsupportedError, UsageError
from ._instance import Instance
from ._model import Dim, Model
from ._trainer import Step, Trainer

if _TYPE_CHECKING:
    from ._tool import (Benchmark, Inspection, Operator, Quantized, Saved, Verification, bench, explain, inspect, ops, quantize,
                        verify)

__version__: str = _firn.version()

__all__ = ["Benchmark", "Diagnostic", "Dim", "ElementType", "Error", "Inspection", "Instance", "InternalError", "Model",
           "ModelError", "Operator", "Quantized", "Saved", "Step", "Tensor", "Trainer", "UnsupportedError", "UsageError", "Verification", "bench",
           "cmake_dir", "compile", "explain", "from_torch", "include_dir", "inspect", "ops", "quantize", "verify"]

# These come from a module that imports what starts processes, which most programs do not need.
_OF_THE_TOOL = {"Benchmark", "Inspection", "Operator", "Quantized", "Saved", "Verification", "bench", "explain", "inspect", "ops",
                "quantize", "verify"}


def __getattr__(name: str) -> _Any:
    if name in _OF_THE_TOOL:
        from . import _tool

        return getattr(_tool, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def cmake_dir() -> str:
    """The prefix in which find_package(Firn) finds Firn."""
    return _os.path.dirname(_os.path.abspath(__file__))


def include_dir() -> str:
    """The folder of the headers that programs include."""
    return _os.path.join(cmake_dir(), "include")
