"""Takes one guard away in every Python process that has this folder on its path.

Python imports a module of this name at its start. ``AGENT_GYM_MUTANT`` says which attribute becomes
what (``module:attribute=replacement``); it is replaced as soon as its module has been imported,
before anybody else can take hold of it. The package itself knows nothing of this.
"""

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder


class Planter(MetaPathFinder):
    """Finds the one module as everybody does, and changes it once it is there."""

    def __init__(self, said):
        self._module, _, rest = said.partition(":")
        self._place, _, self._becomes = rest.partition("=")

    def find_spec(self, name, path, target=None):
        if name != self._module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        plain = spec.loader.exec_module

        def changed(module):
            plain(module)
            import planted_mutants  # noqa: PLC0415 - only where something is planted

            planted_mutants.plant(module, self._place, self._becomes)

        spec.loader.exec_module = changed
        return spec


if os.environ.get("AGENT_GYM_MUTANT"):
    sys.meta_path.insert(0, Planter(os.environ["AGENT_GYM_MUTANT"]))
