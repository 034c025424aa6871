import torch
import torch.nn.functional as F

from scoring import Confusion


class Engine:
    def __init__(self, model, opt, loaders, sampler, console, classes=3):
        self.model, self.opt = model, opt
        self.train_loader, self.val_loader = loaders
        self.sampler = sampler
        self.console = console
        self.train_score = Confusion(classes)
        self.val_score = Confusion(classes)
        self.step = 0

    def train_epoch(self, epoch):
        self.model.train()
        self.sampler.set_epoch(epoch)
        self.train_score.clear()
        for img, mask in self.train_loader:
            logits = self.model(img)
            loss = F.cross_entropy(logits, mask)
            self.opt.zero_grad(set_to_none=True)
            loss.backward()
            self.opt.step()
            self.step += 1
            self.train_score.add(logits, mask)
            self.console.tick(self.step, loss.item(), self.train_score)

    @torch.no_grad()
    def validate(self, epoch):
        self.model.eval()
        self.val_score.clear()
        for img, mask in self.val_loader:
            self.val_score.add(self.model(img), mask)
        self.console.epoch(epoch, self.val_score.miou, self.val_score.pixel_acc)

    def fit(self, epochs):
        for e in range(epochs):
            self.train_epoch(e)
            self.validate(e)
