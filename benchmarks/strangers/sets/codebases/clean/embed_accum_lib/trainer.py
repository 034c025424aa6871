import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


class BiTrainer:
    def __init__(self, model, args, train_dataset, data_collator):
        self.args, self.global_step = args, 0
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.learning_rate)
        self.sampler = DistributedSampler(train_dataset, seed=args.seed, drop_last=True)
        self.loader = DataLoader(train_dataset, args.per_device_train_batch_size, sampler=self.sampler,
                                 collate_fn=data_collator)
        self.collate = data_collator

    def is_boundary(self, step):
        """Whether an optimizer step follows this micro-batch; the last window of an epoch may be short."""
        return (step + 1) % self.args.gradient_accumulation_steps == 0 or step + 1 == len(self.loader)

    def sync_context(self, step):
        """Communicate gradients only where it matters."""
        return contextlib.nullcontext() if self.is_boundary(step) else self.model.no_sync()

    def training_step(self, step, inputs):
        with self.sync_context(step):
            loss = self.model(**inputs) / self.args.gradient_accumulation_steps
            loss.backward()
        return loss.detach() * self.args.gradient_accumulation_steps

    def train(self):
        for epoch in range(self.args.num_train_epochs):
            self.sampler.set_epoch(epoch)
            self.model.train()
            tr_loss = torch.zeros(())
            for step, inputs in enumerate(self.loader):
                tr_loss += self.training_step(step, inputs)
                if self.is_boundary(step):
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.args.max_grad_norm)
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    self.global_step += 1
            dist.all_reduce(tr_loss)
            if dist.get_rank() == 0:
                print({"epoch": epoch, "loss": round(tr_loss.item() / len(self.loader) / dist.get_world_size(), 4)},
                      flush=True)

    @torch.no_grad()
    def evaluate(self, dataset, n=60):
        batch = self.collate([dataset[i] for i in range(n)])
        model = self.model.module
        best = (model.encode(batch["query"]) @ model.encode(batch["passage"]).t()).argmax(1)
        return (best == torch.arange(n)).float().mean().item()
