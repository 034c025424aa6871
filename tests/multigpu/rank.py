"""One rank: runs a function of bodies.py, and writes what it returns.

torchrun --nproc-per-node=2 rank.py BODY FOLDER '{"backend": "nccl"}'
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def settle_on_one_card() -> None:
    """Where ranks are more than cards, have this one pass for a host of its own.

    NCCL refuses two ranks of one host on one card. With a host name each, and without the ways
    that ranks of one host have, they speak through the loopback interface.
    """
    import torch

    if torch.cuda.is_available() and torch.cuda.device_count() < int(os.environ["WORLD_SIZE"]):
        os.environ["NCCL_HOSTID"] = f"host-of-rank-{os.environ['RANK']}"
        os.environ["NCCL_P2P_DISABLE"] = os.environ["NCCL_SHM_DISABLE"] = "1"
        os.environ["NCCL_SOCKET_IFNAME"] = "lo"
        os.environ["LOCAL_RANK"] = "0"


def perform(body: str, folder: str, kwargs: dict[str, Any]) -> Any:
    """Call the function."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.multigpu import bodies

    return getattr(bodies, body)(folder=Path(folder), **kwargs)


def main() -> None:
    body, folder, kwargs = sys.argv[1:]
    rank = os.environ["RANK"]
    settle_on_one_card()
    result = perform(body, folder, json.loads(kwargs))
    (Path(folder) / f"{body}.{rank}").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
