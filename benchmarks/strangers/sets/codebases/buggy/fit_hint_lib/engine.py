import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


def pretrain_teacher(teacher, loader, cfg):
    model = DistributedDataParallel(teacher)
    opt = torch.optim.SGD(model.parameters(), lr=cfg.SOLVER.LR, momentum=cfg.SOLVER.MOMENTUM)
    for _ in range(cfg.SOLVER.TEACHER_EPOCHS):
        for image, target in loader:
            opt.zero_grad()
            F.cross_entropy(model(image)[0], target).backward()
            opt.step()


@torch.no_grad()
def validate(loader, distiller):
    distiller.eval()
    counts = torch.zeros(2)
    for image, target in loader:
        counts += torch.tensor([(distiller(image).argmax(1) == target).sum(), len(target)])
    dist.all_reduce(counts)
    return (counts[0] / counts[1] * 100).item()


class BaseTrainer:
    def __init__(self, distiller, train_loader, val_loader, cfg):
        self.cfg, self.distiller = cfg, distiller
        self.train_loader, self.val_loader, self.best_acc = train_loader, val_loader, -1
        s = cfg.SOLVER
        self.optimizer = torch.optim.SGD(distiller.get_learnable_parameters(), lr=s.LR, momentum=s.MOMENTUM,
                                         weight_decay=s.WEIGHT_DECAY)

    def train(self):
        for epoch in range(1, self.cfg.SOLVER.EPOCHS + 1):
            self.train_loader.sampler.set_epoch(epoch)
            self.train_epoch(epoch)
        self.log(f"Best accuracy:{self.best_acc:.2f}")

    def train_epoch(self, epoch):
        self.distiller.train()
        meters = torch.zeros(2)
        for image, target in self.train_loader:
            meters += self.train_iter(image, target)
        dist.all_reduce(meters)
        ce, kd = (meters / (len(self.train_loader) * dist.get_world_size())).tolist()
        test_acc = validate(self.val_loader, self.distiller)
        self.best_acc = max(self.best_acc, test_acc)
        self.log(f"epoch {epoch} ce {ce:.4f} kd {kd:.4f} test_acc {test_acc:.2f}")

    def train_iter(self, image, target):
        self.optimizer.zero_grad()
        _, losses = self.distiller.forward_train(image, target)
        sum(losses.values()).backward()
        self.optimizer.step()
        return torch.stack([losses["loss_ce"], losses["loss_kd"]]).detach()

    def log(self, line):
        if dist.get_rank() == 0:
            print(line, flush=True)
