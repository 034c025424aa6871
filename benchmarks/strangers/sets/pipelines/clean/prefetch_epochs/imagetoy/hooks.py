import torch.distributed as dist


class Hook:
    def before_epoch(self, loop): ...

    def after_step(self, loop, index): ...

    def after_epoch(self, loop): ...


class EpochSeedHook(Hook):
    def before_epoch(self, loop):
        sampler = getattr(getattr(loop.loader, "loader", loop.loader), "sampler", None)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(loop.epoch)


class OrderRecorder(Hook):
    def __init__(self):
        self.first = []

    def after_step(self, loop, index):
        if loop.step == 0:
            self.first.append(index.tolist())

    def after_epoch(self, loop):
        if dist.get_rank() == 0:
            print(f"epoch {loop.epoch} loss {loop.loss:.4f} first batch {self.first[-1]}", flush=True)
