"""Every public callable says what it takes, and has an example that runs."""

import ast
import doctest
import inspect
import pickle
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
    if inspect.isclass(value) and "__init__" in vars(value):
        text += value.__init__.__doc__ or ""
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
    method = inspect.signature(embertable.Embedding.apply_gradients)
    assert list(method.parameters)[:2] == ["self", "gradients"]
    embedding = embertable.Embedding(embertable.FeatureConfig(embertable.TableConfig(8, 4)))
    assert list(inspect.signature(embedding.apply_gradients).parameters) == list(method.parameters)[1:]
    assert inspect.signature(embertable.export_tables).parameters["label"].default == "key"
    assert inspect.signature(embertable.RaggedIds.from_padded).parameters["pad"].default == -1


# Classes that programs do not make: functions give their objects.
NOT_MADE = set("""BundleTensor ConvertedArray CreatedVariable CustomTile DirectLookup IdMap ImportReport InitialValue Initializer
    LookupToken MemoryEntry RaggedRows Replica RestoreReport RowGradients RowRange SavedState StepStatistics StepStatistics.Table
    TableInfo TableInfo.Slot TableUpdate VariablePart""".split())


@pytest.mark.parametrize("path", [path for path in CALLABLES if path not in NOT_MADE])
def test_it_has_a_signature(path):
    """As the stub says, whose arguments test_stub compares with those of nanobind."""
    value = CALLABLES[path]
    names = [name for name in inspect.signature(value).parameters if name != "self"]
    if hasattr(value, "__nb_signature__"):
        assert names == [name for name in signature_of(value).parameters if name != "self"]


def test_functions_are_named_as_they_are_found():
    for path, value in CALLABLES.items():
        if inspect.isfunction(value) and value.__module__ == "embertable" and not path.startswith("tpu."):
            assert value.__qualname__ == path and not value.__doc__.startswith(value.__name__ + "(")
    assert list(inspect.signature(tpu.TPUStrategy).parameters) == list(inspect.signature(embertable.EngineStrategy).parameters)
    assert pickle.loads(pickle.dumps(embertable.export_tables)) is embertable.export_tables
    assert pickle.loads(pickle.dumps(embertable.Embedding.enqueue)) is embertable.Embedding.enqueue


def test_modules_say_what_they_are():
    for module in (embertable, tpu, strategies, v1, gi):
        assert module.__doc__ and not ast.parse("'''" + module.__doc__ + "'''").body == []


@pytest.mark.parametrize("module", [v1, gi], ids=lambda module: module.__name__)
def test_the_examples_of_modules_run(module, tmp_path):
    count, failures, output = run_examples(module.__name__, module.__doc__, tmp_path)
    assert failures == 0 and count > 0, output
