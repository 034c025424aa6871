"""What modules hold as plain attributes: floats, and tensors that are no buffers."""

from __future__ import annotations

import math
from typing import Any

from ddpdoctor.watch.digests import digests
from ddpdoctor.watch.harmless import harmless
from ddpdoctor.watch.places import Frame, is_users

_MOST, _SMALL = 32, 64
_MANY = "many "


@harmless
def facts(wrapped: Any) -> dict[str, Any]:
    """The fields of the event `attributes` that speak of them; none where there are none."""
    found: dict[str, str] = {}
    places: list[Frame] = []
    for path, module in wrapped.named_modules():
        code = getattr(type(module).forward, "__code__", None)
        if code is None or not is_users(code):
            continue  # no library's layer has statistics that DDP does not know
        for name, value in vars(module).items():
            if len(found) >= _MOST:
                break
            if held := _told(value):
                found[f"{path}.{name}".lstrip(".")] = held
                places.append((code.co_filename, code.co_firstlineno, code.co_name))
    return {"digests": found, "places": places} if found else {}


def _told(value: Any) -> str:
    """The numbers, or a digest of many; empty where it is something else."""
    if type(value) is float:
        return value.hex() if math.isfinite(value) else ""
    kind = type(value)
    if (kind.__module__, kind.__name__) != ("torch", "Tensor"):
        return ""
    is_near = value.device.type == "cpu" and not value.requires_grad
    if not is_near or not value.is_floating_point() or not value.numel():
        return ""
    if value.numel() > _SMALL:
        return "".join(f"{_MANY}{each}" for each in digests({"": value}).values())
    return " ".join(float(each).hex() for each in value.reshape(-1).tolist())
