"""Instances: memory, states and threads of one user of a model."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping

import numpy as np

from . import _firn
from ._arrays import Array, Tensor, bindable, input_array, output_buffer, shown_array
from ._errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from ._model import Model

_UNSUPPORTED_CPU, _CUSTOM_OP = 2, 12  # FIRN_STATUS_ of firn/abi.h


def check(status: int, what: str) -> None:
    if status != 0:
        message = f"{what}: {_firn.status_message(status)}"
        if status & 0xFF == _CUSTOM_OP:
            message += f"; it returned {status >> 8}"
        raise (UnsupportedError if status & 0xFF == _UNSUPPORTED_CPU else UsageError)(message)


class Views(Mapping[str, Array]):
    """Tensors of an instance by their names. Each array is a view that keeps the instance's memory alive."""

    def __init__(self, instance: Instance, tensors: tuple[Tensor, ...]) -> None:
        self._instance = instance
        self._tensors = tensors

    def _find(self, name: str) -> Tensor:
        for tensor in self._tensors:
            if name in (tensor.name, tensor.identifier):
                return tensor
        raise KeyError(f"there is no {name!r}; there are: {', '.join(each.name for each in self._tensors)}")

    def __getitem__(self, name: str) -> Array:
        return self._instance._view(self._find(name))

    def __setitem__(self, name: str, value: Any) -> None:
        self._instance._write(self._find(name), value)

    def __iter__(self) -> Iterator[str]:
        return iter(tensor.name for tensor in self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return "{" + ", ".join(map(str, self._tensors)) + "}"


class Instance:
    """Runs a model in memory of its own, for one thread at a time. States go on from run to run."""

    def __init__(self, model: Model, threads: int | None = None) -> None:
        self.model = model
        self._handle: _firn.Instance | None = _firn.Instance(model._handle)
        self._arena = self._handle.arena()
        self._bound: dict[tuple[int, int], tuple[Array, Any]] = {}  # by bind(), with what has to live as long
        self._texts: list[Any] = []  # strings of the last run, which its outputs may point into
        self._dims = {dim.name: dim.upper for dim in model.dims.values()}
        if threads is not None:
            if threads < 1:
                raise UsageError(f"threads: wanted 1 or more, found {threads}")
            self._handle.lend(threads)

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Gives the memory back as soon as no view of it is left."""
        self._handle = None
        self._bound.clear()

    @property
    def _open(self) -> _firn.Instance:
        if self._handle is None:
            raise UsageError("the instance is closed")
        return self._handle

    # Views hold the instance. It makes them anew, so that its memory is free as soon as nobody uses it.
    @property
    def inputs(self) -> Views:
        return Views(self, self.model.inputs)

    @property
    def outputs(self) -> Views:
        return Views(self, self.model.outputs)

    @property
    def states(self) -> Views:
        return Views(self, self.model.states)

    @property
    def dims(self) -> dict[str, int]:
        """The dims that vary, as they are set."""
        return dict(self._dims)

    def set_dims(self, dims: Mapping[str, int] | None = None, **named: int) -> None:
        """Sets dims that vary; views of before keep their shapes."""
        for name, value in {**(dims or {}), **named}.items():
            if name not in self._dims:
                known = ", ".join(self._dims) or "none"
                raise UsageError(f"there is no dim {name!r} that varies; there are: {known}")
            if value != self._dims[name]:
                status = self._open.set_dim(name, int(value))
                if status != 0:
                    raise UsageError(f"the dim {name} may be {self.model.dims[name]}, found {value}")
                self._dims[name] = int(value)

    def reset(self) -> None:
        """States back to their first values."""
        self._open.reset()

    def bind(self, name: str, array: Any) -> None:
        """Has an input or output lie in the memory of an array from now on; None: in the instance's own."""
        tensor = self.model._find(name, self.model.inputs + self.model.outputs)
        key = (tensor.kind, tensor.number)
        if array is None:
            self._bound.pop(key, None)
            check(self._open.bind(*key, 0, 0), tensor.name)
            return
        if tensor.kind == _firn.INPUT:
            found = input_array(array, tensor)
            self.set_dims(self.model._dims_of([(tensor, found)]))
            memory, also = self._readable(found, tensor)
        else:
            memory, also = output_buffer(array, self._shape(tensor), tensor), None
        self._bound[key] = (memory, (array, also))
        self._lend(tensor, memory)

    def run(self, *positional: Any, out: Mapping[str, Any] | None = None, **named: Any) -> Any:
        """Computes the outputs. Inputs that are not given are read from where they lie: `inputs`, or bound arrays.

        `out` maps names of outputs to arrays that the run writes to. Returns the output, or a named tuple of several;
        those that are not in `out` are views that the next run overwrites.
        """
        arrays = self.model._arguments(positional, named, False)
        self.set_dims(self.model._dims_of(arrays))
        lent = [(tensor, *self._readable(array, tensor)) for tensor, array in arrays]
        wanted = []
        for name, value in (out or {}).items():
            tensor = self.model._find(name, self.model.outputs)
            wanted.append((tensor, output_buffer(value, self._shape(tensor), tensor), value))
        self._check_overlap([(tensor, memory) for tensor, memory, _ in wanted], [memory for _, memory, _ in lent])
        self._run(lent + wanted)
        given = {tensor.number: value for tensor, _, value in wanted}
        return self.model._result([given[tensor.number] if tensor.number in given else self._view(tensor)
                                   for tensor in self.model.outputs])

    def _readable(self, array: Array, tensor: Tensor) -> tuple[Array, Any]:
        memory, also = bindable(array, self._shape(tensor), tensor)
        # The run that reads an output of the run before would overwrite it.
        return (memory.copy() if self._is_own(memory) else memory), also

    def _is_own(self, memory: Array) -> bool:
        return self._arena <= _firn.address_of(memory) < self._arena + self.model.arena_bytes

    def _check_overlap(self, written: list[tuple[Tensor, Array]], read: list[Array]) -> None:
        for place, (tensor, memory) in enumerate(written):
            others = read + [later for _, later in written[place + 1:]]
            if self._is_own(memory) or any(np.may_share_memory(memory, other) for other in others):
                raise UsageError(f"{tensor.name}: wanted an array that shares no memory with the instance, inputs and other "
                                 "outputs")

    def _run(self, lent: list[tuple[Tensor, Array, Any]]) -> None:
        """Runs with memory that is lent for this run alone."""
        handle = self._open
        self._texts = [also for tensor, _, also in lent if tensor.element.name == "string"]
        try:
            for tensor, memory, _ in lent:
                self._lend(tensor, memory)
            check(handle.run(), "run")
        finally:
            for tensor, _, _ in lent:
                key = (tensor.kind, tensor.number)
                if key in self._bound:
                    self._lend(tensor, self._bound[key][0])
                else:
                    handle.bind(*key, 0, 0)

    def _lend(self, tensor: Tensor, memory: Array) -> None:
        check(self._open.bind(tensor.kind, tensor.number, _firn.address_of(memory), memory.nbytes), tensor.name)

    def _shape(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(self._open.shape(tensor.kind, tensor.number)) if self.model.dims or tensor.is_counted else tensor.shape

    def _view(self, tensor: Tensor) -> Array:
        memory = self._open.bytes(tensor.kind, tensor.number)
        if memory is None:
            raise UsageError(f"{tensor.name}: no memory is bound to it")
        return shown_array(memory, self._shape(tensor), tensor)

    def _write(self, tensor: Tensor, value: Any) -> None:
        memory = self._open.bytes(tensor.kind, tensor.number)
        if tensor.element.name == "string" or memory is None:
            raise UsageError(f"{tensor.name}: its memory is the caller's: give the array to run() or bind()")
        source, _ = bindable(input_array(value, tensor), self._shape(tensor), tensor)
        memory[:] = source.reshape(-1).view(np.uint8)

    def __repr__(self) -> str:
        dims = "".join(f", {name}={value}" for name, value in self._dims.items())
        return f"<Instance of {self.model.name}{dims}>"


