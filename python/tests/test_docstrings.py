"""Every public callable says what it takes, and has an example that runs."""

import ast
import doctest
import inspect
import re

import numpy as np
import pytest

import embertable
from embertable import gradient_interception as gi
from embertable import tpu_embedding as tpu
from embertable import v1
from embertable._signatures import signature_of
from embertable.tpu_embedding import strategy as strategies

# Exceptions, and protocols that Python calls.
HIDDEN = {"DataError", "DataLossError", "GivenUp"}


def members(path, value):
    """Yields the path and object of a public callable, and of those that it has."""
    yield path, value
    if isinstance(value, type):
        for name, member in vars(value).items():
            if (not name.startswith("_") or name == "__call__") and (callable(getattr(value, name)) and not isinstance(member, property)):
                yield from members(f"{path}.{name}", getattr(value, name))


def own_names(module):
    return [name for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__]


def public_callables():
    found = {}
    for module, prefix in ((embertable, ""), (tpu, "tpu."), (v1, "v1."), (gi, "gi.")):
        for name in getattr(module, "__all__", None) or own_names(module):
            value = getattr(module, name)
            if callable(value) and name not in HIDDEN and not (module is tpu and getattr(embertable, name, None) is value):
                found.update(members(prefix + name, value))
    return found


CALLABLES = public_callables()


def text_of(value):
    """The docstring without the line of the signature that nanobind puts first."""
    text = inspect.getdoc(value) or ""
    return re.sub(r"\A\w+\(.*\) -> .*\n+", "", text) if not inspect.isclass(value) and not inspect.isfunction(value) else text


def arguments_of(value):
    value = getattr(value, "__func__", value)
    signature = signature_of(value) if hasattr(value, "__nb_signature__") else inspect.signature(value)
    parameters = signature.parameters.values()
    return {p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and not p.name.startswith("_")} - {"self"}


# Arguments that a class or function takes over from another one, whose text it names.
ELSEWHERE = {"tpu.TPUStrategy": "EngineStrategy", "tpu.FeatureConfig": "FeatureConfig", "tpu.Adagrad": "tpu.SGD",
             "tpu.AdagradMomentum": "tpu.Adagrad tpu.SGD", "tpu.FTRL": "tpu.Adagrad tpu.SGD", "tpu.Adam": "tpu.Adagrad tpu.SGD",
             "Replica.enqueue": "Embedding.enqueue", "tpu.TPUEmbedding.restore": "Embedding.restore",
             "tpu.TPUEmbedding.apply_gradients": "Embedding.apply_gradients", "tpu.TPUEmbedding.dequeue": "Embedding.dequeue",
             "tpu.TPUEmbedding.enqueue": "Embedding.enqueue", "tpu.TPUEmbeddingForServing": "ServingEmbedding",
             "tpu.TPUEmbedding.build": "Embedding.build", "tpu.TPUEmbeddingV0": "DirectEmbedding",
             **{f"v1.{name}Parameters": "v1.AdagradParameters"
                for name in ("ProximalAdagrad", "Adam", "Ftrl", "ProximalYogi", "Momentum", "RMSProp", "StochasticGradientDescent")}}
# Arguments that say themselves, or have no effect.
PLAIN = {"iterable", "options", "latest_filename", "args", "kwargs", "fn", "training"}


@pytest.mark.parametrize("path", CALLABLES)
def test_it_says_what_it_takes(path):
    value = CALLABLES[path]
    text = text_of(value)
    assert text, f"{path} has no docstring"
    others = [CALLABLES[other] for other in ELSEWHERE.get(path, "").split() if other in CALLABLES]
    text += "".join(text_of(other) for other in others)
    if inspect.isclass(value) and hasattr(vars(value).get("__init__"), "__nb_signature__"):
        text += value.__init__.__doc__
    try:
        arguments = arguments_of(value)
    except ValueError:  # a class that programs do not make
        assert inspect.isclass(value)
        return
    missing = {name for name in arguments - PLAIN if not re.search(rf"\b{name}\b", text)}
    assert not missing, f"{path} does not say what {sorted(missing)} is"


def run_examples(path, text, directory):
    parser, output = doctest.DocTestParser(), []
    names = {"embertable": embertable, "tpu": tpu, "v1": v1, "gi": gi, "np": np, "directory": str(directory)}
    test = parser.get_doctest(text, names, path, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=output.append)
    return len(test.examples), runner.failures, "".join(output)


@pytest.mark.parametrize("path", CALLABLES)
def test_its_example_runs(path, tmp_path):
    count, failures, output = run_examples(path, text_of(CALLABLES[path]), tmp_path)
    assert failures == 0, output
    inherited = path.startswith("tpu.") and (".".join(path.split(".")[1:]) in CALLABLES or path.count(".") == 2)
    assert count > 0 or inherited or path.startswith("tpu.CheckpointStatus") or path in NO_EXAMPLE, f"{path} has no example"


# Objects that functions of the caller's receive: their classes' examples show them.
NO_EXAMPLE = {"tpu.InputContext", "tpu.ReplicaContext", "CustomTile", "TableUpdate",
              "gi.TorchTape", "gi.TensorFlowTape", "gi.JaxTape"}  # the last need other packages


def test_signatures_are_those_of_the_functions():
    assert list(inspect.signature(embertable.EngineStrategy).parameters)[:2] == ["hosts", "replicas_per_host"]
    assert inspect.signature(embertable.TableConfig).parameters["combiner"].default == "mean"
    assert inspect.signature(embertable.Adagrad).parameters["initial_accumulator_value"].default == 0.1
    assert embertable.Embedding.enqueue.__doc__.startswith("enqueue(self, features:")


def test_modules_say_what_they_are():
    for module in (embertable, tpu, strategies, v1, gi):
        assert module.__doc__ and not ast.parse("'''" + module.__doc__ + "'''").body == []


@pytest.mark.parametrize("module", [v1, gi], ids=lambda module: module.__name__)
def test_the_examples_of_modules_run(module, tmp_path):
    count, failures, output = run_examples(module.__name__, module.__doc__, tmp_path)
    assert failures == 0 and count > 0, output
