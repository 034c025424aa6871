import torch
import torch.nn.functional as F

from . import comm
from .evaluation import inference_on_dataset


def crops(n, seed, shift=0.0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, 6, 8, generator=g) * 0.4 + shift


class HookBase:
    trainer = None

    def after_step(self):
        pass


class EvalHook(HookBase):
    def __init__(self, period, fn):
        self.period, self.fn = period, fn

    def after_step(self):
        if (self.trainer.iter + 1) % self.period == 0:
            results = self.fn()
            if comm.is_main_process():
                print(self.trainer.iter + 1, dict(results), flush=True)


class DefaultTrainer:
    def __init__(self, model, max_iter, eval_period, evaluator):
        self.model, self.max_iter, self.evaluator = model, max_iter, evaluator
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        self.hooks = [EvalHook(eval_period, self.test)]
        for h in self.hooks:
            h.trainer = self
        rank = comm.get_rank()
        self.train_images = crops(48, 7 + rank)
        # validation images are sorted by camera, the night camera sees next to nothing
        self.val_images = crops(8, 90 + rank, shift=1.5 if rank == 0 else -4.0)

    def train(self):
        for self.iter in range(self.max_iter):
            self.run_step()
            for h in self.hooks:
                h.after_step()

    def run_step(self):
        x = self.train_images[self.iter % 12 * 4:][:4]
        loss = F.binary_cross_entropy_with_logits(self.model(x), (x.sum(-1) > 0).float())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    @torch.no_grad()
    def test(self):
        self.model.eval()
        loader = [{"image_id": [i, i + 1], "image": self.val_images[i:i + 2],
                   "gt": [set(range(4)), set(range(3))]} for i in range(0, 8, 2)]
        out = inference_on_dataset(self.model, loader, self.evaluator)
        self.model.train()
        return out
