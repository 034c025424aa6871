import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, utts, max_epochs, bs=8):
        self.model = DDP(model)
        self.utts = utts
        self.max_epochs = max_epochs
        self.bs = bs
        self.epoch = 0
        self.hooks = []
        self.opt = torch.optim.Adam(self.model.parameters(), lr=5e-3)

    def register(self, hook):
        self.hooks.append(hook)

    def step(self, chunk):
        x = torch.stack([u for u, _ in chunk])
        y = torch.stack([t for _, t in chunk])
        logp = self.model(x).log_softmax(-1).transpose(0, 1)
        n = len(chunk)
        loss = F.ctc_loss(logp, y, torch.full((n,), x.size(1)), torch.full((n,), y.size(1)))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def train(self):
        for self.epoch in range(1, self.max_epochs + 1):
            for k in range(0, len(self.utts), self.bs):
                value = self.step(self.utts[k:k + self.bs])
                for h in self.hooks:
                    h.after_step(self, value)
            for h in self.hooks:
                h.after_epoch(self)

    @staticmethod
    def restore(net, path):
        blob = torch.load(path, map_location="cpu", weights_only=True)
        net.load_state_dict(blob["weights"])
        return blob["epoch"]
