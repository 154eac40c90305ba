"""Trainers: steps of a model's training, with its tensors and its optimizer's state as arrays of NumPy."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from . import _firn
from ._arrays import ELEMENT_TYPES, Array, Tensor, bindable, input_array, shown_array
from ._errors import CLASSES, KINDS, UsageError
from ._instance import check

if TYPE_CHECKING:
    from ._model import Model


class Step(NamedTuple):
    """A step, or an evaluation, which is none."""

    loss: float
    number: int  # steps since the first values, this one among them


class TrainerViews(Mapping[str, Array]):
    """Tensors of a trainer by their names. Each array is a view that keeps the trainer's memory alive."""

    def __init__(self, trainer: Trainer, tensors: tuple[Tensor, ...]) -> None:
        self._trainer = trainer
        self._tensors = {tensor.name: tensor for tensor in tensors}

    def _find(self, name: str) -> Tensor:
        if name not in self._tensors:
            raise KeyError(f"there is no {name!r}; there are: {', '.join(self._tensors)}")
        return self._tensors[name]

    def __getitem__(self, name: str) -> Array:
        return self._trainer._view(self._find(name))

    def __setitem__(self, name: str, value: Any) -> None:
        tensor = self._find(name)
        self._trainer._write(tensor, input_array(value, tensor))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return "{" + ", ".join(map(str, self._tensors.values())) + "}"


def training_words(loss: str, optimizer: str, trainable: Sequence[str] | str | None, numbers: Mapping[str, Any]) -> list[str]:
    words = {"loss": loss, "optimizer": optimizer, **numbers}
    texts = []
    for name, value in words.items():
        text = ":".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        if "," in text:
            raise UsageError(f"{name}: wanted a text without commas, found {text!r}")
        texts.append(f"{name}={text}")
    patterns = [trainable] if isinstance(trainable, str) else list(trainable or ())
    return ["--train=" + ",".join(texts), *(f"--trainable={pattern}" for pattern in patterns)]


class Trainer:
    """Trains tensors of its own, which are at first as the model has them; for one thread at a time."""

    def __init__(self, model: Model, learning_rate: float | None = None) -> None:
        self.model = model
        self._handle = _firn.Trainer(model._handle)
        self._inputs = self._tensors(_firn.INPUT)
        self._outputs = self._tensors(_firn.OUTPUT)
        self._is_given = [False] * len(self._inputs)
        if learning_rate is not None:
            self.learning_rate = learning_rate

    def _tensors(self, kind: int) -> tuple[Tensor, ...]:
        return tuple(Tensor(name, name, kind, index, ELEMENT_TYPES[number], tuple(dims), tuple(dims), size, False)
                     for index, (name, number, dims, size) in enumerate(self._handle.tensors(kind)))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What a step takes: the model's inputs, and last labels, unless the model computes the loss."""
        return self._inputs

    @property
    def parameters(self) -> TrainerViews:
        """The tensors that are trained, by the model's names for them."""
        return TrainerViews(self, self._tensors(_firn.PARAMETER))

    @property
    def states(self) -> TrainerViews:
        """What the optimizer keeps: moments of parameters, and the number of steps."""
        return TrainerViews(self, self._tensors(_firn.STATE))

    @property
    def loss(self) -> float:
        """The loss that the last step or evaluation found."""
        return self._handle.loss()

    @property
    def learning_rate(self) -> float:
        return self._handle.learning_rate()

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._handle.set_learning_rate(float(rate))

    @property
    def step_count(self) -> int:
        return self._handle.step_count()

    def step(self, *positional: Any, **named: Any) -> Step:
        """Forward, backward and update, on inputs and labels in order or by name; those not given stay what they are.

        A loss that is not finite is a UsageError, and changes nothing.
        """
        self._give(positional, named, wanted=len(self._inputs))
        check(self._handle.step(), "step")
        return Step(self.loss, self.step_count)

    def evaluate(self, *positional: Any, **named: Any) -> Step:
        """The loss, without an update."""
        self._give(positional, named, wanted=len(self._inputs))
        check(self._handle.evaluate(), "evaluate")
        return Step(self.loss, self.step_count)

    def infer(self, *positional: Any, **named: Any) -> Any:
        """The model's outputs by the parameters as they are: an array, or a dict of several."""
        self._give(positional, named, wanted=len(self.model.inputs))
        check(self._handle.infer(), "infer")
        arrays = {tensor.name: self._view(tensor).copy() for tensor in self._outputs}
        return next(iter(arrays.values())) if len(arrays) == 1 else arrays

    def reset(self) -> None:
        """Parameters and states back to their first values."""
        self._handle.reset()

    def state_dict(self) -> dict[str, Array]:
        """Copies of parameters and states by their names."""
        return {name: array.copy() for views in (self.parameters, self.states) for name, array in views.items()}

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Takes what state_dict() has given. Names, types and shapes are checked before anything changes."""
        arrays = []
        own = [tensor for kind in (_firn.PARAMETER, _firn.STATE) for tensor in self._tensors(kind)]
        for tensor in own:
            if tensor.name not in values:
                raise UsageError(f"load_state_dict: there is no {tensor}")
            arrays.append((tensor, bindable(input_array(values[tensor.name], tensor), tensor.shape, tensor)[0]))
        unknown = sorted(set(values) - {tensor.name for tensor in own})
        if unknown:
            raise UsageError(f"load_state_dict: the trainer has no {unknown[0]!r}")
        for tensor, array in arrays:
            self._write(tensor, array)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the parameters, as .npz or .safetensors, and what load() wants into PATH.state beside them."""
        self._check_done(*self._handle.save(os.fspath(path)))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from what save(), or `firn train --save`, has written."""
        self._check_done(*self._handle.load(os.fspath(path)))

    @staticmethod
    def _check_done(kind: int, message: str) -> None:
        if kind != 0:
            raise CLASSES[KINDS[kind]](message)

    def _give(self, positional: Sequence[Any], named: Mapping[str, Any], wanted: int) -> None:
        """Writes inputs, after the dims that vary are set to theirs."""
        if len(positional) > wanted:
            raise UsageError(f"{self.model.name}: wanted {wanted} inputs, found {len(positional)}")
        values = dict(enumerate(positional))
        for name, value in named.items():
            number = next((i for i, tensor in enumerate(self._inputs[:wanted]) if tensor.name == name), None)
            if number is None:
                raise UsageError(f"{self.model.name}: there is no {name!r}; wanted: "
                                 f"{', '.join(tensor.name for tensor in self._inputs[:wanted])}")
            if number in values:
                raise UsageError(f"{name}: given twice")
            values[number] = value
        missing = [str(tensor) for tensor in self._inputs[:wanted] if tensor.number not in values and not self._is_given[tensor.number]]
        if missing:
            raise UsageError(f"{self.model.name}: wanted also {', '.join(missing)}")
        arrays = {number: self._input(value, self._inputs[number]) for number, value in values.items()}
        for number, array in arrays.items():
            tensor = self._inputs[number]
            if array.ndim != len(tensor.dims):
                raise UsageError(f"{tensor.name}: wanted {len(tensor.dims)} dims, found shape {list(array.shape)}")
        if arrays:
            shapes = [list(arrays[i].shape) if i in arrays else [] for i in range(len(self._inputs))]
            reason = self._handle.fit(shapes, [i in arrays for i in range(len(self._inputs))])
            if reason:
                raise UsageError(reason)
        for number, array in arrays.items():
            self._write(self._inputs[number], array)
            self._is_given[number] = True

    def _input(self, value: Any, tensor: Tensor) -> Array:
        """Integers of any width are labels of classes."""
        is_label = tensor.number >= len(self.model.inputs) and tensor.element.name == "i64"
        if is_label and isinstance(value, np.ndarray) and value.dtype.kind in "iu":
            value = value.astype(np.int64)
        return input_array(value, tensor)

    def _shape(self, tensor: Tensor) -> tuple[int, ...]:
        return tuple(self._handle.shape(tensor.kind, tensor.number))

    def _view(self, tensor: Tensor) -> Array:
        return shown_array(self._handle.bytes(tensor.kind, tensor.number), self._shape(tensor), tensor)

    def _write(self, tensor: Tensor, array: Array) -> None:
        source, _ = bindable(array, self._shape(tensor), tensor)
        self._handle.bytes(tensor.kind, tensor.number)[:] = source.reshape(-1).view(np.uint8)

    def __repr__(self) -> str:
        return f"<Trainer of {self.model.name}: {self.parameters!r}, step {self.step_count}>"
