import torch
import torch.distributed as dist


class Stopper:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def total(self, loss):
        value = loss.detach().clone()
        dist.reduce(value, 0)  # <-- DDP416
        return value.item() / dist.get_world_size()

    def done(self, loss):
        value = self.total(loss)
        if value < self.best:
            self.best, self.bad = value, 0
            torch.cuda.empty_cache()
        return self.bad > self.patience


def run(stopper, loss, scheduler):
    scheduler.step(stopper.total(loss))
    return stopper.done(loss)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    print(Stopper(3).done(torch.ones(())))
