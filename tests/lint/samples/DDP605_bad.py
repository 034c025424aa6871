import os
import subprocess
import sys


def launch(script, world_size):
    ranks = []
    for rank in range(world_size):
        env = os.environ.copy()
        env["RANK"] = str(rank)
        env["WORLD_SIZE"] = str(world_size)
        ranks.append(subprocess.Popen([sys.executable, script], env=env))  # <-- DDP605
    return [each.wait() for each in ranks]


def launch_one(script, rank):
    return subprocess.Popen([script], env={**os.environ, "LOCAL_RANK": str(rank)})  # <-- DDP605


def launch_another(script, rank):
    env = dict(os.environ, RANK=str(rank))
    return subprocess.Popen([script], env=env)  # <-- DDP605
