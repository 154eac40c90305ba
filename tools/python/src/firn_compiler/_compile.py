"""Requests to the compiler, made of Python's values."""
from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence, Union

from . import _firn
from ._errors import KINDS, Diagnostic, UsageError, error_of
from ._model import Model

if TYPE_CHECKING:
    ModelSource = Union[str, os.PathLike[str], bytes, bytearray, memoryview, Any]
    DimValue = Union[int, str, range, tuple[int, int], list[int]]
    Progress = Union[bool, Callable[[str], object], None]


class Source(NamedTuple):
    """A model as a path, or as bytes with a name for messages."""

    name: str
    data: bytes | None


class Request(NamedTuple):
    source: Source
    words: tuple[str, ...]  # options of the tool
    custom: Any  # functions that the code calls; they have to live as long
    symbols: tuple[tuple[str, int], ...] = ()  # their names and addresses
    cache: str = ""


def source_of(model: ModelSource, name: str | None = None) -> Source:
    """A path, bytes, an onnx.ModelProto, or what holds one (torch's ONNXProgram)."""
    if isinstance(model, (str, os.PathLike)):
        return Source(os.fspath(model), None)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return Source(name or "model.onnx", bytes(model))
    proto: Any = getattr(model, "model_proto", model)
    if hasattr(proto, "SerializeToString"):
        graph = getattr(getattr(proto, "graph", None), "name", "")
        return Source(name or re.sub(r"[^\w.-]", "_", graph or "model") + ".onnx", proto.SerializeToString())
    if isinstance(getattr(model, "onnx", None), bytes):
        return Source(name or "model.onnx", model.onnx)
    raise UsageError(f"wanted a path, bytes or an onnx.ModelProto, found a {type(model).__name__}")


def _dim_word(name: str, value: DimValue) -> str:
    if isinstance(value, range):
        text = f"{value.start}..{value[-1]}" + (f":{value.step}" if value.step != 1 else "") if len(value) else ""
    elif isinstance(value, tuple):
        text = "..".join(map(str, value))
    elif isinstance(value, list):
        text = "|".join(map(str, value))
    else:
        text = str(value)
    return f"--dim={name}={text}"


def _shape_word(name: str, shape: Sequence[int | str]) -> str:
    return f"--shape={name}={'x'.join(map(str, shape))}"


def words_of(cpu: str | None, dims: Mapping[str, DimValue] | None, threads: int | None,
             states: Mapping[str, str] | None, shapes: Mapping[str, Sequence[int | str]] | None,
             options: Sequence[str]) -> list[str]:
    if isinstance(options, str):
        raise UsageError(f"options: wanted a list of words, found the text {options!r}")
    words = []
    if cpu is not None and not any(re.match(r"--?(mcpu|multiversion)\b", word) for word in options):
        words.append(f"--mcpu={cpu}")
    if threads is not None:
        words.append(f"--threads={int(threads)}")
    words += [_dim_word(name, value) for name, value in (dims or {}).items()]
    words += [_shape_word(name, shape) for name, shape in (shapes or {}).items()]
    words += [f"--state={past}={present}" for past, present in (states or {}).items()]
    return words + list(options)


def _function_address(name: str, function: Any) -> int:
    if isinstance(function, int):
        return function
    import ctypes

    try:
        # A text would be cast to its address.
        address = None if isinstance(function, (str, bytes)) else ctypes.cast(function, ctypes.c_void_p).value
    except (TypeError, ctypes.ArgumentError):
        address = None
    if address is None:
        raise UsageError(f"custom: wanted a function of ctypes or an address for {name}, found a {type(function).__name__}")
    return address


def _custom_ops(custom: Mapping[str, Any] | None) -> tuple[list[str], list[tuple[str, int]]]:
    """Words and symbols of operators, each a function of ctypes or an address, or a pair with bytes of workspace."""
    words, symbols = [], []
    for name, given in (custom or {}).items():
        function, workspace = given if isinstance(given, tuple) else (given, 0)
        symbol = re.sub(r"\W", "_", name.rpartition(":")[2])
        words.append(f"--custom-op={name}={symbol}" + (f":{int(workspace)}" if workspace else ""))
        symbols.append((symbol, _function_address(name, function)))
    return words, symbols


_compilers: dict[str, _firn.Compiler] = {}
_compilers_lock = threading.Lock()


def _compiler(folder: str) -> _firn.Compiler:
    with _compilers_lock:
        if folder not in _compilers:
            _compilers[folder] = _firn.Compiler(folder)
        return _compilers[folder]


class _Bar:
    """Shows phases: with tqdm where it is installed, else on a line of a terminal."""

    def __init__(self, name: str) -> None:
        self._bar: Any = None
        try:
            self._bar = importlib.import_module("tqdm.auto").tqdm(desc=os.path.basename(name), unit=" phases", leave=False)
        except ImportError:
            self._is_shown = sys.stderr.isatty()

    def __call__(self, phase: str) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(phase, refresh=False)
            self._bar.update()
        elif self._is_shown:
            print(f"\r{phase:40}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._is_shown:
            print(f"\r{'':40}\r", end="", file=sys.stderr, flush=True)


def compile(model: ModelSource, *, cpu: str | None = "native", dims: Mapping[str, DimValue] | None = None,
            threads: int | None = None, states: Mapping[str, str] | None = None,
            shapes: Mapping[str, Sequence[int | str]] | None = None, custom: Mapping[str, Any] | None = None,
            options: Sequence[str] = (), name: str | None = None, cache: str | os.PathLike[str] | None = None,
            progress: Progress = None) -> Model:
    """Compiles a model: a path, bytes or an onnx.ModelProto.

    cpu       whose instructions are used: "native", all that this machine has, or a name such as "x86-64-v3"
    dims      values of symbolic dims: a number, or those that it may have: "1..8", (1, 8), range(32, 513, 32), [1, 4, 8]
    threads   how many threads a run uses at most; 1 unless it is given
    states    inputs that are an output's value in the next run: {"past": "present"}
    shapes    of inputs whose shapes the model leaves open: {"image": (1, 3, 224, 224)}
    custom    functions that compute operators: {"com.acme:Pool": function of ctypes}, or (function, bytes of workspace)
    options   any other option of `firn compile`: ["--precision=bf16"]
    name      of a model given as bytes, for messages; a name that ends in .hlo says that it is a graph in text form
    cache     a folder that keeps compiled models from process to process
    progress  a function that is called as each phase begins; True: a bar

    Raises ModelError, UsageError, UnsupportedError or InternalError. Ctrl-C ends a compilation.
    """
    source = source_of(model, name)
    custom_words, symbols = _custom_ops(custom)
    words = words_of(cpu, dims, threads, states, shapes, options) + custom_words
    return _compile(Request(source, tuple(words), custom, tuple(symbols), os.fspath(cache) if cache else ""), progress)


def compile_again(request: Request, more: Sequence[str]) -> Model:
    """The model of a request with more options."""
    return _compile(request._replace(words=(*request.words, *more)), None)


def _compile(request: Request, progress: Progress) -> Model:
    name, data = request.source
    bar = _Bar(name) if progress is True else None
    told = bar or (progress if callable(progress) else None)
    try:
        code, handle, messages = _compiler(request.cache).compile(name, data, list(request.words), list(request.symbols), told)
    finally:
        if bar:
            bar.close()
    diagnostics = [Diagnostic(KINDS[kind], message) for kind, message in messages]
    if handle is None:
        raise error_of(KINDS[code], diagnostics)
    return Model(handle, request, diagnostics)


def from_torch(module: Any, args: tuple[Any, ...], *, dynamic_shapes: Any = None, export: Mapping[str, Any] | None = None,
               **options: Any) -> Model:
    """Exports a module of PyTorch by torch.onnx.export(dynamo=True) and compiles it.

    `export` has further arguments of torch's function, `options` are those of compile().
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise UsageError(f"from_torch: PyTorch cannot be imported: {error}") from None
    arguments = {"dynamo": True, "dynamic_shapes": dynamic_shapes, **(export or {})}
    program = torch.onnx.export(module, args, **arguments)
    if program is None:
        raise UsageError("from_torch: torch.onnx.export made no program; it wants dynamo=True, and the package onnxscript")
    return compile(program, **{"name": type(module).__name__ + ".onnx", **options})
