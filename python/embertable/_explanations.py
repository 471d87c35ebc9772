"""What a call of the extension says of arguments that do not fit: which one, its rule, and what was given."""

from __future__ import annotations

import collections.abc
import inspect
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _core
from ._arguments import kind_of

# What the extension begins such an error with, behind the name of its function.
MARK = "(): incompatible function arguments"


def is_about_arguments(error: TypeError, function: str) -> bool:
    """Whether the extension raised the error because arguments of this function did not fit. An error that has passed through a function
    of the caller's, such as an initializer, is not.
    """
    trace = error.__traceback__
    return type(error) is TypeError and (trace is None or trace.tb_next is None) and str(error).startswith(function + MARK)


def explanation(title: str, signature: inspect.Signature, positional: Sequence[Any],
                keywords: Mapping[str, Any]) -> str | None:
    """Returns a message about arguments that a function with this signature did not take, None if all seem to fit."""
    parameters = list(signature.parameters.values())
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    by_place = [p for p in named if p.kind is not p.KEYWORD_ONLY]
    takes_any = {p.kind for p in parameters}
    names = [p.name for p in named]
    for name in keywords:
        if name not in names and inspect.Parameter.VAR_KEYWORD not in takes_any:
            return f"{title}: there is no argument '{name}'{nearest(name, names)}"
    if len(positional) > len(by_place) and inspect.Parameter.VAR_POSITIONAL not in takes_any:
        return f"{title}: at most {len(by_place)} arguments are given without their names, got {len(positional)}"
    given = dict(zip((p.name for p in by_place), positional))
    for name in keywords:
        if name in given:
            return f"{title}: {name} is given twice"
    given.update(keywords)
    if missing := [p.name for p in named if p.default is p.empty and p.name not in given]:
        return f"{title}: {_listed(missing, 'and')} {'is' if len(missing) == 1 else 'are'} missing"
    for p in named:
        if p.name in given and (wrong := _wrong(p.name, str(p.annotation), given[p.name])):
            return f"{title}: {wrong}"
    return None


def refused_value(name: str, annotation: str, value: Any) -> str:
    """Returns a message about a value that an attribute did not take."""
    return _wrong(name, annotation, value) or f"{name} must be of type {annotation}, got {kind_of(value)}"


def nearest(name: str, names: Sequence[str]) -> str:
    """Returns the end of a message about a name that is none of `names`."""
    return _core._name_hint(name, list(names)) if names else ", it takes none"


def _listed(texts: Sequence[str], word: str) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def _wrong(name: str, annotation: str, value: Any) -> str | None:
    """Returns what is wrong with a value, None if nothing is or if nothing is known of the annotation."""
    kinds = annotation.split(" | ")
    if kinds == ["object"]:
        return f"{name} must not be None" if value is None else None
    if "os.PathLike" in kinds:
        kinds = [kind for kind in kinds if kind != "str"]
    rules = []
    for kind in kinds:
        if kind == "object":
            return None
        rule, fits = _RULES.get(kind) or _class_rule(kind)
        if not rule or fits(value):
            return None
        rules.append(rule)
    got = kind_of(value)
    if isinstance(value, int) and "int" in kinds and not isinstance(value, bool):
        rules[kinds.index("int")], got = "an integer of 64 bits", str(value)
    elif isinstance(value, str) and "str" in kinds:
        rules[kinds.index("str")], got = "text that UTF-8 has", repr(value)
    return f"{name} must be {_listed(rules, 'or')}, got {got}"


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and isinstance(os.fspath(value), str)


def _is_integer(value: Any) -> bool:
    try:
        return -2**63 <= operator.index(value) < 2**64
    except TypeError:
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or hasattr(value, "__float__") and not isinstance(value, (str, bytes))


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and all(map(_is_text, value))


_RULES: dict[str, tuple[str, Any]] = {
    "None": ("None", lambda value: value is None),
    "str": ("text", _is_text),
    "os.PathLike": ("a path", _is_path),
    "bool": ("True or False", lambda value: isinstance(value, bool)),
    "int": ("an integer", _is_integer),
    "float": ("a number", _is_number),
    "bytes": ("bytes", lambda value: isinstance(value, bytes)),
    "collections.abc.Sequence[str]": ("a list of texts", _is_list_of_texts),
    "collections.abc.Callable": ("a function", callable),
    "collections.abc.Mapping": ("a dict", lambda value: isinstance(value, collections.abc.Mapping)),
    "dict": ("a dict", lambda value: isinstance(value, dict)),
    "list": ("a list", lambda value: isinstance(value, list)),
    "tuple": ("a tuple", lambda value: isinstance(value, tuple)),
}


def _class_rule(annotation: str) -> tuple[str, Any]:
    """The rule of a class of the extension's; "" for what is unknown."""
    name = annotation.rsplit(".", 1)[-1]
    kind = getattr(_core, name, None)
    if not isinstance(kind, type):
        return "", None
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}", lambda value: isinstance(value, kind)
