"""python launch.py N SCRIPT [ARGUMENT...]: N ranks with RANK set, as mpirun starts them."""

import os
import socket
import subprocess
import sys


def main() -> int:
    number, *command = sys.argv[1:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    world = {"WORLD_SIZE": number, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
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
