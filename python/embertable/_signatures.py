"""Lets `inspect.signature` read the arguments of classes, methods and functions of the extension, as `help` does, and errors say
which argument does not fit.
"""

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

from . import _core
from ._explanations import MARK, explanation, is_about_arguments, refused_value


def signature_of(function: Any) -> inspect.Signature:
    """Returns what nanobind knows of a function's arguments. Raises ValueError if it has several forms."""
    forms = function.__nb_signature__
    if len(forms) != 1:
        raise ValueError(f"{function.__name__} has {len(forms)} forms")
    text, _, defaults = forms[0]
    text = re.sub(r"\\(\d+)", lambda found: f"__default({found.group(1)})", text)
    text = text.replace("def (", "def setter(", 1)  # those of attributes have no name
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
    """A signature that subclasses inherit unless they have an `__init__` of their own."""

    def __init__(self, owner: type, signature: inspect.Signature) -> None:
        self.owner = owner
        self.signature = signature

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if owner.__init__ is not self.owner.__init__:  # type: ignore[misc]
            raise AttributeError("__signature__")
        return self.signature


def _without_self(signature: inspect.Signature) -> inspect.Signature:
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _called(function: Any, qualified_name: str, is_method: bool) -> Callable[..., Any]:
    """Returns a function of Python's that calls one of nanobind's, whose type can have no `__signature__`. It costs 0.1 us."""
    name, signature = function.__name__, signature_of(function)
    title, first = (qualified_name.removesuffix(".__init__"), 1) if is_method else (qualified_name, 0)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if not is_about_arguments(error, name):
                raise
            given_title = type(args[0]).__name__ if name == "__init__" else title
            message = explanation(given_title, _without_self(signature) if is_method else signature, args[first:], kwargs)
            if message is None:
                raise
        raise TypeError(message)  # without the original, which shows nothing of use

    call.__name__, call.__qualname__, call.__module__ = name, qualified_name, __package__
    call.__doc__ = re.sub(r"\A\w+\(.*\) -> .*\n*", "", function.__doc__ or "") or None
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _setting(property_: property, qualified_name: str) -> property:
    """Returns a property whose setter says what is wrong with a value."""
    setter: Any = property_.fset
    name = qualified_name.rsplit(".", 1)[-1]
    if not _has_one_form(setter):
        return property_
    annotation = str(list(signature_of(setter).parameters.values())[1].annotation)

    def change(self: Any, value: Any) -> None:
        try:
            setter(self, value)
            return
        except TypeError as error:
            if not is_about_arguments(error, setter.__name__):
                raise
        raise TypeError(f"{qualified_name.rsplit('.', 1)[0]}: {refused_value(name, annotation, value)}")

    return property(property_.fget, change, property_.fdel, property_.__doc__)


def _explain_construction(type_: type, message: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What the extension calls where an object of one of its classes was not made, for a message to raise instead."""
    own = type_.__dict__.get("__signature__")
    if not isinstance(own, _OwnSignature) or not message.startswith("__init__" + MARK):
        return None
    return explanation(type_.__name__, own.signature, args, kwargs)


def _has_one_form(value: Any) -> bool:
    return len(getattr(value, "__nb_signature__", ())) == 1


def _install_in(owner: type) -> None:
    for name, member in list(vars(owner).items()):
        if name == "__init__" and _has_one_form(member):
            whole = signature_of(member)
            own = whole.replace(parameters=list(whole.parameters.values())[1:], return_annotation=inspect.Signature.empty)
            setattr(owner, name, _called(member, f"{owner.__name__}.{name}", True))  # subclasses call it
            owner.__signature__ = _OwnSignature(owner, own)  # type: ignore[attr-defined]
        elif (not name.startswith("_") or name == "__call__") and _has_one_form(member):
            is_method = hasattr(member, "__get__")
            call = _called(member, f"{owner.__name__}.{name}", is_method)
            setattr(owner, name, call if is_method else staticmethod(call))
        elif isinstance(member, property) and member.fset is not None:
            setattr(owner, name, _setting(member, f"{owner.__name__}.{name}"))


def install() -> dict[str, Callable[..., Any]]:
    """Gives the extension's classes and their methods signatures. Returns the module's functions, which have theirs."""
    functions, constructors = {}, {}
    for name, value in list(vars(_core).items()):
        if isinstance(value, type):
            if _has_one_form(made_by := vars(value).get("__init__")):
                constructors[value] = made_by
            _install_in(value)
        elif not name.startswith("_") and _has_one_form(value):
            functions[name] = _called(value, name, False)
    _core._explain_with(_explain_construction, constructors)
    return functions
