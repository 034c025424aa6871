import os

import torch
import torch.distributed as dist


class LoggingMixin:
    def log(self, msg):
        if self.rank == 0:
            print(msg, flush=True)


class CheckpointMixin:
    path = "last.pt"

    def save(self):
        if self.rank == 0:
            torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(), "step": self.step}, self.path)
        dist.barrier()

    def _read(self):
        """Only one worker touches the (slow) shared disk."""
        state = None
        if self.rank == 0 and os.path.exists(self.path):
            state = torch.load(self.path)
        dist.barrier()
        return state

    def resume(self):
        state = self._read()
        self.net.load_state_dict(state["net"])
        self.opt.load_state_dict(state["opt"])
        self.step = state["step"]
