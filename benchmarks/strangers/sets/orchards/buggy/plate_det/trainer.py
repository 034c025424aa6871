import torch
import torch.distributed as dist
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, opt, train, val, sampler, hooks):
        self.net, self.opt = net, opt
        self.train_loader, self.val_loader, self.sampler = train, val, sampler
        self.hooks = hooks
        self.is_main = dist.get_rank() == 0
        self.epoch, self.last_loss = -1, float("nan")

    def load(self, path):
        blob = torch.load(path, map_location="cpu", weights_only=True)
        self.net.module.load_state_dict(blob["model"])
        return blob["epoch"]

    @torch.no_grad()
    def score(self):
        self.net.eval()
        t = torch.zeros(2, dtype=torch.float64)
        for img, box in self.val_loader:
            t[0] += F.l1_loss(self.net(img), box, reduction="sum").double()
            t[1] += box.numel()
        dist.all_reduce(t)
        return (t[0] / t[1]).item()

    def fit(self, epochs):
        for self.epoch in range(epochs):
            self.net.train()
            self.sampler.set_epoch(self.epoch)
            for img, box in self.train_loader:
                loss = F.l1_loss(self.net(img), box)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.last_loss = loss.item()
            s = self.score()
            for h in self.hooks:
                h.on_epoch_end(self, s)
        for h in self.hooks:
            h.on_fit_end(self)
