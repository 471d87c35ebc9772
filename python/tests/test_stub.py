"""The stub says of the package what is there: every public name, and the arguments of every function."""

import ast
import inspect
import pathlib
import re

import embertable
from embertable import _core

STUB = ast.parse(pathlib.Path(embertable.__file__).with_name("__init__.pyi").read_text())
SHOWN = {"__init__", "__len__", "__contains__"}  # of the special methods


def members(node):
    """Name -> definition, of a class or the module, without modules; a property's setter is the property again."""
    found = {}
    for item in node.body:
        if isinstance(item, (ast.ClassDef, ast.FunctionDef)):
            found.setdefault(item.name, item)
        elif isinstance(item, ast.AnnAssign):
            found[item.target.id] = item
        elif isinstance(item, ast.Assign):
            found[item.targets[0].id] = item
        elif isinstance(item, ast.ImportFrom) and item.level and item.module:
            found.update({alias.asname: item for alias in item.names})
    return found


def public(names):
    return {name for name in names if not name.startswith("_") or name in SHOWN}


def is_property(node):
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(mark, ast.Name) and mark.id == "property" for mark in node.decorator_list)


def stub_arguments(node):
    arguments = node.args
    names = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    defaults = [None if d is None else ast.literal_eval(d) for d in arguments.defaults + arguments.kw_defaults if d]
    return [name for name in names if name not in ("self", "cls")], defaults


def real_arguments(function):
    """Names and defaults, of a Python function or, with several forms, by what nanobind keeps."""
    if inspect.isfunction(function):
        parameters = [p for p in inspect.signature(function).parameters.values()
                      if p.name != "self" and p.kind is not p.VAR_KEYWORD]
        return [p.name for p in parameters], [p.default for p in parameters if p.default is not p.empty]
    (text, _, given), = function.__nb_signature__
    text = re.sub(r"\\(\d+)", lambda i: repr(given[int(i.group(1))]), text)
    return stub_arguments(ast.parse(text + ": ...").body[0])


def compare(path, node, value):
    if is_property(node):
        assert not callable(value), path
    elif isinstance(node, ast.FunctionDef):
        assert stub_arguments(node) == real_arguments(getattr(value, "__func__", value)), path
    elif isinstance(node, ast.ClassDef):
        stub = members(node)
        if issubclass(value, (Exception, tuple)):
            assert set(stub) <= set(dir(value)), path
            return
        hidden = set() if "__init__" in stub else {"__init__"}  # what programs do not make, or by __new__
        assert public(stub) == public(vars(value)) - hidden, path
        for name, member in stub.items():
            if name != "__new__":
                compare(f"{path}.{name}", member, getattr(value, name))


def test_the_stub_of_the_extension_has_what_is_private():
    stub = ast.parse(pathlib.Path(embertable.__file__).with_name("_core.pyi").read_text())
    assert set(members(stub)) - {None} == {name for name in vars(_core) if name.startswith("_") and not name.startswith("__")}


def test_the_stub_has_every_public_name():
    real = {name for name in public(vars(embertable)) if not inspect.ismodule(getattr(embertable, name))}
    assert public(members(STUB)) | {"numerics_version"} == real | {"numerics_version"}


def test_the_stub_has_the_arguments_of_every_function():
    for name, node in members(STUB).items():
        if not isinstance(node, (ast.AnnAssign, ast.Assign, ast.ImportFrom)):  # what is imported is annotated where it is
            compare(name, node, getattr(embertable, name))
