import torch
import torch.distributed as dist
from timm.optim import create_optimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AdamW, AutoModelForSeq2SeqLM, get_linear_schedule_with_warmup


class Runner:
    def __init__(self, model, loader, rank):
        self.loader, self.model = loader, model.to(rank)
        decayed = [p for n, p in self.model.named_parameters() if "bias" not in n]
        others = [p for n, p in self.model.named_parameters() if "bias" in n]
        groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others}]
        self.optimizer = AdamW(groups, lr=1e-4)
        self.scheduler = get_linear_schedule_with_warmup(self.optimizer, 10, 100)
        self.model = DistributedDataParallel(self.model, device_ids=[rank])

    def train(self, epochs=3):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for batch in self.loader:
                output = self.model(input_ids=batch, labels=batch)
                output["loss"].mean().backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
                self.model.zero_grad()


def distill(options, teacher, loader, rank):
    student = DistributedDataParallel(torch.nn.Linear(8, 8).to(rank), device_ids=[rank])
    optimizer = create_optimizer(options, student)
    for rows in loader:
        loss = (student(rows) - teacher(rows)).square().mean()
        loss.backward()
        optimizer.step()
        student.zero_grad()


def main(data, options):
    dist.init_process_group("nccl")
    rank = dist.get_rank() % torch.cuda.device_count()
    torch.cuda.set_device(rank)
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
    Runner(model, loader, rank).train()
    distill(options, torch.nn.Linear(8, 8).to(rank).requires_grad_(False), loader, rank)
    dist.destroy_process_group()
