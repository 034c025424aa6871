"""One file for each thing that can be recognised; found by being here."""

import importlib
import pkgutil

from ddpdoctor.diagnose.detecting import detectors

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

DETECTORS = tuple(detectors())
