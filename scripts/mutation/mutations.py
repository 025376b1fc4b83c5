"""Small random changes of Python source, for `scripts/mutants.py --random`.

Every change replaces one piece of a file's text: a comparison, an operator, a number, a condition,
a statement, the order of two arguments. Annotations, docstrings, words and what is said in messages
stay as they are. A change is named by its file, its function, its kind and its text, not by its
line, so that its name outlives changes elsewhere in the file; the order in which a seed draws
changes depends on those names alone."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARED = {
    "Lt": ("<", "<="), "LtE": ("<=", "<"), "Gt": (">", ">="), "GtE": (">=", ">"),
    "Eq": ("==", "!="), "NotEq": ("!=", "=="), "Is": ("is", "is not"), "IsNot": ("is not", "is"),
    "In": ("in", "not in"), "NotIn": ("not in", "in"),
}  # fmt: skip
CALCULATED = {
    "Add": ("+", "-"), "Sub": ("-", "+"), "Mult": ("*", "/"), "Div": ("/", "*"),
    "FloorDiv": ("//", "*"), "Mod": ("%", "*"), "Pow": ("**", "*"), "BitAnd": ("&", "|"),
    "BitOr": ("|", "&"), "LShift": ("<<", ">>"), "RShift": (">>", "<<"),
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum"}


@dataclass(frozen=True)
class Mutation:
    """One change: the text from `start` to `end` of a file becomes `new`."""

    file: str
    place: str
    kind: str
    line: int
    start: int
    end: int
    old: str
    new: str
    #: Which one of equal changes of the same function it is.
    number: int = 0

    @property
    def package(self) -> str:
        return Path(self.file).parts[2]

    @property
    def key(self) -> str:
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        more = f" #{self.number}" if self.number else ""
        return f"{self.file}:{self.place}: {self.kind}: {old} -> {new}{more}"

    def planted(self, source: str) -> str:
        """The source with the change in it."""
        return source[: self.start] + self.new + source[self.end :]

    def rank(self, seed: int) -> str:
        """Where it stands in the order of a seed."""
        return hashlib.sha256(f"{seed} {self.key}".encode()).hexdigest()


def mutations_of(file: str, source: str) -> list[Mutation]:
    """All changes of one file, in the order of its text."""
    found = list(_Finder(file, source).found())
    seen: Counter[str] = Counter()
    numbered = []
    for one in sorted(found, key=lambda one: (one.start, one.end, one.new)):
        numbered.append(Mutation(**{**vars(one), "number": seen[one.key]}))
        seen[one.key] += 1
    return numbered


def drawn(mutations: list[Mutation], count: int, seed: int) -> list[Mutation]:
    """`count` of them; a larger count has those of a smaller one first."""
    return sorted(mutations, key=lambda one: one.rank(seed))[:count]


class _Finder:
    """Walks one file."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.source = file, source
        lines = source.splitlines(keepends=True)
        self._lines = [line.encode() for line in lines]
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    def found(self) -> Iterator[Mutation]:
        yield from self._inside(ast.parse(self.source), "")

    def _inside(self, node: ast.AST, place: str) -> Iterator[Mutation]:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _skipped(child):
                    named = isinstance(child, ast.FunctionDef | ast.ClassDef)
                    inner = f"{place}.{child.name}".strip(".") if named else place  # type: ignore[attr-defined]
                    yield from self._of(child, inner)
                    yield from self._inside(child, inner)

    def _of(self, node: ast.AST, place: str) -> Iterator[Mutation]:
        for kind, start, end, new in self._changes(node):
            line = getattr(node, "lineno", 1)
            old = self.source[start:end]
            if old != new:
                yield Mutation(self.file, place or "module", kind, line, start, end, old, new)

    def _changes(self, node: ast.AST) -> Iterator[tuple[str, int, int, str]]:
        """Kind, start, end and new text of each change of a node."""
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                old, new = COMPARED[type(op).__name__]
                yield from self._between("comparison", left, right, old, new)
            case ast.BinOp(left=left, op=op, right=right) if type(op).__name__ in CALCULATED:
                old, new = CALCULATED[type(op).__name__]
                yield from self._between("operator", left, right, old, new)
            case ast.BoolOp(op=op, values=[left, right, *_]):
                words = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                yield from self._between("junction", left, right, *words)
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
                start, end = self._span(node)
                yield "negation", start, end, self._text(operand)
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if isinstance(test, ast.UnaryOp | ast.Compare):
                    return  # These have a change of their own that says the same.
                start, end = self._span(test)
                yield "condition", start, end, f"not ({self.source[start:end]})"
            case ast.Constant(value=bool() | int() | float() as value):
                start, end = self._span(node)
                yield "constant", start, end, str(_other(value))
            case ast.Call(func=func, args=arguments):
                yield from self._call(func, arguments)
            case ast.AugAssign(op=op, target=target, value=value):
                if type(op).__name__ in CALCULATED:
                    old, new = (f"{text}=" for text in CALCULATED[type(op).__name__])
                    yield from self._between("operator", target, value, old, new)
                yield ("statement", *self._span(node), "pass")
            case ast.Expr(value=ast.Call()) | ast.Raise():
                yield ("statement", *self._span(node), "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield ("statement", *self._span(node), "pass")
            case ast.Return(value=ast.AST() as value) if not isinstance(value, ast.Constant):
                start, end = self._span(value)
                yield "return", start, end, "None"
            case ast.Break():
                yield ("statement", *self._span(node), "continue")
            case ast.Continue():
                yield ("statement", *self._span(node), "break")

    def _call(
        self, func: ast.expr, arguments: list[ast.expr]
    ) -> Iterator[tuple[str, int, int, str]]:
        name = func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")
        if name in NAMES:
            _, end = self._span(func)
            yield "name", end - len(name), end, NAMES[name]
        if len(arguments) > 1 and not any(isinstance(one, ast.Starred) for one in arguments[:2]):
            (start, middle), (after, end) = self._span(arguments[0]), self._span(arguments[1])
            first, second = self.source[start:middle], self.source[after:end]
            yield "arguments", start, end, second + self.source[middle:after] + first

    def _between(
        self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str
    ) -> Iterator[tuple[str, int, int, str]]:
        """The operator stands between two expressions, perhaps with brackets."""
        start, end = self._span(left)[1], self._span(right)[0]
        at = self.source.find(old, start, end)
        if at >= 0:
            yield kind, at, at + len(old), new

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self.source[start:end]

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        if node.end_lineno is None or node.end_col_offset is None:
            raise ValueError(f"{self.file}:{node.lineno} has no end")
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno, node.end_col_offset),
        )

    def _at(self, line: int, column: int) -> int:
        """Columns are counted in bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode())


def _other(value: bool | int | float) -> bool | int | float:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return 2.0 * value if value else 1.0


def _skipped(node: ast.AST) -> bool:
    """What says something instead of doing it; and formatted text, inside which there are no
    positions in Python 3.11."""
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return True
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
    )
