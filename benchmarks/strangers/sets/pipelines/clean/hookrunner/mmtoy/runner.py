import torch


class IterBasedRunner:
    def __init__(self, model, lr, max_iters):
        self.model, self.max_iters, self._hooks = model, max_iters, []
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def register_hook(self, hook):
        self._hooks.append(hook)

    def call_hook(self, fn_name):
        for hook in self._hooks:
            getattr(hook, fn_name)(self)

    def run(self):
        g = torch.Generator().manual_seed(torch.distributed.get_rank())
        for self.iter in range(self.max_iters):
            x = torch.randn(8, 16, generator=g)
            self.outputs = {"loss": (self.model(x) - x.mean(1, keepdim=True)).square().mean()}
            self.optimizer.zero_grad()
            self.outputs["loss"].backward()
            self.optimizer.step()
            self.call_hook("after_train_iter")
