"""What objects say of themselves: one line for repr, tables for `summary` and for notebooks."""

import html
from collections.abc import Callable
from typing import Any

from ._trees import leaves_like, paths_of

Rows = list[list[str]]


def bytes_text(count: float) -> str:
    """Returns a number of bytes such as "1.5 MiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def table_bytes(table: Any) -> int:
    """Returns the bytes of a table's rows and slots, without padding."""
    row = {"float32": 4 * table.dim, "bfloat16": 2 * table.dim, "int8": table.dim + 8}[table.row_type]
    slots = sum(4 if slot.row_wise else 4 * table.dim for slot in table.slots)
    return int(table.vocabulary_size * (row + slots))


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def contents(self: Any) -> str:
    """Returns "2 tables (24 rows, 256 B), 3 features"."""
    tables, features = self.tables, paths_of(self.feature_config)
    rows = sum(table.vocabulary_size for table in tables)
    size = bytes_text(sum(map(table_bytes, tables)))
    return f"{counted(len(tables), 'table')} ({counted(rows, 'row')}, {size}), {counted(len(features), 'feature')}"


def embedding(self: Any) -> str:
    state = f"built, step {self.step}" if self.built else "not built"
    where = f"on {self.strategy!r}" if self.strategy is not None else "plain"
    return f"{type(self).__name__}({contents(self)}, {state}, {where})"


def serving(self: Any) -> str:
    return f"{type(self).__name__}({contents(self)}, {'step ' + str(self.step) if self.built else 'not built'})"


def table_rows(self: Any) -> Rows:
    rows = [["table", "rows", "dim", "row type", "combiner", "optimizer", "slots", "bytes"]]
    for table in self.tables:
        slots = ", ".join(slot.name + (" (a row)" if slot.row_wise else "") for slot in table.slots)
        rows.append([table.name, str(table.vocabulary_size), str(table.dim), table.row_type, table.combiner, table.optimizer or "-",
                     slots or "-", bytes_text(table_bytes(table))])
    return rows


def feature_rows(self: Any) -> Rows:
    config = self.feature_config
    shapes = leaves_like(self.output_shapes, config) if hasattr(self, "output_shapes") else None
    known: list[Any] = []  # tables in order of first occurrence, as `tables` has them
    rows = [["feature", "table", "output shape"] if shapes else ["feature", "table"]]
    for i, (path, feature) in enumerate(paths_of(config)):
        if not any(feature.table is table for table in known):
            known.append(feature.table)
        place = next(j for j, table in enumerate(known) if table is feature.table)
        name = feature.table.name or (self.tables[place].name if place < len(self.tables) else "")
        rows.append([repr(path), name] + ([str(shapes[i])] if shapes else []))
    return rows


def aligned(rows: Rows) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def summary(self: Any) -> str:
    """Returns tables of an embedding's tables and features, and where it is, as text."""
    return f"{first_line(self)}\n\n{aligned(table_rows(self))}\n\n{aligned(feature_rows(self))}"


def first_line(self: Any) -> str:
    return embedding(self) if hasattr(self, "apply_gradients") else serving(self)


def as_html(self: Any) -> str:
    """Returns the same for notebooks."""
    def table(rows: Rows) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    return f"<p>{html.escape(first_line(self))}</p>{table(table_rows(self))}{table(feature_rows(self))}"


def fields(self: Any, *names: str) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


_LINES: dict[str, Callable[[Any], str]] = {
    "Embedding": embedding,
    "ServingEmbedding": serving,
    "DirectEmbedding": embedding,
    "DirectLookup": lambda self: "DirectLookup of a DirectEmbedding",
    "TableUpdate": lambda self: f"TableUpdate({self.table!r}, {counted(len(self.rows), 'row')}, step {self.step})",
    "CustomTile": lambda self: f"CustomTile({counted(len(self.row), 'row')}, dim {self.row.shape[1]}, step {self.step})",
    "GradientRegistry": lambda self: f"GradientRegistry({self.layout!r})",
    "RestoreReport": lambda self: fields(self, "step", "missing", "extra", "mismatched", "skipped", "grown"),
    "SavedState": lambda self: fields(self, "step", "caller"),
    "CallerState": lambda self: f"CallerState(json={self.json!r}, tensors={list(self.tensors)}, blobs={list(self.blobs)})",
    "CheckpointRun": lambda self: f"CheckpointRun({str(self.directory)!r})",
    "DenseIds": lambda self: f"DenseIds(shape {tuple(self.values.shape)})",
    "SparseIds": lambda self: f"SparseIds({counted(len(self.values), 'id')}, shape {tuple(self.dense_shape)})",
    "RaggedIds": lambda self: f"RaggedIds({counted(len(self.values), 'id')} in {counted(len(self.row_splits) - 1, 'row')})",
    "SparseWeights": lambda self: f"SparseWeights({len(self.values)})",
    "RaggedWeights": lambda self: f"RaggedWeights({len(self.values)})",
    "RaggedRows": lambda self: f"RaggedRows({len(self.values)} in {counted(len(self.row_splits) - 1, 'row')})",
    "LookupToken": lambda self: f"LookupToken({'valid' if self.valid else 'used'})",
    "RowRange": lambda self: fields(self, "first_row", "rows", "vocabulary_size", "dim"),
    "VariablePart": lambda self: fields(self, "name", "full_shape", "offset", "shape"),
    "FixedShardsPartitioner": lambda self: fields(self, "num_shards"),
    "MinSizePartitioner": lambda self: fields(self, "min_shard_bytes", "max_shards", "bytes_per_string"),
    "MaxSizePartitioner": lambda self: fields(self, "max_shard_bytes", "max_shards", "bytes_per_string"),
    "Exchange": lambda self: fields(self, "host", "hosts"),
    "CreatedVariable": lambda self: fields(self, "variable", "nodes"),
    "StepStatistics": lambda self: (f"StepStatistics({counted(sum(table.entries for table in self.tables), 'entry').replace('entrys', 'entries')}, "
                                    f"forward {self.forward_seconds:.6f} s, update {self.update_seconds:.6f} s)"),
    "ImportReport": lambda self: f"ImportReport({str(self.step)!r}, {counted(len(self.arrays), 'array')})",
    "ConvertedArray": lambda self: fields(self, "name", "shape", "place"),
    "BundleTensor": lambda self: fields(self, "key", "dtype", "shape"),
}


def line(self: Any) -> str:
    """Returns what repr shows: that of the class, or of the nearest base that has one."""
    for base in type(self).__mro__:
        if base.__name__ in _LINES:
            return _LINES[base.__name__](self)
    return object.__repr__(self)
