"""Extensions of griffe, which reads the package for the documentation site: comments that begin
with `#:` document the attribute below them, as a string after it would, and sections of the
configuration show their fields alone."""

from __future__ import annotations

from typing import Any

from griffe import Attribute, Class, Docstring, Extension


class CommentDocs(Extension):
    """Gives attributes without a docstring the comment above them."""

    def on_attribute(self, *, attr: Attribute, **_: Any) -> None:
        path = attr.filepath
        if attr.docstring is not None or attr.lineno is None or isinstance(path, list):
            return
        lines = attr.lines_collection[path]
        first = attr.lineno - 1
        found: list[str] = []
        while first > 0 and lines[first - 1].strip().startswith("#:"):
            first -= 1
            found.insert(0, lines[first].strip().removeprefix("#:").strip())
        if found:
            attr.docstring = Docstring(" ".join(found), lineno=first + 1, parent=attr)


class FieldsOnly(Extension):
    """Leaves out what sections of the configuration work out: it is no flag."""

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        if not cls.path.startswith("warpzone.config.") or cls.name == "TrainConfig":
            return
        for name, member in list(cls.members.items()):
            if member.has_labels("property"):
                cls.del_member(name)
