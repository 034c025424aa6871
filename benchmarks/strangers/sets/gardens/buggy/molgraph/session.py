import os

import torch
import torch.distributed as dist

from gcn import GCN


class Session:
    """Weights, optimizer and progress of a run; survives preemption through `state.pt`."""

    def __init__(self, folder, lr):
        self.path = os.path.join(folder, "state.pt")
        self.net = GCN()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=lr)
        self.epoch = 0

    def save(self):
        if dist.get_rank() == 0:
            tmp = self.path + ".part"
            torch.save({"net": self.net.state_dict(), "opt": self.opt.state_dict(), "epoch": self.epoch}, tmp)
            os.replace(tmp, self.path)
        dist.barrier()

    def restore(self):
        if not os.path.exists(self.path):
            return
        done = [0]
        if dist.get_rank() == 0:
            state = torch.load(self.path)
            self.net.load_state_dict(state["net"])
            self.opt.load_state_dict(state["opt"])
            done = [state["epoch"]]
        dist.broadcast_object_list(done, src=0)
        self.epoch = done[0]
