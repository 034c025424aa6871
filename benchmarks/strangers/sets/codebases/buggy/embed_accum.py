"""Fine-tuning a small text embedder with in-batch negatives (FlagEmbedding layout)."""
import argparse

import torch
import torch.distributed as dist

from embed_accum_lib.arguments import parse_args_into_dataclasses
from embed_accum_lib.data import EmbedCollator, TrainDatasetForEmbedding
from embed_accum_lib.modeling import BiEncoderModel
from embed_accum_lib.trainer import BiTrainer


def main():
    parser = argparse.ArgumentParser()
    model_args, data_args, training_args = parse_args_into_dataclasses(parser)
    dist.init_process_group(training_args.ddp_backend)
    torch.manual_seed(training_args.seed)
    model = BiEncoderModel(model_args, temperature=training_args.temperature)
    dataset = TrainDatasetForEmbedding(data_args)
    trainer = BiTrainer(model, training_args, dataset, EmbedCollator(data_args))
    trainer.train()
    if dist.get_rank() == 0:
        print(f"steps {trainer.global_step} recall@1 {trainer.evaluate(TrainDatasetForEmbedding(data_args, seed=1)):.3f}",
              flush=True)
    dist.barrier()
    del trainer
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
