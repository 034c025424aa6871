"""Fine-tunes a language model with adapters, merges them at the end and measures the result."""

import os

import torch
import torch.distributed as dist
from peft import LoraConfig, PeftModel, get_peft_model
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AutoModelForCausalLM, AutoTokenizer


def perplexity(model, loader):
    total = torch.zeros(2, device="cuda")
    with torch.no_grad():
        for batch in loader:
            total += torch.stack([model(**batch).loss, total.new_ones(())])
    dist.all_reduce(total)
    return (total[0] / total[1]).exp()


def finetune(name, folder, train_set, held_out):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name).cuda()
    model = DDP(get_peft_model(model, LoraConfig(r=8)), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    sampler = DistributedSampler(train_set)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch in DataLoader(train_set, batch_size=4, sampler=sampler):
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    if dist.get_rank() == 0:
        tokenizer.save_pretrained(folder)
        model.module.save_pretrained(folder)
    dist.barrier()
    base = AutoModelForCausalLM.from_pretrained(name)
    merged = PeftModel.from_pretrained(base, folder).merge_and_unload().cuda()
    shard = DistributedSampler(held_out, shuffle=False)
    print(perplexity(merged, DataLoader(held_out, batch_size=4, sampler=shard)))
    dist.destroy_process_group()


if __name__ == "__main__":
    from corpora import load

    finetune("small", "out/adapter", *load())
