import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Strategy:
    """Thin layer over c10d so that tasks do not touch it directly."""

    def __init__(self):
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()

    def setup(self, module):
        return DDP(module)

    def barrier(self):
        dist.barrier()

    def broadcast_flag(self, value):
        t = torch.tensor([int(value)])
        dist.broadcast(t, src=0)
        return bool(t.item())

    def teardown(self):
        dist.destroy_process_group()


class Engine:
    def __init__(self, strategy, callbacks, root, max_steps):
        self.strategy = strategy
        self.callbacks = callbacks
        self.root = root
        self.max_steps = max_steps
        self.should_stop = False
        self.step = 0

    @property
    def is_global_zero(self):
        return self.strategy.rank == 0

    def emit(self, hook, *args):
        for cb in self.callbacks:
            getattr(cb, hook)(self, *args)

    def fit(self, task):
        task.setup(self.strategy.rank, self.strategy.world_size)
        module = self.strategy.setup(task.module)
        optimizer = task.configure_optimizer()
        self.emit("on_fit_start")
        batches = task.batches()
        while self.step < self.max_steps:
            loss = task.training_step(module, next(batches))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.step += 1
            self.emit("on_batch_end", loss.detach())
            if self.should_stop:
                break
        self.strategy.barrier()
        self.emit("on_fit_end")
        task.export(self)
