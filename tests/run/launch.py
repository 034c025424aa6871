"""python launch.py N SCRIPT [ARGUMENT...]: N ranks with RANK set, as mpirun starts them."""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.ports import free_port


def main() -> int:
    number, *command = sys.argv[1:]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    world = {"WORLD_SIZE": number, **meeting}
    ranks = [
        subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, **world, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(int(number))
    ]
    return max(abs(rank.wait()) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
