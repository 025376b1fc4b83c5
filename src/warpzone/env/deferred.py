"""Runs something once another package is imported, without importing it now."""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def when_imported(package: str, action: Callable[[], None]) -> None:
    """Calls `action` now if the top-level `package` is loaded, else right after it is."""
    if package in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Watch(package, action))


class _Watch(MetaPathFinder):
    """Finds one package the usual way and adds the action to its loading."""

    def __init__(self, package: str, action: Callable[[], None]) -> None:
        self._package = package
        self._action = action

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._package:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._extend(spec.loader)
        return spec

    def _extend(self, loader: Loader) -> None:
        load = loader.exec_module

        def load_and_act(module: ModuleType) -> None:
            load(module)
            # Asking for a spec alone must not use the watch up; only loading does.
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._action()

        loader.exec_module = load_and_act  # type: ignore[method-assign]
