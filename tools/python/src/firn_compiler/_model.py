"""Compiled models: what they are, and calls of them."""
from __future__ import annotations

import collections
import json
import os
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

import numpy as np

from . import _firn
from ._arrays import ELEMENT_TYPES, Array, Tensor, input_array
from ._errors import Diagnostic, UsageError
from ._instance import Instance

if TYPE_CHECKING:
    from ._compile import Request
    from ._tool import Saved
    from ._trainer import Trainer


class Dim(NamedTuple):
    """The values that a dim may have."""

    name: str
    lower: int
    upper: int
    multiple: int
    allowed: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.allowed:
            return " or ".join(map(str, self.allowed))
        return f"{self.lower} to {self.upper}" + (f" in multiples of {self.multiple}" if self.multiple > 1 else "")


def _tensors(handle: _firn.Model, described: Sequence[Mapping[str, Any]], kind: int) -> tuple[Tensor, ...]:
    all_tensors = []
    for index, ((name, number, shape, size), facts) in enumerate(zip(handle.tensors(kind), described)):
        all_tensors.append(Tensor(name, facts["identifier"], kind, index, ELEMENT_TYPES[number], tuple(facts["dims"]),
                                  tuple(shape), size, bool(facts.get("counted_dims"))))
    return tuple(all_tensors)


class Model:
    """Code and weights, which do not change: any number of threads may call one at the same time.

    `model(x)`, `model(image=x)` compute the outputs for arrays of NumPy or of any library that speaks DLPack. Arrays of
    the model's type that are C-contiguous are read where they lie.
    """

    def __init__(self, handle: _firn.Model, request: Request, diagnostics: Sequence[Diagnostic]) -> None:
        self._handle = handle
        self._request = request
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        self.manifest: dict[str, Any] = json.loads(handle.manifest())
        self.name: str = self.manifest["source"]
        self.arena_bytes: int = handle.arena_bytes()
        self.inputs = _tensors(handle, self.manifest["inputs"], _firn.INPUT)
        self.outputs = _tensors(handle, self.manifest["outputs"], _firn.OUTPUT)
        self.states = _tensors(handle, self.manifest["states"], _firn.STATE)
        facts = {each["name"]: each for each in self.manifest.get("dims", ())}
        self.dims = {name: Dim(name, lower, upper, multiple, tuple(facts.get(name, {}).get("allowed", ())))
                     for name, lower, upper, multiple in handle.dims()}
        self._symbols = {each["symbol"]: each["name"] for each in facts.values()}
        self._idle: list[Instance] = []  # that calls have left; each call takes one or makes one
        self._most_idle = os.cpu_count() or 1
        self._outputs_type = None
        if len(self.outputs) != 1:
            self._outputs_type = collections.namedtuple(  # type: ignore[misc]
                "Outputs", [output.identifier for output in self.outputs], rename=True)

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """Computes the outputs: an array, or a named tuple of several. States begin at their first values."""
        arrays = self._arguments(positional, named, True)
        try:
            instance = self._idle.pop()
            instance.model = self
        except IndexError:
            instance = Instance(self)
        result = self._compute(instance, arrays)
        if len(self._idle) < self._most_idle:
            del instance.model  # an idle instance that held its model would keep it
            self._idle.append(instance)
        return result

    def _compute(self, instance: Instance, arrays: list[tuple[Tensor, Array]]) -> Any:
        if self.states:
            instance.reset()
        instance.set_dims(self._dims_of(arrays))
        lent: list[tuple[Tensor, Array, Any]] = [(tensor, *instance._readable(array, tensor)) for tensor, array in arrays]
        results: dict[int, Array] = {}
        for tensor in self.outputs:
            # The size of others is known when they are computed, and views of them are copied.
            if not (tensor.is_counted or tensor.is_packed or tensor.element.name == "string"):
                results[tensor.number] = np.empty(instance._shape(tensor), tensor.element.storage)
                lent.append((tensor, results[tensor.number], None))
        instance._run(lent)
        shown = []
        for tensor in self.outputs:
            if tensor.number in results:
                shown.append(results[tensor.number].view(tensor.element.dtype))
            else:
                view = instance._view(tensor)
                shown.append(view.copy() if tensor.is_counted else view)
        return self._result(shown)

    def instance(self, threads: int | None = None) -> Instance:
        """Memory of its own for one user: states go on from run to run, views of tensors need no copy.

        `threads`: how many work at a run; as many as the model was compiled for unless it is given.
        """
        return Instance(self, threads)

    def trainer(self, loss: str, optimizer: str = "adam", trainable: Sequence[str] | str | None = None,
                learning_rate: float | None = None, **options: Any) -> Trainer:
        """Compiles the model once more, with a training step, and makes what runs it.

        loss           "softmax_cross_entropy", "bce_with_logits", "mse", "l1", "huber", or "output:NAME", one that the
                       model computes
        optimizer      "adam", "adamw", "sgd", "momentum", "nesterov", "adagrad", "rmsprop"
        trainable      names of tensors, or patterns such as "fc.*"; all floats with dims unless it is given
        learning_rate  of the first steps; it may be set anew at any time
        options        the other words of `firn compile --train`: weight_decay=0.01, clip_norm=1.0, class_weights=[1, 2]
        """
        from ._compile import compile_again
        from ._trainer import Trainer, training_words

        return Trainer(compile_again(self._request, training_words(loss, optimizer, trainable, options)), learning_rate)

    def save(self, folder: str | os.PathLike[str], cls: str | None = None, *, options: Sequence[str] = ()) -> Saved:
        """Writes object, header and manifest as the tool does, with the options that this model was compiled with."""
        from ._tool import save

        return save(self._request, folder, cls, options)

    def _find(self, name: str, tensors: Sequence[Tensor]) -> Tensor:
        for tensor in tensors:
            if name in (tensor.name, tensor.identifier):
                return tensor
        known = ", ".join(tensor.name for tensor in tensors) or "none"
        raise UsageError(f"{self.name}: there is no {name!r}; wanted: {known}")

    def _arguments(self, positional: Sequence[Any], named: Mapping[str, Any], all_wanted: bool) -> list[tuple[Tensor, Array]]:
        if len(positional) > len(self.inputs):
            raise UsageError(f"{self.name}: wanted {len(self.inputs)} inputs, found {len(positional)}")
        values = {tensor.number: value for tensor, value in zip(self.inputs, positional)}
        for name, value in named.items():
            tensor = self._find(name, self.inputs)
            if tensor.number in values:
                raise UsageError(f"{tensor.name}: given twice")
            values[tensor.number] = value
        missing = [str(tensor) for tensor in self.inputs if tensor.number not in values]
        if missing and all_wanted:
            raise UsageError(f"{self.name}: wanted also {', '.join(missing)}")
        return [(tensor, input_array(values[tensor.number], tensor)) for tensor in self.inputs if tensor.number in values]

    def _dims_of(self, arrays: Sequence[tuple[Tensor, Array]]) -> dict[str, int]:
        """The values of dims that vary, as the shapes of arrays have them."""
        dims: dict[str, int] = {}
        if not self._symbols:
            return dims
        for tensor, array in arrays:
            if array.ndim != len(tensor.dims):
                raise UsageError(f"{tensor.name}: wanted {len(tensor.dims)} dims ({','.join(map(str, tensor.dims))}), found "
                                 f"shape {list(array.shape)}")
            for extent, dim in zip(array.shape, tensor.dims):
                name = self._symbols.get(str(dim))
                if name is not None and dims.setdefault(name, extent) != extent:
                    raise UsageError(f"{tensor.name}: wanted {dims[name]} for {name}, as other inputs have it, found shape "
                                     f"{list(array.shape)}")
        return dims

    def _result(self, arrays: list[Any]) -> Any:
        return arrays[0] if self._outputs_type is None else self._outputs_type(*arrays)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        return f"<Model {self.name}: {inputs} -> {outputs}>"

    def _repr_html_(self) -> str:
        from ._html import model_page

        return model_page(self)
