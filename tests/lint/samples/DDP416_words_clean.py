import torch
import torch.distributed as dist


class Stopper:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def total(self, loss):
        value = loss.detach().clone()
        dist.reduce(value, 0)
        return value.item() / dist.get_world_size()

    def done(self, loss):
        value = self.total(loss)
        if dist.get_rank() == 0 and value < self.best:
            self.best, self.bad = value, 0
            torch.cuda.empty_cache()
        flag = torch.tensor(self.bad > self.patience)
        dist.broadcast(flag, 0)
        return bool(flag)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    print(Stopper(3).done(torch.ones(())))
