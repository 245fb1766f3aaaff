"""The command with the toy study only, in a process of its own: the others import most of the packages."""

import sys
from types import ModuleType

from toy_study import TOY

from experiments.__main__ import main

catalogue = ModuleType("experiments.catalogue")
catalogue.STUDIES = {TOY.name: TOY}
catalogue.find_study = catalogue.STUDIES.__getitem__

if __name__ == "__main__":
    sys.modules[catalogue.__name__] = catalogue
    sys.exit(main())
