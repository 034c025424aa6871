import torch
import torch.distributed as dist


class Scores:
    def __init__(self, device):
        self.right = torch.zeros((), device=device)
        self.wrong = torch.zeros((), device=device)
        self.seen = torch.zeros((), device=device)

    def note(self, guess, truth):
        self.right += (guess == truth).sum()
        self.wrong += (guess != truth).sum()
        self.seen += len(truth)

    def gather(self):
        dist.all_reduce(self.right)
        dist.all_reduce(self.right)  # <-- DDP421
        dist.all_reduce(self.seen)
        return self.right / self.seen, self.wrong / self.seen


def main(net, loader, device):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    scores = Scores(device)
    with torch.no_grad():
        for given, truth in loader:
            scores.note(net(given.to(device)).argmax(-1), truth.to(device))
    print(scores.gather())


if __name__ == "__main__":
    main(torch.nn.Linear(4, 2).cuda(), [(torch.rand(3, 4), torch.zeros(3))], "cuda")
