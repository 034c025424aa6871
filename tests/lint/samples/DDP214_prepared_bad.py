import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader


class Recall:
    def __init__(self, classes):
        self.hit = torch.zeros(classes)
        self.all = torch.zeros(classes)

    def update(self, guess, truth):
        self.hit += torch.bincount(truth[guess == truth], minlength=len(self.hit))
        self.all += torch.bincount(truth, minlength=len(self.all))

    def value(self):
        return (self.hit / self.all.clamp(min=1)).mean().item()


def main(train_set, held_out):
    accelerator = Accelerator()
    net = nn.Linear(4, 3)
    adam = torch.optim.Adam(net.parameters())
    loaders = DataLoader(train_set, 4, shuffle=True), DataLoader(held_out, 4)
    net, adam, train, check = accelerator.prepare(net, adam, *loaders)
    best = -1.0
    for _ in range(3):
        for x, y in train:
            adam.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(net(x), y))
            adam.step()
        recall = Recall(3)
        with torch.no_grad():
            for x, y in check:
                recall.update(net(x).argmax(-1), y)
        score = recall.value()
        if score > best:  # <-- DDP214
            best = score
            accelerator.save(accelerator.unwrap_model(net).state_dict(), "best.pt")


main(torch.load("train.pt"), torch.load("held_out.pt"))
