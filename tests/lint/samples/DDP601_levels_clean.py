import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Levels(torch.nn.Module):
    """The loss of each level of a hierarchy, weighed."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def __call__(self, scores, targets):
        losses = []
        for number in range(len(self.weights)):
            losses.append(torch.nn.functional.mse_loss(scores[number], targets[:, number]))
        total = 0
        for number, loss in enumerate(losses):
            total += loss * self.weights[number]
        return total


def train(ddp, optimizer, batches, criterion):
    scaler = torch.amp.GradScaler()
    for _ in range(4):
        for images, targets in batches:
            with torch.autocast("cuda"):
                loss = criterion(ddp(images), targets)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()


def main(weights, batches):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    model = DDP(torch.nn.Linear(8, 4).cuda())
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), batches, Levels(weights))


if __name__ == "__main__":
    main([1.0, 0.5], torch.load("batches.pt"))
