"""The packaged tool: verbs that the library has no function for."""
from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

import numpy as np

from ._compile import Request, Source, source_of, words_of
from ._errors import KINDS, Diagnostic, UsageError, error_of
from ._model import Model

if TYPE_CHECKING:
    from ._compile import DimValue, ModelSource

FOLDER = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(FOLDER, "bin", "firn")


class Saved(NamedTuple):
    object: Path
    header: Path
    manifest: Path


def run_tool(words: Sequence[str], data: bytes | None = None, accepted: Sequence[int] = (0,)) -> str:
    """What the tool prints; its exit codes are exceptions."""
    done = subprocess.run([TOOL, *words], input=data if data is not None else b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode in accepted:
        return done.stdout.decode()
    kind = KINDS[done.returncode] if 0 < done.returncode < len(KINDS) else "internal"
    text = done.stderr.decode(errors="replace").strip()
    raise error_of(kind, _diagnostics(kind, text), f"the tool ended with {done.returncode}")


def _diagnostics(kind: str, text: str) -> list[Diagnostic]:
    """Messages go on in lines that are indented; the last line counts them."""
    found: list[Diagnostic] = []
    for line in text.split("\n"):
        if re.fullmatch(r"\d+ errors?; nothing was written", line):
            continue
        if line.startswith(" ") and found:
            found[-1] = found[-1]._replace(message=found[-1].message + "\n" + line)
        elif line:
            is_warning = ": warning: " in line
            found.append(Diagnostic("warning" if is_warning else kind, re.sub(r"^.*?: (error|warning): ", "", line)))
    return found


def save(request: Request, folder: str | os.PathLike[str], cls: str | None, options: Sequence[str]) -> Saved:
    stem = os.path.basename(request.source.name).rsplit(".", 1)[0]
    words = [*request.words, *options, "--quiet", "-o", os.path.join(os.fspath(folder), stem)]
    if cls is not None:
        words += ["--class", cls]
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        run_tool(["compile", _on_disk(request.source, scratch), *words])
    return Saved(*(Path(folder) / (stem + suffix) for suffix in (".o", ".h", ".json")))


def _on_disk(source: Source, scratch: str) -> str:
    """The path of a model; headers and manifests name the file."""
    if source.data is None:
        return source.name
    path = os.path.join(scratch, os.path.basename(source.name))
    Path(path).write_bytes(source.data)
    return path


def _request(model: ModelSource | Model, cpu: str | None, dims: Mapping[str, DimValue] | None, options: Sequence[str]) -> Request:
    if isinstance(model, Model):
        return model._request._replace(words=model._request.words + tuple(options))
    return Request(source_of(model), tuple(words_of(cpu, dims, None, None, None, options)), None)


class Report:
    """What a verb found: `data` is the tool's JSON."""

    title = "report"

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {json.dumps(self.data)[:200]}>"

    def _repr_html_(self) -> str:
        from ._html import report_page

        return report_page(self.title, self.data)


class Inspection(Report):
    """What a model is, and whether it compiles."""

    title = "inspect"

    @property
    def compiles(self) -> bool:
        return bool(self.data["compiles"])

    @property
    def verdict(self) -> str:
        return str(self.data["verdict"])


class Verification(Report):
    """Cases of stored inputs and outputs, and how the compiled code did."""

    title = "verify"

    @property
    def ok(self) -> bool:
        return bool(self.data["wrong"] == 0 and self.data["refused"] == 0)

    @property
    def cases(self) -> list[dict[str, Any]]:
        return list(self.data["cases"])


class Benchmark(Report):
    """The time of a run and of each kernel."""

    title = "bench"

    @property
    def seconds(self) -> float:
        return float(self.data["median_s"])

    @property
    def kernels(self) -> list[dict[str, Any]]:
        return list(self.data["kernels"])


class Operator(NamedTuple):
    name: str
    opsets: str
    types: str
    derivative: str
    cases_passed: int
    documentation: str


class Quantized(NamedTuple):
    """A model in 8-bit integers: `onnx` are the bytes of a standard QDQ model, which compile() takes."""

    onnx: bytes
    summary: str
    report: str  # a page of HTML

    def save(self, path: str | os.PathLike[str]) -> Path:
        Path(path).write_bytes(self.onnx)
        return Path(path)

    def _repr_html_(self) -> str:
        from ._html import text_page

        return text_page("quantize", self.summary)


def inspect(model: ModelSource | Model, *, cpu: str | None = "native", dims: Mapping[str, DimValue] | None = None,
            options: Sequence[str] = ()) -> Inspection:
    """Says what a model is and whether it compiles; one that does not is no error."""
    request = _request(model, cpu, dims, options)
    printed = _with_model("inspect", request, ["--json"], (0, 1, 3))
    return Inspection(json.loads(printed))


def ops(filter: str = "") -> list[Operator]:
    """The ONNX operators that compile, those whose names contain the text."""
    return [Operator(**each) for each in json.loads(run_tool(["ops", "--json", *([filter] if filter else [])]))]


def bench(model: ModelSource | Model, *, seconds: float = 2.0, at: Mapping[str, int] | None = None, cpu: str | None = "native",
          dims: Mapping[str, DimValue] | None = None, options: Sequence[str] = ()) -> Benchmark:
    """Times a model, kernel by kernel, in a process of its own. `at`: values of dims that vary."""
    words = ["--json", f"--seconds={seconds}", *(f"--at={name}={value}" for name, value in (at or {}).items())]
    return Benchmark(json.loads(_with_model("bench", _request(model, cpu, dims, options), words)))


def verify(*cases: str | os.PathLike[str], against: str | None = None, cpu: str | None = "native",
           dims: Mapping[str, DimValue] | None = None, options: Sequence[str] = ()) -> Verification:
    """Compares models with stored inputs and outputs: folders that hold model.onnx and test_data_set_*.

    against="f32" compares them with themselves at their own precision. Wrong answers raise nothing: see `ok`.
    """
    words = words_of(cpu, dims, None, None, None, options)
    if against is not None:
        words.append(f"--against={against}")
    printed = run_tool(["verify", "--json", *words, *(os.fspath(case) for case in cases)], accepted=(0, 1, 3))
    if not printed.strip():
        raise UsageError("verify: the folders hold no case")
    return Verification(json.loads(printed))


def explain(model: ModelSource | Model, *, cpu: str | None = "native", dims: Mapping[str, DimValue] | None = None,
            options: Sequence[str] = ()) -> str:
    """The plan of every kernel and what the cost model weighed, as lines of a schedule database."""
    with tempfile.TemporaryDirectory() as scratch:
        printed = _with_model("compile", _request(model, cpu, dims, options), ["--explain", "-o", os.path.join(scratch, "model")])
    return printed[printed.find("firn-schedules"):]


def quantize(model: ModelSource, data: str | os.PathLike[str] | Iterable[Any], *, budget: float | None = None,
             keep: Sequence[str] = (), cpu: str | None = "native", dims: Mapping[str, DimValue] | None = None,
             options: Sequence[str] = ()) -> Quantized:
    """Makes a model compute in 8-bit integers, by calibration data.

    data     a folder (.npy, .npz or .pb files), or samples: each an array, or a dict of arrays by the inputs' names
    budget   the largest relative error of the outputs on the data: layers stay in floats until it holds
    keep     nodes that stay in floats
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.fspath(data) if isinstance(data, (str, os.PathLike)) else _written(data, scratch)
        result, page = os.path.join(scratch, "model.int8.onnx"), os.path.join(scratch, "report.html")
        words = ["--data", folder, "-o", result, "--report", page, *(f"--keep={node}" for node in keep)]
        if budget is not None:
            words.append(f"--budget={budget}")
        summary = _with_model("quantize", _request(model, cpu, dims, options), words).replace(result, "model.int8.onnx")
        return Quantized(Path(result).read_bytes(), summary, Path(page).read_text(encoding="utf-8"))


def _written(samples: Iterable[Any], scratch: str) -> str:
    folder = os.path.join(scratch, "data")
    os.mkdir(folder)
    for number, sample in enumerate(samples):
        path = os.path.join(folder, f"{number:06}")
        if isinstance(sample, Mapping):
            arrays: dict[str, Any] = {name: np.asarray(value) for name, value in sample.items()}
            np.savez(path + ".npz", **arrays)
        else:
            np.save(path + ".npy", np.asarray(sample))
    if not os.listdir(folder):
        raise UsageError("quantize: wanted a folder or samples to calibrate by, found none")
    return folder


def _with_model(verb: str, request: Request, words: Sequence[str], accepted: Sequence[int] = (0,)) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        return run_tool([verb, _on_disk(request.source, scratch), *request.words, *words], accepted=accepted)
