import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, net, loader, sampler, args, callbacks):
        self.model = DistributedDataParallel(net)
        self.loader, self.sampler, self.args = loader, sampler, args
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.callbacks = callbacks
        self.should_stop = False
        self.global_step = 0

    def call(self, hook, **kw):
        for cb in self.callbacks:
            getattr(cb, hook)(self, **kw)

    def training_step(self, frames, maps):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pred = self.model(frames)
        return F.mse_loss(pred.float(), maps)

    def fit(self):
        self.call("on_fit_start")
        for epoch in range(self.args.epochs):
            self.sampler.set_epoch(epoch)
            for frames, maps in self.loader:
                loss = self.training_step(frames, maps)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                self.optimizer.step()
                self.global_step += 1
                self.call("on_batch_end", loss=loss.detach())
                if self.should_stop:
                    break
            if self.should_stop:
                break
        self.call("on_fit_end")
