import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from . import comm, hooks
from .data import TrainingSampler
from .evaluation import SemSegEvaluator, inference_on_dataset
from .train_loop import TrainerBase


def default_setup(cfg):
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(cfg["SEED"] + comm.get_rank())


def build_model(cfg):
    c, k = cfg["MODEL"]["CHANNELS"], cfg["MODEL"]["NUM_CLASSES"]

    def conv(i, o, d):
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=d, dilation=d, bias=False), nn.BatchNorm2d(o), nn.ReLU())
    return nn.Sequential(conv(3, c, 1), conv(c, c, 2), nn.Conv2d(c, k, 1))


def create_ddp_model(model, **kwargs):
    return model if comm.get_world_size() == 1 else DistributedDataParallel(model, **kwargs)


class DefaultTrainer(TrainerBase):
    def __init__(self, cfg, train_set, test_set):
        super().__init__()
        self.cfg, self.test_set, self.best, self.last_loss = cfg, test_set, 0.0, 0.0
        solver, world = cfg["SOLVER"], comm.get_world_size()
        self.model = create_ddp_model(build_model(cfg))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=solver["BASE_LR"], momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, solver["STEPS"], solver["GAMMA"])
        sampler = TrainingSampler(len(train_set), comm.get_rank(), world, cfg["SEED"])
        self._data_loader_iter = iter(DataLoader(train_set, solver["IMS_PER_BATCH"] // world, sampler=sampler))
        self.max_iter = solver["MAX_ITER"]
        self.register_hooks(self.build_hooks())

    def build_hooks(self):
        ret = [hooks.LRScheduler()]
        if comm.is_main_process():
            ret.append(hooks.EvalHook(self.cfg["TEST"]["EVAL_PERIOD"], lambda: self.test(self.model.module)))
        return ret

    def run_step(self):
        image, mask = next(self._data_loader_iter)
        loss = F.cross_entropy(self.model(image), mask)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.last_loss = loss.item()

    def test(self, model):
        evaluator = SemSegEvaluator(self.cfg["MODEL"]["NUM_CLASSES"])
        return inference_on_dataset(model, DataLoader(self.test_set, 16), evaluator)
