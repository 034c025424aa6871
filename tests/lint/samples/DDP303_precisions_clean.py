"""Whatever the precision, the wrapper is called: its forward asks the module for the step."""

import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from transformers import T5ForConditionalGeneration


class Summariser(T5ForConditionalGeneration):
    def forward(self, batch):
        out = super().forward(input_ids=batch["text"], labels=batch["summary"])
        return {"loss": out.loss}


class Loop:
    def __init__(self, options):
        self.options = options
        self.model = self.begun(Summariser).to("cpu")
        if options.distributed:
            self.model = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def begun(self, kind, **settings):
        return kind.from_pretrained(self.options.backbone, **settings)

    def run(self, loader):
        for batch in loader:
            if self.options.half:
                with torch.autocast("cpu"):
                    if self.options.distributed:
                        out = self.model(batch)
                    else:
                        out = self.model(batch)
            else:
                with torch.enable_grad():
                    if self.options.distributed:
                        out = self.model(batch)
                    else:
                        out = self.model(batch)
            loss = out["loss"]
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backbone")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--distributed", action="store_true")
    options = parser.parse_args()
    if options.distributed:
        dist.init_process_group("gloo")
    data = [{"text": torch.ones(4).long(), "summary": torch.ones(4).long()}] * 100
    sampler = DistributedSampler(data, shuffle=False) if options.distributed else None
    Loop(options).run(DataLoader(data, batch_size=8, sampler=sampler))


if __name__ == "__main__":
    main()
