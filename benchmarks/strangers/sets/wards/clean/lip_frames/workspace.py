import os
import shutil
import tempfile
import time
import uuid

import torch
import torch.distributed as dist

ROOT = os.path.join(tempfile.gettempdir(), "lip_frames")


def new_run_name(prefix="run"):
    return f"{prefix}-{time.strftime('%d%H%M')}-{uuid.uuid4().hex[:6]}"


class Workspace:
    """Decoded clips of one run live here until the run is over."""

    def __init__(self, env):
        self.env = env
        name = [new_run_name()]
        dist.broadcast_object_list(name, src=0)
        self.dir = os.path.join(ROOT, name[0])
        self.done = os.path.join(self.dir, "DECODED")

    def prepare(self, decode):
        if self.env.is_main:
            os.makedirs(self.dir, exist_ok=True)
            for name, clip in decode():
                torch.save(clip, os.path.join(self.dir, name + ".pt"))
            open(self.done, "w").close()
        else:
            self.wait_for(self.done)

    @staticmethod
    def wait_for(path, poll=0.1):
        while not os.path.exists(path):
            time.sleep(poll)

    def clips(self):
        return sorted(f for f in os.listdir(self.dir) if f.endswith(".pt"))

    def load(self, name):
        return torch.load(os.path.join(self.dir, name))

    def close(self):
        if self.env.is_main:
            shutil.rmtree(self.dir, ignore_errors=True)
