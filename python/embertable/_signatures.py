"""Lets `inspect.signature` read the arguments of classes of the extension, as `help` does."""

import ast
import inspect
import re
from typing import Any

from . import _core


def signature_of(function: Any) -> inspect.Signature:
    """Returns what nanobind knows of a function's arguments. Raises ValueError if it has several forms."""
    forms = function.__nb_signature__
    if len(forms) != 1:
        raise ValueError(f"{function.__name__} has {len(forms)} forms")
    text, _, defaults = forms[0]
    text = re.sub(r"\\(\d+)", lambda found: f"__default({found.group(1)})", text)
    node = ast.parse(text + ": ...").body[0]
    assert isinstance(node, ast.FunctionDef)

    def default_of(expression: ast.expr) -> Any:
        if isinstance(expression, ast.Call):
            return defaults[ast.literal_eval(expression.args[0])]
        return ast.literal_eval(expression)

    def parameter(argument: ast.arg, kind: Any, default: ast.expr | None = None) -> inspect.Parameter:
        return inspect.Parameter(
            argument.arg, kind, default=inspect.Parameter.empty if default is None else default_of(default),
            annotation=ast.unparse(argument.annotation) if argument.annotation else inspect.Parameter.empty)

    arguments = node.args
    plain = arguments.posonlyargs + arguments.args
    missing: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    kinds = inspect.Parameter
    parameters = [parameter(argument, kinds.POSITIONAL_OR_KEYWORD, default)
                  for argument, default in zip(plain, missing + list(arguments.defaults))]
    if arguments.vararg:
        parameters.append(parameter(arguments.vararg, kinds.VAR_POSITIONAL))
    parameters += [parameter(argument, kinds.KEYWORD_ONLY, default)
                   for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        parameters.append(parameter(arguments.kwarg, kinds.VAR_KEYWORD))
    returns = ast.unparse(node.returns) if node.returns else inspect.Signature.empty
    return inspect.Signature(parameters, return_annotation=returns)


class _OwnSignature:
    """A signature that subclasses do not inherit."""

    def __init__(self, owner: type, signature: inspect.Signature) -> None:
        self.owner = owner
        self.signature = signature

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if owner is not self.owner:
            raise AttributeError("__signature__")
        return self.signature


def install() -> None:
    """Gives each class of the extension the `__signature__` of its __init__. Functions keep theirs in the first line of their
    docstrings: nanobind's types of functions cannot be changed."""
    for value in list(vars(_core).values()):
        made = vars(value).get("__init__") if isinstance(value, type) else None
        if made is None or not hasattr(made, "__nb_signature__"):
            continue
        try:
            whole = signature_of(made)
        except ValueError:
            continue
        own = whole.replace(parameters=list(whole.parameters.values())[1:], return_annotation=inspect.Signature.empty)
        value.__signature__ = _OwnSignature(value, own)
