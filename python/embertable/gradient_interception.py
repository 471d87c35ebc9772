"""Gradients of activations by way of a framework's own differentiation: the four functions of TensorFlow's
tpu_embedding_gradient.py. Activations come from outside of the framework's graph, so a variable of one number for each
table pulls them in, and an identity keeps the gradient that comes back.

`tpu_embedding` is a v1.TPUEmbedding of one core, or a GradientRegistry; for several cores each has a registry of its own.
`tape` says whose values activations are: "numpy", "torch", "tensorflow", "jax", or an object with the methods of a Tape. The
same tape goes to all functions of a step. The registry is to be cleared between one step's gradients and the next.

>>> from embertable import gradient_interception as gi
>>> registry = embertable.GradientRegistry(embertable.InterleavedLayout({"t": 2}, {"f": "t"}, batch_size=1))
>>> dummies, initialize = gi.create_dummy_table_variables(registry)
>>> initialize()
>>> hooked = gi.hook_dummy_table_variables_to_activations(registry, {"f": np.array([[3.0, 4.0]])}, dummies)
>>> loss = (hooked["f"] * hooked["f"]).sum()
>>> loss.backward()
>>> gi.get_gradients_through_dummy_table_variables(registry)["f"].tolist()
[[6.0, 8.0]]
>>> registry.clear()
"""

from __future__ import annotations

import importlib
import logging
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from . import GradientRegistry

_interception: Any = importlib.import_module("embertable._core")._interception

__all__ = [
    "JaxTape", "NumpyTape", "Tape", "TapeArray", "TensorFlowTape", "TorchTape", "create_dummy_table_variables",
    "get_gradients_through_compute_gradients", "get_gradients_through_dummy_table_variables",
    "hook_dummy_table_variables_to_activations",
]

Backward = Callable[[Any], None]


class TapeArray:
    """A NumPy array that remembers how it was computed, for the gradients of a loss.

    It has + - * / ** of numbers, @, -x, [key], sum, mean, exp, log, tanh, maximum, reshape and T, with NumPy's rules of shapes;
    operands may be arrays and numbers, which take no gradient.

    value: the array, or what becomes one; watched: it takes a gradient. inputs: what it was computed of; pull: a function of the
    gradient of this array that gives those of the inputs. Raises TypeError for what are no numbers.

    >>> x = gi.TapeArray(np.array([1.0, 2.0]), watched=True)
    >>> (x * x).sum().backward()
    >>> x.gradient.tolist()
    [2.0, 4.0]
    """

    __array_ufunc__ = None  # so that an operator of a NumPy array leaves the work to this class

    def __init__(self, value: Any, inputs: Sequence[TapeArray] = (), pull: Any = None, watched: bool = False) -> None:
        self.value = np.asarray(value)
        if self.value.dtype.kind not in "fiu":
            raise TypeError(f"a TapeArray must be of numbers, got {self.value.dtype}")
        self.gradient: Optional[np.ndarray] = None
        self._inputs = list(inputs)
        self._pull = pull  # the gradient of the result -> those of the inputs
        self._needed: bool = watched or any(x._needed for x in inputs)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def __repr__(self) -> str:
        return f"TapeArray({self.value!r})"

    def backward(self) -> None:
        """Sets `gradient` of everything that this number depends on, anew. Raises ValueError unless it is one number.

        >>> x = gi.TapeArray([3.0], watched=True)
        >>> (x.exp() * 0).sum().backward()
        >>> x.gradient.tolist()
        [0.0]
        """
        _gradients_of(self, [])

    def _then(self, value: Any, others: Sequence[TapeArray], pull: Any) -> TapeArray:
        return TapeArray(value, [self, *others], pull)

    def __add__(self, other: Any) -> TapeArray:
        y = _tensor(other)
        return self._then(self.value + y.value, [y], lambda g: (_fit(g, self), _fit(g, y)))

    __radd__ = __add__

    def __neg__(self) -> TapeArray:
        return self._then(-self.value, [], lambda g: (-g,))

    def __sub__(self, other: Any) -> TapeArray:
        return self + -_tensor(other)

    def __rsub__(self, other: Any) -> TapeArray:
        return _tensor(other) + -self

    def __mul__(self, other: Any) -> TapeArray:
        y = _tensor(other)
        return self._then(self.value * y.value, [y], lambda g: (_fit(g * y.value, self), _fit(g * self.value, y)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> TapeArray:
        return self * _tensor(other) ** -1

    def __rtruediv__(self, other: Any) -> TapeArray:
        return _tensor(other) * self ** -1

    def __pow__(self, power: float) -> TapeArray:
        if not isinstance(power, (int, float)):
            raise TypeError(f"a power must be a number, got {type(power).__name__}")
        value = self.value.astype(np.result_type(self.value, np.float32)) ** power
        return self._then(value, [], lambda g: (g * power * self.value.astype(value.dtype) ** (power - 1),))

    def __matmul__(self, other: Any) -> TapeArray:
        y = _tensor(other)
        if self.value.ndim < 2 or y.value.ndim < 2:
            raise ValueError(f"@ takes matrices, got shapes {self.shape} and {y.shape}")
        return self._then(self.value @ y.value, [y], lambda g: (_fit(g @ np.swapaxes(y.value, -1, -2), self),
                                                               _fit(np.swapaxes(self.value, -1, -2) @ g, y)))

    def __rmatmul__(self, other: Any) -> TapeArray:
        return _tensor(other) @ self

    def __getitem__(self, key: Any) -> TapeArray:
        def pull(g: np.ndarray) -> tuple[np.ndarray]:
            whole = np.zeros_like(self.value, dtype=g.dtype)
            np.add.at(whole, key, g)
            return (whole,)

        return self._then(self.value[key], [], pull)

    def sum(self, axis: Any = None) -> TapeArray:
        """The sum over an axis, or a tuple of them, all for None.

        >>> gi.TapeArray([[1.0, 2.0]]).sum(1).value.tolist()
        [3.0]
        """
        def pull(g: np.ndarray) -> tuple[np.ndarray]:
            kept = g if axis is None else np.expand_dims(g, axis)
            return (np.broadcast_to(kept, self.shape),)

        return self._then(self.value.sum(axis), [], pull)

    def mean(self, axis: Any = None) -> TapeArray:
        """The mean over an axis, or a tuple of them, all for None.

        >>> gi.TapeArray([[1.0, 2.0]]).mean().value.tolist()
        1.5
        """
        total = self.sum(axis)
        return total * (total.value.size / self.value.size)

    def exp(self) -> TapeArray:
        """e to the power of each number.

        >>> gi.TapeArray([0.0]).exp().value.tolist()
        [1.0]
        """
        value = np.exp(self.value)
        return self._then(value, [], lambda g: (g * value,))

    def log(self) -> TapeArray:
        """The natural logarithm of each number.

        >>> gi.TapeArray([1.0]).log().value.tolist()
        [0.0]
        """
        return self._then(np.log(self.value), [], lambda g: (g / self.value,))

    def tanh(self) -> TapeArray:
        """The hyperbolic tangent of each number.

        >>> gi.TapeArray([0.0]).tanh().value.tolist()
        [0.0]
        """
        value = np.tanh(self.value)
        return self._then(value, [], lambda g: (g * (1 - value * value),))

    def maximum(self, least: float) -> TapeArray:
        """Each number, or `least` where that is more; no gradient there.

        >>> gi.TapeArray([-1.0, 2.0]).maximum(0).value.tolist()
        [0.0, 2.0]
        """
        return self._then(np.maximum(self.value, least), [], lambda g: (g * (self.value > least),))

    def reshape(self, *shape: Any) -> TapeArray:
        """The same numbers in another shape.

        >>> gi.TapeArray([1.0, 2.0]).reshape(2, 1).shape
        (2, 1)
        """
        return self._then(self.value.reshape(*shape), [], lambda g: (g.reshape(self.shape),))

    @property
    def T(self) -> TapeArray:
        return self._then(self.value.T, [], lambda g: (g.T,))


def _tensor(value: Any) -> TapeArray:
    return value if isinstance(value, TapeArray) else TapeArray(value)


def _fit(gradient: np.ndarray, operand: TapeArray) -> np.ndarray:
    """Sums over the axes along which an operand was broadcast."""
    extra = gradient.ndim - operand.value.ndim
    gradient = gradient.sum(tuple(range(extra)))
    stretched = tuple(i for i, size in enumerate(operand.shape) if size == 1 and gradient.shape[i] != 1)
    return gradient.sum(stretched, keepdims=True) if stretched else gradient


def _gradients_of(loss: TapeArray, tensors: Sequence[TapeArray]) -> list[Optional[np.ndarray]]:
    if loss.value.size != 1:
        raise ValueError(f"a loss must be one number, got shape {loss.shape}")
    order: list[TapeArray] = []  # each after what it depends on
    seen = set()
    stack = [(loss, False)]
    while stack:
        node, inputs_are_done = stack.pop()
        if inputs_are_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((x, False) for x in node._inputs if x._needed)
    for node in order:
        node.gradient = None
    loss.gradient = np.ones_like(loss.value, dtype=np.result_type(loss.value, np.float32))
    for node in reversed(order):
        if node._pull is None or node.gradient is None or not node._needed:
            continue
        for x, part in zip(node._inputs, node._pull(node.gradient)):
            if x._needed:
                x.gradient = part if x.gradient is None else x.gradient + part
    return [x.gradient if id(x) in seen else None for x in tensors]


class Tape:
    """What the functions ask of a framework that differentiates. Each framework has a class; a program may derive one of its own.

    >>> class Counting(gi.NumpyTape):
    ...     made = 0
    ...     def make_variable(self, name, shape):
    ...         self.made += 1
    ...         return super().make_variable(name, shape)
    >>> tape = Counting()
    >>> registry = embertable.GradientRegistry(embertable.InterleavedLayout({"t": 2, "u": 1}, {"f": "t", "g": "u"}, batch_size=1))
    >>> dummies, initialize = gi.create_dummy_table_variables(registry, tape)
    >>> tape.made
    2
    """

    def make_variable(self, name: str, shape: tuple[int, ...]) -> Any:
        """Makes a variable of zeros with this name and shape, which takes a gradient.

        >>> gi.NumpyTape().make_variable("t", (1,)).value.tolist()
        [0.0]
        """
        raise NotImplementedError(f"{type(self).__name__} must have make_variable")

    def initialize(self, variable: Any) -> None:
        """Gives a variable its first value again, where variables have values of their own.

        >>> variable = gi.NumpyTape().make_variable("t", (1,))
        >>> variable.value[0] = 5
        >>> gi.NumpyTape().initialize(variable)
        >>> variable.value.tolist()
        [0.0]
        """
        raise NotImplementedError(f"{type(self).__name__} must have initialize")

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """Makes a gradient of zeros of a shape.

        >>> gi.NumpyTape().zeros((1, 2)).tolist()
        [[0.0, 0.0]]
        """
        raise NotImplementedError(f"{type(self).__name__} must have zeros")

    def intercept(self, variable: Any, activation: Any, backward: Backward) -> Any:
        """Gives the activation as the result of an operation on it and the variable, whose backward pass calls
        backward(gradient) and gives both zeros.

        >>> seen = []
        >>> tape = gi.NumpyTape()
        >>> out = tape.intercept(tape.make_variable("t", (1,)), np.ones((1, 2)), seen.append)
        >>> out.sum().backward()
        >>> seen[0].tolist()
        [[1.0, 1.0]]
        """
        raise NotImplementedError(f"{type(self).__name__} must have intercept")

    def compute_gradients(self, loss: Any, tensors: Sequence[Any]) -> list[Any]:
        """Gives the gradient of the loss with respect to each of the tensors, None where it does not depend on it.

        >>> x = gi.TapeArray([1.0, 2.0], watched=True)
        >>> gi.NumpyTape().compute_gradients((x * x).sum(), [x])[0].tolist()
        [2.0, 4.0]
        """
        raise NotImplementedError(f"{type(self).__name__} differentiates functions, not values: it has no compute_gradients")


class NumpyTape(Tape):
    """The small tape of this package: activations become TapeArrays.

    >>> gi.NumpyTape().zeros((1, 2)).tolist()
    [[0.0, 0.0]]
    """

    def make_variable(self, name: str, shape: tuple[int, ...]) -> TapeArray:
        return TapeArray(np.zeros(shape, np.float32), watched=True)

    def initialize(self, variable: TapeArray) -> None:
        variable.value[...] = 0

    def zeros(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape, np.float32)

    def intercept(self, variable: TapeArray, activation: Any, backward: Backward) -> TapeArray:
        of = _tensor(activation)

        def pull(g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            backward(np.array(g, np.float32))
            return np.zeros_like(variable.value), np.zeros_like(of.value)

        return TapeArray(of.value, [variable, of], pull)

    def compute_gradients(self, loss: TapeArray, tensors: Sequence[TapeArray]) -> list[Optional[np.ndarray]]:
        return _gradients_of(loss, tensors)


class TorchTape(Tape):
    """Activations are torch.Tensors; `loss.backward()` leaves their gradients."""

    def __init__(self) -> None:
        torch: Any = importlib.import_module("torch")

        class Identity(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, variable: Any, activation: Any, backward: Backward) -> Any:
                ctx.keep, ctx.of = backward, variable
                return activation.view_as(activation)

            @staticmethod
            def backward(ctx: Any, gradient: Any) -> Any:
                ctx.keep(gradient)
                return torch.zeros_like(ctx.of), torch.zeros_like(gradient), None

        self._torch, self._identity = torch, Identity

    def make_variable(self, name: str, shape: tuple[int, ...]) -> Any:
        return self._torch.zeros(shape, requires_grad=True)

    def initialize(self, variable: Any) -> None:
        with self._torch.no_grad():
            variable.zero_()

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self._torch.zeros(shape)

    def intercept(self, variable: Any, activation: Any, backward: Backward) -> Any:
        return self._identity.apply(variable, self._torch.as_tensor(activation), backward)

    def compute_gradients(self, loss: Any, tensors: Sequence[Any]) -> list[Any]:
        return list(self._torch.autograd.grad(loss, list(tensors), allow_unused=True))


class TensorFlowTape(Tape):
    """Activations are tf.Tensors. `gradient_tape` is the tf.GradientTape of the step, which watches the dummy variables by
    itself: `gradient_tape.gradient(loss, list(dummies.values()))` leaves the gradients of the activations. It is needed for
    compute_gradients alone."""

    def __init__(self, gradient_tape: Any = None) -> None:
        self._tf: Any = importlib.import_module("tensorflow")
        self._gradient_tape = gradient_tape

    def make_variable(self, name: str, shape: tuple[int, ...]) -> Any:
        return self._tf.Variable(self._tf.zeros(shape), trainable=True, name=name)

    def initialize(self, variable: Any) -> None:
        variable.assign(self._tf.zeros_like(variable))

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self._tf.zeros(shape)

    def intercept(self, variable: Any, activation: Any, backward: Backward) -> Any:
        tf = self._tf

        def identity(value: Any, of: Any) -> Any:
            def pull(gradient: Any) -> Any:
                backward(gradient)
                return tf.zeros_like(value), tf.zeros_like(of)

            return tf.identity(of), pull

        return tf.custom_gradient(identity)(tf.convert_to_tensor(variable), tf.convert_to_tensor(activation))

    def compute_gradients(self, loss: Any, tensors: Sequence[Any]) -> list[Any]:
        if self._gradient_tape is None:
            raise RuntimeError("compute_gradients needs the tf.GradientTape of the step: TensorFlowTape(gradient_tape)")
        return list(self._gradient_tape.gradient(loss, list(tensors)))


class JaxTape(Tape):
    """Activations are JAX arrays. The dummy variables are what jax.grad differentiates by:

        grad = jax.grad(lambda dummies: loss(hook_dummy_table_variables_to_activations(registry, activations, dummies, "jax")))
        grad(dummies)

    Under jax.jit a gradient is no value that could be kept, and its backward pass raises TypeError."""

    def __init__(self) -> None:
        self._jax: Any = importlib.import_module("jax")

    def make_variable(self, name: str, shape: tuple[int, ...]) -> Any:
        return self._jax.numpy.zeros(shape, self._jax.numpy.float32)

    def initialize(self, variable: Any) -> None:
        pass  # a JAX array has its value

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self._jax.numpy.zeros(shape, self._jax.numpy.float32)

    def intercept(self, variable: Any, activation: Any, backward: Backward) -> Any:
        jax = self._jax

        identity = jax.custom_vjp(lambda value, of: of)

        def forward(value: Any, of: Any) -> Any:
            return of, (value, of)

        def pull(kept: Any, gradient: Any) -> Any:
            if isinstance(gradient, jax.core.Tracer):
                raise TypeError("under jax.jit gradients have no values yet that could be kept: take them outside of it")
            backward(gradient)
            return tuple(jax.numpy.zeros_like(x) for x in kept)

        identity.defvjp(forward, pull)
        return identity(variable, jax.numpy.asarray(activation))


_TAPES: dict[str, Callable[[], Any]] = {
    "numpy": NumpyTape, "torch": TorchTape, "tensorflow": TensorFlowTape, "jax": JaxTape,
}
_made: dict[str, Any] = {}


def _tape_of(tape: Any) -> Any:
    if not isinstance(tape, str):
        return tape
    if tape not in _TAPES:
        raise ValueError(f"tape must be one of {', '.join(map(repr, _TAPES))}, or an object, got {tape!r}")
    if tape not in _made:
        _made[tape] = _TAPES[tape]()
    return _made[tape]


def _registry_of(tpu_embedding: Any) -> GradientRegistry:
    registry = getattr(tpu_embedding, "gradient_registry", tpu_embedding)
    if not isinstance(registry, GradientRegistry):
        raise TypeError(f"tpu_embedding must be a v1.TPUEmbedding or a GradientRegistry, got {type(tpu_embedding).__name__}")
    return registry


def get_gradients_through_compute_gradients(optimizer: Any, loss: Any, activations: Mapping[str, Any]) -> dict[str, Any]:
    """The gradients of the loss with respect to the activations, by feature in their order; None where it does not depend
    on one.

    optimizer: an object, or a tape, whose compute_gradients(loss, [activation, ...]) returns a gradient for each, or a pair of
    gradient and activation for each, as TensorFlow's optimizers do; or the name of a tape. activations: by feature.

    Raises ValueError for another number of gradients.

    >>> a = gi.TapeArray([1.0, 2.0], watched=True)
    >>> gi.get_gradients_through_compute_gradients("numpy", (a * 3).sum(), {"f": a})["f"].tolist()
    [3.0, 3.0]
    """
    tensors = list(activations.values())
    gradients = list(_tape_of(optimizer).compute_gradients(loss, tensors))
    if len(gradients) != len(tensors):
        raise ValueError(f"compute_gradients: there must be a gradient for each of {len(tensors)} activations, got "
                         f"{len(gradients)}")
    return {name: g[0] if isinstance(g, tuple) else g for name, g in zip(activations, gradients)}


def create_dummy_table_variables(tpu_embedding: Any, tape: Any = "numpy") -> tuple[dict[str, Any], Callable[[], None]]:
    """Makes a variable [1] for each table, by its name, and opens the registry for one training step. Gives a pair of a dict of
    them and a function that gives them all their first value.

    tpu_embedding: a v1.TPUEmbedding of one core, or a GradientRegistry; tape: the name of a framework, or a Tape. Raises RuntimeError naming the table if the registry has gradients: clear it first.

    >>> registry = embertable.GradientRegistry(embertable.InterleavedLayout({"t": 2}, {"f": "t"}, batch_size=1))
    >>> dummies, initialize = gi.create_dummy_table_variables(registry)
    >>> dummies["t"].shape
    (1,)
    """
    made: tuple[dict[str, Any], Callable[[], None]] = _interception.create(_registry_of(tpu_embedding), _tape_of(tape))
    return made


def hook_dummy_table_variables_to_activations(tpu_embedding: Any, activations: Mapping[str, Any],
                                              dummy_table_variables: Mapping[str, Any],
                                              tape: Any = "numpy") -> dict[str, Any]:
    """The same activations, by feature in their order, as results of operations on the dummy variables: a backward pass
    through one leaves its gradient in the registry.

    tpu_embedding, tape: as of create_dummy_table_variables; activations: a dict by feature; dummy_table_variables: what that
    made. Raises KeyError naming an unknown feature, or a table that dummy_table_variables lacks. The backward pass raises
    RuntimeError naming the table without an open registry, and for a second gradient of one activation.

    >>> registry = embertable.GradientRegistry(embertable.InterleavedLayout({"t": 2}, {"f": "t"}, batch_size=1))
    >>> dummies, initialize = gi.create_dummy_table_variables(registry)
    >>> gi.hook_dummy_table_variables_to_activations(registry, {"f": np.ones((1, 2))}, dummies)["f"].value.tolist()
    [[1.0, 1.0]]
    """
    hooked: dict[str, Any] = _interception.hook(_registry_of(tpu_embedding), _tape_of(tape), dict(activations),
                                                dict(dummy_table_variables))
    return hooked


def get_gradients_through_dummy_table_variables(tpu_embedding: Any, tape: Any = "numpy",
                                                log: Optional[Callable[[str], object]] = None) -> dict[str, Any]:
    """The gradients that the registry has, by feature: tables in order, and their features in order.

    tpu_embedding, tape: as of create_dummy_table_variables. If only some features of
    a table have gradients, the others get zeros, and log(text), None: logging.getLogger('embertable').warning, receives one
    warning that names the table. Raises ValueError naming the table if none of its features has one.

    >>> registry = embertable.GradientRegistry(embertable.InterleavedLayout({"t": 1}, {"f": "t", "g": "t"}, batch_size=1))
    >>> dummies, initialize = gi.create_dummy_table_variables(registry)
    >>> hooked = gi.hook_dummy_table_variables_to_activations(registry, {"f": np.ones((1, 1))}, dummies)
    >>> hooked["f"].sum().backward()
    >>> warnings = []
    >>> gradients = gi.get_gradients_through_dummy_table_variables(registry, log=warnings.append)
    >>> {name: g.tolist() for name, g in gradients.items()}, len(warnings)
    ({'f': [[1.0]], 'g': [[0.0]]}, 1)
    """
    gradients: dict[str, Any] = _interception.collect(_registry_of(tpu_embedding), _tape_of(tape),
                                                      log or logging.getLogger("embertable").warning)
    return gradients
